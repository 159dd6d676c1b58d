package check

import (
	"fmt"
	"maps"
	"path"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/manifests"
	"proffer.dev/proffer/config"
)

const (
	checkCRDs   Check  = "crds"
	installHelp string = "Apply the manifests of this version: see docs/how-to/install.md."
)

// ownCRDs returns the CRDs that this version of the tool was built with, including the CRDs of
// components in these directories of config.
func ownCRDs(components ...string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	bases, err := manifests.Files("*.yaml", "crd/bases")
	if err != nil {
		return nil, err
	}
	others, err := manifests.Files("crd.yaml", components...)
	if err != nil {
		return nil, err
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, file := range append(bases, others...) {
		text, err := config.Files.ReadFile(file)
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path.Base(file), err)
		}
		all = append(all, crd)
	}
	return all, nil
}

// findCRDs compares the CRDs of the cluster, by name, with the CRDs of this version.
func findCRDs(
	own []*apiextensionsv1.CustomResourceDefinition, found map[string]known[*apiextensionsv1.CustomResourceDefinition],
) []Finding {
	var findings []Finding
	for _, want := range own {
		got := found[want.Name]
		switch {
		case got.missing():
			findings = append(findings, checkCRDs.wrong("The CRD %s is not installed.", want.Name).do(installHelp))
		case got.err != nil:
			return append(findings, got.skip(checkCRDs, "get customresourcedefinitions.apiextensions.k8s.io"))
		default:
			findings = append(findings, compareCRD(want, got.value)...)
		}
	}
	if len(findings) == 0 {
		return []Finding{checkCRDs.ok("All %d CRDs are installed, with the schemas of this version.", len(own))}
	}
	return findings
}

func compareCRD(want, got *apiextensionsv1.CustomResourceDefinition) []Finding {
	for _, c := range got.Status.Conditions {
		if c.Type == apiextensionsv1.Established && c.Status != apiextensionsv1.ConditionTrue {
			return []Finding{checkCRDs.wrong("The API server does not serve %s: %s.", got.Name, c.Message).do(installHelp)}
		}
	}
	wanted, served := versionOf(want), versionOf(got)
	if served == nil || !served.Served {
		return []Finding{checkCRDs.wrong("The CRD %s does not serve %s.", got.Name, v1alpha1.GroupVersion.Version).
			do(installHelp)}
	}
	at, differ := firstDifference(wanted.Schema.OpenAPIV3Schema, served.Schema)
	if !differ {
		return nil
	}
	return []Finding{checkCRDs.warning("The schema of %s is of another version: it differs in %s.", got.Name, at).
		do("Use this tool and the manifests of one version: see docs/how-to/upgrade.md.")}
}

func versionOf(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range crd.Spec.Versions {
		if v := &crd.Spec.Versions[i]; v.Name == v1alpha1.GroupVersion.Version {
			return v
		}
	}
	return nil
}

// firstDifference compares a schema with one of the API server. It returns the field with the first
// difference, in the order of the names, such as spec.offer.max.
func firstDifference(
	want *apiextensionsv1.JSONSchemaProps, got *apiextensionsv1.CustomResourceValidation,
) (at string, differ bool) {
	if got == nil || got.OpenAPIV3Schema == nil {
		return "all fields", true
	}
	return differenceIn(want, got.OpenAPIV3Schema, "")
}

func differenceIn(want, got *apiextensionsv1.JSONSchemaProps, at string) (string, bool) {
	if apiequality.Semantic.DeepEqual(want, got) {
		return "", false
	}
	names := maps.Clone(want.Properties)
	if names == nil {
		names = map[string]apiextensionsv1.JSONSchemaProps{}
	}
	maps.Copy(names, got.Properties)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		below := name
		if at != "" {
			below = at + "." + name
		}
		w, wanted := want.Properties[name]
		g, there := got.Properties[name]
		if !wanted || !there {
			return below, true
		}
		if in, differ := differenceIn(&w, &g, below); differ {
			return in, true
		}
	}
	if want.Items != nil && got.Items != nil && want.Items.Schema != nil && got.Items.Schema != nil {
		if in, differ := differenceIn(want.Items.Schema, got.Items.Schema, at+"[]"); differ {
			return in, true
		}
	}
	if at == "" {
		at = "its rules for the whole object"
	}
	return at, true
}
