// Package peers follows the capacity that other clusters have given to this one: Liqo's VirtualNodes,
// and the ResourceSlices that they were made from. Several VirtualNodes of one ResourceSlice may each
// list all that the slice was given, so the ledger is told which of them have it together. Package
// nodes follows the nodes themselves.
package peers
