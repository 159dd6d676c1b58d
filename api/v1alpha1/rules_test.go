package v1alpha1_test

import (
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
)

// rule is one rule of the CRD or of config/admission, with specs that keep it and one that violates
// it.
type rule struct {
	name  string
	valid []string
	// invalid violates this rule and no other.
	invalid string
	// want is the complete refusal: the field and the message.
	want string
}

func TestEveryRuleRefusesWhatBreaksIt(t *testing.T) {
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			for _, spec := range r.valid {
				if got := refusals(t, spec); got != nil {
					t.Errorf("refused:\n%s\n%s", spec, strings.Join(got, "\n"))
				}
			}
			if diff := cmp.Diff(r.want, strings.Join(refusals(t, r.invalid), "\n")); diff != "" {
				t.Errorf("refusals of (-want +got):\n%s\n%s", r.invalid, diff)
			}
		})
	}
}

func rules() []rule {
	return slices.Concat(specRules, consumerRules, offerRules, peersRules, externalRules, quantityRules, nameRules, sliceRules, catalogRules)
}

// Without this test, a new rule could lack a test, and an existing rule could lose its effect
// unnoticed.
func TestEveryMessageOfTheAPIServerIsInATest(t *testing.T) {
	messages := map[string]bool{}
	for _, message := range admissionMessages(t) {
		messages[message] = true
	}
	visit(schema(t), func(s *apiextensionsv1.JSONSchemaProps) {
		for _, validation := range s.XValidations {
			messages[validation.Message] = true
		}
	})
	if len(messages) < 20 {
		t.Fatalf("only %d messages found", len(messages))
	}
	for message := range messages {
		if !slices.ContainsFunc(rules(), func(r rule) bool { return strings.Contains(r.want, message) }) {
			t.Errorf("no test has the message: %s", message)
		}
	}
}

// quoted matches a string literal in a CEL expression.
var quoted = regexp.MustCompile(`'([^']*)'`)

// admissionMessages returns the messages of config/admission, without the field that precedes each.
func admissionMessages(t *testing.T) []string {
	t.Helper()
	text := test.Read(t, filepath.Join("..", "..", "config", "admission", "resourcepolicy.yaml"))
	first, _, _ := strings.Cut(text, "\n---\n")
	var policy admissionv1.ValidatingAdmissionPolicy
	test.Must(t, yaml.UnmarshalStrict([]byte(first), &policy))
	var messages []string
	for _, v := range policy.Spec.Validations {
		texts := quoted.FindAllStringSubmatch(v.MessageExpression, -1)
		if len(texts) == 0 {
			t.Fatalf("%s has no message", v.Expression)
		}
		messages = append(messages, texts[len(texts)-1][1])
	}
	return messages
}

const placementNeedsLabels = `spec: Invalid value: enforcePlacement needs labels of nodes: set slices.nodeSelector, or matchLabels in offer.nodes.selector`

const (
	fitNeedsNodes = `spec: Invalid value: fit: Node grants from nodes of this cluster: set offer.nodes with count Free, or fit: Pool`
	fitForKeys    = `spec: Invalid value: nodeKey and requestKeys are for fit: Node: set fit: Node, or leave them out`
)

// fitting returns a policy of nodes with slices.
func fitting(nodes, slices string) string {
	return "class: gold\noffer: {nodes: " + nodes + "}\nslices: " + slices
}

// The messages of config/admission on amounts are those of the operator.
func TestTheAPIServerAndTheOperatorHaveTheSameRulesOnAmounts(t *testing.T) {
	messages := admissionMessages(t)
	for _, message := range []string{
		v1alpha1.AmountNotAQuantity, v1alpha1.AmountNegative, v1alpha1.AmountTooLargeBinary, v1alpha1.AmountTooLarge,
		v1alpha1.AmountTooLargeCPU, v1alpha1.AmountTooFineCPU, v1alpha1.AmountNotWhole,
	} {
		if !slices.Contains(messages, message) {
			t.Errorf("config/admission does not have: %s", message)
		}
	}
}

// schema returns the schema of the CRD of policies.
func schema(t *testing.T) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	return schemaOf(t, filepath.Join(crdDirectory, "proffer.dev_resourcepolicies.yaml"))
}

// schemaOf returns the schema of the CRD in a file.
func schemaOf(t *testing.T, file string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	text := test.Read(t, file)
	var crd apiextensionsv1.CustomResourceDefinition
	test.Must(t, yaml.UnmarshalStrict([]byte(text), &crd))
	if len(crd.Spec.Versions) != 1 {
		t.Fatalf("want one version, got %d", len(crd.Spec.Versions))
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// visit calls do for the schema and all schemas in it.
func visit(schema *apiextensionsv1.JSONSchemaProps, do func(*apiextensionsv1.JSONSchemaProps)) {
	do(schema)
	for _, property := range schema.Properties {
		visit(&property, do)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		visit(schema.AdditionalProperties.Schema, do)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		visit(schema.Items.Schema, do)
	}
}

// refusals returns the errors of the API server for a policy with this spec, nil for none.
func refusals(t *testing.T, spec string) []string {
	t.Helper()
	return refusalsOf(t, policy(t, "candidate", spec))
}

// refusalsOf returns the errors of the API server for an object, nil for none.
func refusalsOf(t *testing.T, candidate client.Object) []string {
	t.Helper()
	err := api.Create(t.Context(), candidate, client.DryRunAll, strict)
	if err == nil {
		return nil
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		t.Fatal(err)
	}
	if status.ErrStatus.Details == nil || len(status.ErrStatus.Details.Causes) == 0 {
		return []string{status.ErrStatus.Message}
	}
	var found []string
	for _, cause := range status.ErrStatus.Details.Causes {
		_, denied, byPolicy := strings.Cut(cause.Message,
			"ValidatingAdmissionPolicy 'proffer-resourcepolicy' with binding 'proffer-resourcepolicy' denied request: ")
		switch {
		case byPolicy: // The message names the field.
			found = append(found, denied)
		// The API server adds this line whenever it stops early. It is not about the policy.
		case !strings.Contains(cause.Message, "some validation rules were not checked"):
			found = append(found, cause.Field+": "+cause.Message)
		}
	}
	return found
}

const fixedOffer = "offer: {fixed: {cpu: 2, memory: 2G, pods: 10}}"

var specRules = []rule{
	{
		name:    "an offer is required",
		valid:   []string{fixedOffer},
		invalid: "class: gold",
		want:    `spec.offer: Required value`,
	},
	{
		name:    "class is not default",
		valid:   []string{"class: gold\n" + fixedOffer, "class: default-2\n" + fixedOffer},
		invalid: "class: default\n" + fixedOffer,
		want:    `spec.class: Invalid value: "default": Liqo answers the class default itself: choose another name, or leave class out for the unnamed pool`,
	},
	{
		name:    "class is a label",
		valid:   []string{`class: ""` + "\n" + fixedOffer, "class: g\n" + fixedOffer, "class: gold-2\n" + fixedOffer},
		invalid: "class: Gold\n" + fixedOffer,
		want:    `spec.class: Invalid value: "Gold": a class is a DNS-1123 label: write lower-case letters, digits and hyphens, with a letter or digit first and last, such as gold`,
	},
	{
		name:    "class does not end in a hyphen",
		invalid: "class: gold-\n" + fixedOffer,
		want:    `spec.class: Invalid value: "gold-": a class is a DNS-1123 label: write lower-case letters, digits and hyphens, with a letter or digit first and last, such as gold`,
	},
	{
		name:    "class is at most 63 long",
		valid:   []string{"class: " + strings.Repeat("c", 63) + "\n" + fixedOffer},
		invalid: "class: " + strings.Repeat("c", 64) + "\n" + fixedOffer,
		want:    `spec.class: Too long: may not be more than 63 bytes`,
	},
	{
		name:    "priority is an int32",
		valid:   []string{"priority: -2147483648\n" + fixedOffer, "priority: 2147483647\n" + fixedOffer},
		invalid: "priority: 2147483648\n" + fixedOffer,
		want:    `<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.priority`,
	},
	{
		name:    "a consumer is paused once",
		valid:   []string{"pausedConsumers: [{clusterID: rome}, {clusterID: oslo, until: \"2026-12-01T05:00:00Z\"}]\n" + fixedOffer},
		invalid: "pausedConsumers: [{clusterID: rome}, {clusterID: rome}]\n" + fixedOffer,
		want:    `spec.pausedConsumers[1]: Duplicate value: {"clusterID":"rome"}`,
	},
	{
		name:    "mode is one of four",
		valid:   []string{"mode: Active\n" + fixedOffer, "mode: Paused\n" + fixedOffer, "mode: Stopped\n" + fixedOffer, "mode: DryRun\n" + fixedOffer},
		invalid: "mode: dryrun\n" + fixedOffer,
		want:    `spec.mode: Unsupported value: "dryrun": supported values: "Active", "Paused", "Stopped", "DryRun"`,
	},
	{
		name:    "pausedUntil goes with a pause",
		valid:   []string{"mode: Paused\npausedUntil: 2026-12-01T06:00:00Z\n" + fixedOffer},
		invalid: "pausedUntil: 2026-12-01T06:00:00Z\n" + fixedOffer,
		want:    `spec: Invalid value: pausedUntil ends a pause: set mode to Paused, or leave pausedUntil out`,
	},
	{
		name: "reclaim is one of three",
		valid: []string{
			"reclaim: Unused\n" + fixedOffer, "reclaim: Evict\n" + fixedOffer, "reclaim: Retain\n" + fixedOffer,
		},
		invalid: "reclaim: Never\n" + fixedOffer,
		want:    `spec.reclaim: Unsupported value: "Never": supported values: "Unused", "Evict", "Retain"`,
	},
	{
		name:    "the threshold is not negative",
		valid:   []string{"updateThresholdPercent: 0\n" + fixedOffer},
		invalid: "updateThresholdPercent: -1\n" + fixedOffer,
		want:    `spec.updateThresholdPercent: Invalid value: -1: spec.updateThresholdPercent in body should be greater than or equal to 0`,
	},
	{
		name:    "the threshold is at most 100",
		valid:   []string{"updateThresholdPercent: 100\n" + fixedOffer},
		invalid: "updateThresholdPercent: 101\n" + fixedOffer,
		want:    `spec.updateThresholdPercent: Invalid value: 101: spec.updateThresholdPercent in body should be less than or equal to 100`,
	},
	{
		name:    "slices need a class",
		valid:   []string{"class: gold\nslices: {}\n" + fixedOffer},
		invalid: "slices: {}\n" + fixedOffer,
		want:    `spec: Invalid value: slices answers the ResourceSlices of a class: set class, or leave slices out`,
	},
	{
		name:    "slices need a class that is not empty",
		invalid: `class: ""` + "\nslices: {}\n" + fixedOffer,
		want:    `spec: Invalid value: slices answers the ResourceSlices of a class: set class, or leave slices out`,
	},
	{
		name: "enforced placement needs labels of nodes",
		valid: []string{
			sliced("{enforcePlacement: true, nodeSelector: {pool: gold}}"), sliced("{enforcePlacement: false, nodeSelector: {}}"),
			"class: gold\noffer: {nodes: {selector: {matchLabels: {pool: gold}}}}\nslices: {enforcePlacement: true}",
			"class: gold\noffer: {peers: {}}\nslices: {enforcePlacement: true}",
		},
		invalid: sliced("{enforcePlacement: true}"),
		want:    placementNeedsLabels,
	},
	{
		name: "a fit of nodes needs nodes of this cluster",
		valid: []string{
			fitting("{count: Free}", "{fit: Node, enforcePlacement: true, nodeKey: example.com/name, requestKeys: [zone, disk]}"),
			fitting("{}", "{fit: Node, enforcePlacement: true, nodeSelector: {pool: gold}}"),
			fitting("{count: Allocatable}", "{fit: Pool}"), sliced("{fit: Pool}"),
		},
		invalid: sliced("{fit: Node, enforcePlacement: true}"),
		want:    fitNeedsNodes,
	},
	{
		name:    "a fit of nodes needs what their pods leave free",
		invalid: fitting("{count: Allocatable}", "{fit: Node, enforcePlacement: true}"),
		want:    fitNeedsNodes,
	},
	{
		name:    "a fit of nodes needs enforced placement",
		invalid: fitting("{}", "{fit: Node}"),
		want:    `spec: Invalid value: fit: Node needs pods that stay on the node of the answer: set enforcePlacement: true, or fit: Pool`,
	},
	{
		name:    "a pool has no label of a node",
		invalid: fitting("{}", "{nodeKey: zone}"),
		want:    fitForKeys,
	},
	{
		name:    "requests choose nodes only of a fit of nodes",
		invalid: fitting("{}", "{fit: Pool, requestKeys: [zone]}"),
		want:    fitForKeys,
	},
	{
		name:    "the label of a node is required once",
		invalid: fitting("{}", "{fit: Node, enforcePlacement: true, nodeSelector: {kubernetes.io/hostname: n1}}"),
		want:    `spec: Invalid value: with fit: Node, the answer names the node by nodeKey: remove that label from nodeSelector`,
	},
	{
		name:    "a fit is Pool or Node",
		invalid: fitting("{}", "{fit: Rack}"),
		want:    `spec.slices.fit: Unsupported value: "Rack": supported values: "Pool", "Node"`,
	},
	{
		name:    "a label of a node is a label",
		invalid: fitting("{}", "{fit: Node, enforcePlacement: true, nodeKey: a b}"),
		want:    `spec.slices.nodeKey: Invalid value: "a b": write the key of a label, such as zone or topology.kubernetes.io/zone`,
	},
	{
		name:    "enforced placement needs a selector that is not emptied",
		invalid: "class: gold\noffer: {nodes: {selector: {matchLabels: {pool: gold}}}}\nslices: {enforcePlacement: true, nodeSelector: {}}",
		want:    placementNeedsLabels,
	},
	{
		name:    "enforced placement needs equality, not expressions",
		invalid: "class: gold\noffer: {nodes: {selector: {matchExpressions: [{key: pool, operator: Exists}]}}}\nslices: {enforcePlacement: true}",
		want:    placementNeedsLabels,
	},
	{
		name:    "unknown keys are refused",
		invalid: "percent: 50\n" + fixedOffer,
		want:    `ResourcePolicy in version "v1alpha1" cannot be handled as a ResourcePolicy: strict decoding error: unknown field "spec.percent"`,
	},
	{
		name:    "unknown keys are refused deep inside",
		invalid: "offer: {nodes: {selektor: {}}}",
		want:    `ResourcePolicy in version "v1alpha1" cannot be handled as a ResourcePolicy: strict decoding error: unknown field "spec.offer.nodes.selektor"`,
	},
}

var consumerRules = []rule{
	{
		name: "consumers are named or picked, not both",
		valid: []string{
			"consumers: {}\n" + fixedOffer,
			"consumers: {clusterIDs: [rome, 32f0b45b-5c06-4cc4-84b6-03a323ffc93d]}\n" + fixedOffer,
			"consumers: {selector: {matchLabels: {tier: gold}}}\n" + fixedOffer,
			"consumers: {selector: {}}\n" + fixedOffer,
		},
		invalid: "consumers: {clusterIDs: [rome], selector: {matchLabels: {tier: gold}}}\n" + fixedOffer,
		want:    `spec.consumers: Invalid value: set clusterIDs or selector, not both: use a second policy or override for the other consumers`,
	},
	{
		name:    "a list of cluster IDs is not empty",
		invalid: "consumers: {clusterIDs: []}\n" + fixedOffer,
		want:    `spec.consumers.clusterIDs: Invalid value: 0: spec.consumers.clusterIDs in body should have at least 1 items`,
	},
	{
		name:    "at most 256 cluster IDs",
		valid:   []string{"consumers: {clusterIDs: [" + numbered("c", 256) + "]}\n" + fixedOffer},
		invalid: "consumers: {clusterIDs: [" + numbered("c", 257) + "]}\n" + fixedOffer,
		want:    `spec.consumers.clusterIDs: Too many: 257: must have at most 256 items`,
	},
	{
		name:    "each cluster ID once",
		invalid: "consumers: {clusterIDs: [rome, rome]}\n" + fixedOffer,
		want:    `spec.consumers.clusterIDs[1]: Duplicate value: "rome"`,
	},
	{
		name:    "a cluster ID is a label",
		invalid: "consumers: {clusterIDs: [Rome]}\n" + fixedOffer,
		want:    `spec.consumers.clusterIDs[0]: Invalid value: "Rome": a cluster ID is a lower-case UUID or a DNS-1123 label, such as rome: write it as Liqo shows it`,
	},
	{
		name:    "a cluster ID is at most 63 long",
		valid:   []string{"consumers: {clusterIDs: [" + strings.Repeat("c", 63) + "]}\n" + fixedOffer},
		invalid: "consumers: {clusterIDs: [" + strings.Repeat("c", 64) + "]}\n" + fixedOffer,
		want:    `spec.consumers.clusterIDs[0]: Too long: may not be more than 63 bytes`,
	},
	{
		name:    "a selector of consumers has at most 64 labels",
		valid:   []string{"consumers: {selector: {matchLabels: {" + numberedPairs("k", 64, "v") + "}}}\n" + fixedOffer},
		invalid: "consumers: {selector: {matchLabels: {" + numberedPairs("k", 65, "v") + "}}}\n" + fixedOffer,
		want:    `spec.consumers.selector: Invalid value: a selector has at most 64 matchLabels: write fewer`,
	},
	{
		name: "a selector of consumers has at most 64 expressions",
		valid: []string{
			"consumers: {selector: {matchExpressions: [" + repeated("{key: a, operator: Exists}",
				64) + "]}}\n" + fixedOffer,
		},
		invalid: "consumers: {selector: {matchExpressions: [" + repeated("{key: a, operator: Exists}",
			65) + "]}}\n" + fixedOffer,
		want: `spec.consumers.selector: Invalid value: a selector has at most 64 matchExpressions: write fewer`,
	},
	{
		name: "an override says who it is for",
		valid: []string{
			fixedOffer + "\noverrides: [{consumers: {selector: {}}, offer: {fixed: {cpu: 8}}}]",
			fixedOffer + "\noverrides: [{consumers: {filter: 'true'}, offer: {fixed: {cpu: 8}}}]",
		},
		invalid: fixedOffer + "\noverrides: [{consumers: {}, offer: {fixed: {cpu: 8}}}]",
		want:    `spec.overrides[0].consumers: Invalid value: an override needs consumers: set clusterIDs, selector or filter`,
	},
	{
		name:    "a filter of consumers is not empty",
		valid:   []string{"consumers: {clusterIDs: [rome], filter: 'true'}\n" + fixedOffer},
		invalid: "consumers: {filter: ''}\n" + fixedOffer,
		want:    `spec.consumers.filter: Invalid value: "": spec.consumers.filter in body should be at least 1 chars long`,
	},
	{
		name:    "a filter of nodes has at most 1024 characters",
		valid:   []string{"offer: {nodes: {filter: '" + strings.Repeat("x", 1024) + "'}}"},
		invalid: "offer: {nodes: {filter: '" + strings.Repeat("x", 1025) + "'}}",
		want:    `spec.offer.nodes.filter: Too long: may not be more than 1024 bytes`,
	},
	{
		name:    "an override needs consumers",
		invalid: fixedOffer + "\noverrides: [{offer: {fixed: {cpu: 8}}}]",
		want:    `spec.overrides[0].consumers: Required value`,
	},
	{
		name:    "an override names its consumers in one way",
		invalid: fixedOffer + "\noverrides: [{consumers: {clusterIDs: [rome], selector: {}}, offer: {fixed: {cpu: 8}}}]",
		want:    `spec.overrides[0].consumers: Invalid value: set clusterIDs or selector, not both: use a second policy or override for the other consumers`,
	},
	{
		name: "an override changes something",
		valid: []string{
			fixedOffer + "\noverrides: [{consumers: {clusterIDs: [rome]}, offer: {max: {cpu: 8}}}]",
			fixedOffer + "\noverrides: [{consumers: {clusterIDs: [rome]}, offer: {fixed: {cpu: 8}, max: {memory: 1Gi}}}]",
			"offer: {nodes: {}}\noverrides: [{consumers: {clusterIDs: [rome]}, offer: {maxPercent: 50}}]",
			"offer: {nodes: {}}\noverrides: [{consumers: {clusterIDs: [rome]}, offer: {maxPercentages: {cpu: 50}}}]",
		},
		invalid: fixedOffer + "\noverrides: [{consumers: {clusterIDs: [rome]}, offer: {}}]",
		want:    `spec.overrides[0].offer: Invalid value: an override needs a change: set fixed, max, maxPercent or maxPercentages`,
	},
	{
		name:    "shares of an override go with nodes",
		invalid: fixedOffer + "\noverrides: [{consumers: {clusterIDs: [rome]}, offer: {maxPercent: 50}}]",
		want:    `spec: Invalid value: maxPercent and maxPercentages of an override apply to nodes and peers: with fixed and external, use max`,
	},
	{
		name:    "an override needs an offer",
		invalid: fixedOffer + "\noverrides: [{consumers: {clusterIDs: [rome]}}]",
		want:    `spec.overrides[0].offer: Required value`,
	},
	{
		name:    "fixed of an override is not empty",
		invalid: fixedOffer + "\noverrides: [{consumers: {clusterIDs: [rome]}, offer: {fixed: {}}}]",
		want:    `spec.overrides[0].offer.fixed: Invalid value: 0: spec.overrides[0].offer.fixed in body should have at least 1 properties`,
	},
	{
		name:    "max of an override is not empty",
		invalid: fixedOffer + "\noverrides: [{consumers: {clusterIDs: [rome]}, offer: {max: {}}}]",
		want:    `spec.overrides[0].offer.max: Invalid value: 0: spec.overrides[0].offer.max in body should have at least 1 properties`,
	},
	{
		name: "at most 64 overrides",
		valid: []string{
			fixedOffer + "\noverrides: [" + repeated("{consumers: {clusterIDs: [rome]}, offer: {fixed: {cpu: 8}}}",
				64) + "]",
		},
		invalid: fixedOffer + "\noverrides: [" + repeated("{consumers: {clusterIDs: [rome]}, offer: {fixed: {cpu: 8}}}",
			65) + "]",
		want: `spec.overrides: Too many: 65: must have at most 64 items`,
	},
}
