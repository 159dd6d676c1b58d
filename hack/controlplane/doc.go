// Package controlplane gives tests and make run a real kube-apiserver and etcd.
//
// [Assets] finds the programs, in this order:
//
//  1. KUBEBUILDER_ASSETS, if it is set;
//  2. the cache: PROFFER_CACHE if it is set, else proffer/controlplane in the
//     user's cache directory;
//  3. the prebuilt archive, fetched by setup-envtest;
//  4. a build from the Go modules pinned in the directories kubernetes and etcd.
//
// What 3 or 4 brings goes into the cache, so it is paid for once. Several
// processes may ask at the same time: one does the work under a file lock, the
// others wait for it.
//
// [Liqo] does the last, with a cache of its own, for Liqo's programs: the tests in
// test/slices need them.
//
// [Start] runs them with envtest and [StartTest] does so for a test.
package controlplane
