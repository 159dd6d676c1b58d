// Package resourcereader holds the wire contract of Liqo's external resource monitor, in both forms that Liqo has spoken: this
// package is that of v0.9 and v0.10, package flat that of v0.6 to v0.8. All but this comment comes from the .proto files, by buf.
//
// The contract is Liqo's: field numbers, types and method paths are those of
// pkg/liqo-controller-manager/resource-request-controller/resource-monitors/resource-reader.proto at tag v0.9.4. Message names are
// not on the wire, so ours need not match.
package resourcereader
