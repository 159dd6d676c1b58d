// Package lab runs clusters with the real Liqo on one machine. Each cluster has an etcd, a
// kube-apiserver and Liqo's controllers. The clusters are peered as liqoctl peers them, and the
// operator runs on any of them. That is enough to see how Liqo negotiates.
//
// With nodes, pods run too: a kube-scheduler places them, Liqo's virtual kubelets send them
// on, and KWOK plays the kubelets of nodes. There are no containers and no pod network.
//
// Everything runs in new network and process namespaces, see [Isolate]: Liqo's webhook listens on
// every address, and nothing is left behind however the tests end.
//
// Liqo's roles, accounts and webhooks are rendered from its Helm chart. Liqo's processes and the
// operator have the rights of their own ServiceAccounts.
package lab
