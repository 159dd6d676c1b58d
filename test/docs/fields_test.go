// Package docs checks the pages for readers, and writes those of docs/reference that come from the code:
// `go test ./test/docs -update`.
package docs

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/golden"
)

const (
	root = "../.."
	dir  = root + "/docs/reference"
)

// fieldsPage is a page about fields of objects.
type fieldsPage struct {
	intro string
	parts []fieldsPart
}

// fieldsPart is a part of an object, such as spec, with the file of its CRD.
type fieldsPart struct{ title, crd, name string }

var fieldsPages = map[string]fieldsPage{
	"resourcepolicy.md": {
		"# ResourcePolicy: fields of spec\n\n" +
			"Each field. [Amounts and names](amounts.md), [which policy decides](../explanation/policies.md),\n" +
			"[terms](../explanation/glossary.md).\n",
		[]fieldsPart{{"", "config/crd/bases/proffer.dev_resourcepolicies.yaml", "spec"}},
	},
	"objects.md": {
		"# Status of policies, Grants and Offers\n\n" +
			"Each field that the operator writes. [Conditions](conditions.md) has the conditions and their reasons, and the\n" +
			"[glossary](../explanation/glossary.md) defines the terms.\n",
		[]fieldsPart{
			{"status of a ResourcePolicy", "config/crd/bases/proffer.dev_resourcepolicies.yaml", "status"},
			{"spec of a Grant", "config/crd/bases/proffer.dev_grants.yaml", "spec"},
			{"status of an Offer", "config/components/catalog/crd.yaml", "status"},
		},
	},
	"orchestration.md": {
		"# Orchestration: fields\n\n" +
			"Each field of an Orchestration, as `kubectl explain orch` describes it. [The broker](../explanation/broker.md)\n" +
			"explains the choice, and the [glossary](../explanation/glossary.md) defines the terms.\n",
		[]fieldsPart{
			{"spec", "config/components/orchestrator/crd.yaml", "spec"},
			{"status", "config/components/orchestrator/crd.yaml", "status"},
		},
	},
	"providerchoice.md": {
		"# ProviderChoice: fields\n\n" +
			"Each field of a ProviderChoice, which a consumer of a broker writes. [The broker](../explanation/broker.md) explains\n" +
			"the choice, and the [glossary](../explanation/glossary.md) defines the terms.\n",
		[]fieldsPart{
			{"spec", "config/components/orchestrator/providerchoice_crd.yaml", "spec"},
			{"status", "config/components/orchestrator/providerchoice_crd.yaml", "status"},
		},
	},
}

func TestThePagesOfFieldsAreCurrent(t *testing.T) {
	for name, page := range fieldsPages {
		t.Run(name, func(t *testing.T) { golden.File(t, filepath.Join(dir, name), page.text(t)) })
	}
}

func (p fieldsPage) text(t *testing.T) string {
	text := p.intro
	for _, part := range p.parts {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		content := test.Read(t, filepath.Join(root, part.crd))
		test.Must(t, yaml.Unmarshal([]byte(content), crd))
		if part.title != "" {
			text += "\n## " + part.title + "\n"
		}
		text += "\n| field | type | |\n|---|---|---|\n"
		schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[part.name]
		rows := fieldRows{seen: map[string]string{}}
		rows.add(&schema, "")
		text += rows.text.String()
	}
	return text
}

// fieldRows are rows of a table. A field with the name and the text of an earlier one refers to that one.
type fieldRows struct {
	text strings.Builder
	seen map[string]string
}

func (f *fieldRows) add(of *apiextensionsv1.JSONSchemaProps, prefix string) {
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		p := of.Properties[name]
		path, text := prefix+name, strings.Join(strings.Fields(p.Description), " ")
		first := f.seen[name+text]
		if first != "" && text != "" {
			text = "As `" + first + "`."
		}
		fmt.Fprintf(&f.text, "| `%s` | %s | %s |\n", path, typeOf(&p), strings.ReplaceAll(text, "|", `\|`))
		if first != "" {
			continue
		}
		f.seen[name+text] = path
		// Kubernetes describes its own types.
		if slices.Contains([]string{"selector", "tolerations", "conditions"}, name) {
			continue
		}
		f.add(&p, path+".")
		if p.Items != nil {
			f.add(p.Items.Schema, path+"[].")
		}
		if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
			f.add(p.AdditionalProperties.Schema, path+".*.")
		}
	}
}

// typeOf names the type of a field. The values of an enumeration are its type.
func typeOf(p *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case p.XIntOrString:
		return "amount"
	case p.Items != nil:
		return "[]" + typeOf(p.Items.Schema)
	case p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil:
		return "map of " + typeOf(p.AdditionalProperties.Schema)
	case p.Format == "date-time":
		return "time"
	case len(p.Enum) > 0:
		var values []string
		for _, v := range p.Enum {
			values = append(values, strings.Trim(string(v.Raw), `"`))
		}
		return strings.Join(values, ", ")
	}
	return p.Type
}
