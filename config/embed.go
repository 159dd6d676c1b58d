// Package config embeds the manifests that kubectl proffer check compares a cluster with, and whose bounds a
// rehearsal applies, so that the programs and the manifests are always of one version.
package config

import "embed"

// Files are the CRDs, the roles of the operator and the admission policies, by their paths in this
// directory.
//
//go:embed crd/bases/*.yaml rbac/role.yaml rbac/metrics_auth_role.yaml guards admission
//go:embed components/served-classes components/slice-pod-guard components/provider-guard
//go:embed components/catalog components/orchestrator components/federation
var Files embed.FS

// ResourcePolicies is the CRD of ResourcePolicies. A program that needs no other manifest has no other.
//
//go:embed crd/bases/proffer.dev_resourcepolicies.yaml
var ResourcePolicies string
