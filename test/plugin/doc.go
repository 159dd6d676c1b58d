// Package plugin tests kubectl-proffer as users have it: the built plugin, started by kubectl,
// against a real API server whose service proxy leads to the built operator. config/default is
// installed, and the operator and each user have the rights that its manifests give them.
package plugin
