// Package lab runs clusters with the real Liqo on one machine: for each an etcd, a kube-apiserver and Liqo's own controllers,
// peered as liqoctl peers clusters, and on the provider the operator. There are no kubelets and no network between pods, so
// nothing runs in these clusters; what is shown is how Liqo negotiates.
//
// All of it lives in namespaces of its own for the network and for processes, see [Isolate]: Liqo's webhook listens on every
// address, and whatever way the tests end, nothing is left behind.
//
// What Liqo needs in a cluster, its roles, accounts and webhooks, is rendered from its own Helm chart. Its processes have the
// rights of their own ServiceAccounts, and so has the operator.
package lab
