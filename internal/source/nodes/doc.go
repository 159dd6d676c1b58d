// Package nodes brings the nodes and the pods of the cluster to the ledger, and keeps nothing of them but what the ledger does.
//
// A cluster has tens of thousands of pods, and of each the account needs some 5 %: what it requests, where it is, whose it is. So objects are
// cut down before they are decoded: of the protobuf that the API server sends, only the fields of a mask are copied, and these are decoded by
// the generated code of k8s.io/api. What comes of that is counted and dropped. The list of what there is at first is decoded object by object,
// while it arrives. Everything else is client-go's own: its reflector asks for the list, follows what changes, and begins anew where it must.
package nodes
