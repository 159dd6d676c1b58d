// Package controlplane provides tests and make run with a real kube-apiserver and etcd.
//
// [Assets] finds the programs, in this order:
//
// 1. KUBEBUILDER_ASSETS, if it is set; 2. the cache: PROFFER_CACHE if it is set, else
// proffer/controlplane in the user's cache directory; 3. the prebuilt archive, fetched by
// setup-envtest; 4. a build from the Go modules pinned in the directory kubernetes.
//
// The results of 3 and 4 go into the cache. Of several processes that ask at the same time, one
// does the work under a file lock, and the others wait.
//
// [Liqo] and [Prometheus] build programs in the same way, into caches of their own, for test/slices
// and test/monitoring.
//
// [Start] runs the programs with envtest, [StartTest] for the duration of a test.
package controlplane
