// Package kube is Kubernetes plumbing that knows no kind of Proffer's: informers for kinds that
// come and go with their CustomResourceDefinitions, leader election that ends only the leader's
// work, errors of the API server by their meaning, and texts cut to the API's bounds.
package kube
