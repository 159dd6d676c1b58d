// Package kube has helpers for Kubernetes that do not depend on Proffer's kinds: informers for
// kinds that exist only while their CustomResourceDefinitions do, leader election that ends only
// the leader's work, functions that classify errors of the API server, and functions that cut texts
// to the API's bounds.
package kube
