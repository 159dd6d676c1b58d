// Package slice answers the ResourceSlices of Liqo v1.
//
// Watched objects go into caches: slices and Grants into the grantCache, Tenants and namespaces into
// the gates. For each evaluation, Decider.Decide decides on all slices at once by the terms of the
// core. Every replica does so. On the leader, Writer.Commit then assumes the decisions and queues the
// writes: first the record of a grant, then the answer in the slice's status. Package protocol has the
// rules by which no capacity is granted twice, whatever fails in between.
package slice
