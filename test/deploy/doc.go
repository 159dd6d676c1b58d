// Package deploy tests the manifests in config, the make targets that deploy them, and the docs. It
// uses a real API server, and checks that the operator can work with exactly the permissions that
// the manifests grant.
package deploy
