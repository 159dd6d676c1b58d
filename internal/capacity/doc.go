// Package capacity keeps the account of the cluster: what each node can hold, and who uses how much of it.
//
// A Ledger is told of nodes and pods one at a time, in any order, each at constant cost, and is asked for a View: what the
// nodes of each selection have, and what each consumer uses of them. The package is pure: it knows no API client, clock or log.
package capacity
