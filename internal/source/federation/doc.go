// Package federation reads what the providers of this cluster publish to it, with the identity that Liqo
// keeps for each of them.
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
package federation
