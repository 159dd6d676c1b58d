// Package catalog is the command kubectl proffer catalog, for consumers: what each provider of this
// cluster would grant it now, and how to ask for it.
//
// A provider is a stranger. It chooses what it answers and also the address and the certificates in
// the kubeconfig that Liqo keeps for it. So:
//   - connect takes only inline data from that kubeconfig, and refuses what would run a program or read
//     a file;
//   - a request carries the identity that Liqo has for this provider and no other credentials, and
//     follows no redirect;
//   - time, bytes and the number of Offers are bounded for each provider;
//   - parse turns an Offer into values whose amounts, names and texts can be printed, and is the only
//     way to them.
package catalog
