package check

import (
	"cmp"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/manifests"
)

const (
	checkCRDs   Check  = "crds"
	installHelp string = "Apply the manifests of this version: see docs/how-to/install.md."
)

// ownCRDs returns the CRDs that this version of the tool was built with, for an operator with these flags.
func ownCRDs(f flags) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	objects, err := manifests.Read(append([]string{"crd/bases/*.yaml"}, f.inComponents("crd.yaml")...)...)
	if err != nil {
		return nil, err
	}
	all := make([]*apiextensionsv1.CustomResourceDefinition, len(objects))
	for i, o := range objects {
		all[i] = &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, all[i], true); err != nil {
			return nil, fmt.Errorf("reading CRD %s: %w", o.GetName(), err)
		}
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
	at := "all fields"
	if served.Schema != nil && served.Schema.OpenAPIV3Schema != nil {
		at = firstDifference(wanted.Schema.OpenAPIV3Schema, served.Schema.OpenAPIV3Schema, "")
	}
	if at == "" {
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

// firstDifference compares a schema at a field, "" for the whole object, with one of the API server. It returns the
// field with the first difference, in the order of the names, such as spec.offer.max, and "" if there is none.
func firstDifference(want, got *apiextensionsv1.JSONSchemaProps, at string) string {
	if apiequality.Semantic.DeepEqual(want, got) {
		return ""
	}
	for _, name := range sets.List(sets.KeySet(want.Properties).Union(sets.KeySet(got.Properties))) {
		below := strings.TrimPrefix(at+"."+name, ".")
		w, wanted := want.Properties[name]
		g, there := got.Properties[name]
		if !wanted || !there {
			return below
		}
		if in := firstDifference(&w, &g, below); in != "" {
			return in
		}
	}
	if want.Items != nil && got.Items != nil && want.Items.Schema != nil && got.Items.Schema != nil {
		if in := firstDifference(want.Items.Schema, got.Items.Schema, at+"[]"); in != "" {
			return in
		}
	}
	return cmp.Or(at, "its rules for the whole object")
}
