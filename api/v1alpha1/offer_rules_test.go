package v1alpha1_test

import (
	"fmt"
	"strings"
)

var offerRules = []rule{
	{
		name:    "an offer has a source",
		valid:   []string{fixedOffer, "offer: {nodes: {}}", externalOffer("")},
		invalid: "offer: {}",
		want:    `spec.offer: Invalid value: set exactly one of fixed (these amounts, for each consumer), nodes (a share of some nodes), peers (a share of what other clusters give) and external (what a resource plugin of Liqo v0.x answers)`,
	},
	{
		name:    "an offer has one source",
		invalid: "offer: {fixed: {cpu: 2}, nodes: {}}",
		want:    `spec.offer: Invalid value: set exactly one of fixed (these amounts, for each consumer), nodes (a share of some nodes), peers (a share of what other clusters give) and external (what a resource plugin of Liqo v0.x answers)`,
	},
	{
		name:    "fixed is not empty",
		invalid: "offer: {fixed: {}}",
		want:    `spec.offer.fixed: Invalid value: 0: spec.offer.fixed in body should have at least 1 properties`,
	},
	{
		name:    "reserve goes with nodes",
		valid:   []string{"offer: {nodes: {}, reserve: {cpu: 500m}}"},
		invalid: "offer: {fixed: {cpu: 2}, reserve: {cpu: 500m}}",
		want:    `spec.offer: Invalid value: reserve applies to nodes and peers: with fixed, leave it out and write the amounts to offer; with external, leave it out`,
	},
	{
		name:    "percent goes with nodes",
		valid:   []string{"offer: {nodes: {}, percent: 50}"},
		invalid: "offer: {fixed: {cpu: 2}, percent: 50}",
		want:    `spec.offer: Invalid value: percent applies to nodes and peers: with fixed, leave it out and write the amounts to offer; with external, leave it out`,
	},
	{
		name: "percentages go with nodes",
		valid: []string{
			"offer: {nodes: {}, percentages: {cpu: 50}}", "offer: {nodes: {}, percent: 10, percentages: {cpu: 50}}",
		},
		invalid: "offer: {fixed: {cpu: 2}, percentages: {cpu: 50}}",
		want:    `spec.offer: Invalid value: percentages apply to nodes and peers: with fixed, leave them out and write the amounts to offer; with external, leave them out`,
	},
	{
		name:    "maxPercent goes with nodes",
		valid:   []string{"offer: {nodes: {}, maxPercent: 33}", "offer: {peers: {}, maxPercent: 100, max: {cpu: 1}}"},
		invalid: "offer: {fixed: {cpu: 2}, maxPercent: 33}",
		want:    `spec.offer: Invalid value: maxPercent applies to nodes and peers: with fixed and external, use max`,
	},
	{
		name:    "maxPercentages go with nodes",
		valid:   []string{"offer: {nodes: {}, maxPercent: 33, maxPercentages: {nvidia.com/gpu: 1}}"},
		invalid: "offer: {fixed: {cpu: 2}, maxPercentages: {cpu: 33}}",
		want:    `spec.offer: Invalid value: maxPercentages apply to nodes and peers: with fixed and external, use max`,
	},
	{
		name:    "maxPercent is at least 1",
		valid:   []string{"offer: {nodes: {}, maxPercent: 1}"},
		invalid: "offer: {nodes: {}, maxPercent: 0}",
		want:    `spec.offer.maxPercent: Invalid value: 0: spec.offer.maxPercent in body should be greater than or equal to 1`,
	},
	{
		name:    "maxPercent is at most 100",
		invalid: "offer: {nodes: {}, maxPercent: 101}",
		want:    `spec.offer.maxPercent: Invalid value: 101: spec.offer.maxPercent in body should be less than or equal to 100`,
	},
	{
		name:    "percent is at least 1",
		valid:   []string{"offer: {nodes: {}, percent: 1}"},
		invalid: "offer: {nodes: {}, percent: 0}",
		want:    `spec.offer.percent: Invalid value: 0: spec.offer.percent in body should be greater than or equal to 1`,
	},
	{
		name:    "percent is not negative",
		invalid: "offer: {nodes: {}, percent: -50}",
		want:    `spec.offer.percent: Invalid value: -50: spec.offer.percent in body should be greater than or equal to 1`,
	},
	{
		name:    "percent is at most 1000",
		valid:   []string{"offer: {nodes: {}, percent: 1000}"},
		invalid: "offer: {nodes: {}, percent: 1001}",
		want:    `spec.offer.percent: Invalid value: 1001: spec.offer.percent in body should be less than or equal to 1000`,
	},
	{
		name:    "percent is not huge",
		invalid: "offer: {nodes: {}, percent: 9223372036854775807}",
		want: `<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.offer.percent` + "\n" +
			`spec.offer.percent: Invalid value: 9223372036854775807: spec.offer.percent in body should be less than or equal to 1000`,
	},
	{
		name:    "percentages are at least 1",
		valid:   []string{"offer: {nodes: {}, percentages: {nvidia.com/gpu: 1}}"},
		invalid: "offer: {nodes: {}, percentages: {nvidia.com/gpu: 0}}",
		want:    `spec.offer.percentages.nvidia.com/gpu: Invalid value: 0: spec.offer.percentages.nvidia.com/gpu in body should be greater than or equal to 1`,
	},
	{
		name:    "percentages are at most 1000",
		valid:   []string{"offer: {nodes: {}, percentages: {nvidia.com/gpu: 1000}}"},
		invalid: "offer: {nodes: {}, percentages: {nvidia.com/gpu: 1001}}",
		want:    `spec.offer.percentages.nvidia.com/gpu: Invalid value: 1001: spec.offer.percentages.nvidia.com/gpu in body should be less than or equal to 1000`,
	},
	{
		name:    "percentages name resources",
		valid:   []string{"offer: {nodes: {}, percentages: {" + longestName + ": 50}}"},
		invalid: "offer: {nodes: {}, percentages: {not a name: 50}}",
		want:    `spec.offer.percentages: Invalid value: a key is the name of a resource, such as cpu, memory, pods or nvidia.com/gpu`,
	},
	{
		name:    "at most 64 percentages",
		valid:   []string{"offer: {nodes: {}, percentages: {" + numberedPairs("example.com/r", 64, "50") + "}}"},
		invalid: "offer: {nodes: {}, percentages: {" + numberedPairs("example.com/r", 65, "50") + "}}",
		want:    `spec.offer.percentages: Too many: 65: must have at most 64 items`,
	},
	{
		name: "a list of resources is not empty",
		valid: []string{
			"offer: {nodes: {}, resources: [cpu, memory, pods]}", "offer: {fixed: {cpu: 2}, resources: [cpu]}",
		},
		invalid: "offer: {nodes: {}, resources: []}",
		want:    `spec.offer.resources: Invalid value: 0: spec.offer.resources in body should have at least 1 items`,
	},
	{
		name:    "each resource once",
		invalid: "offer: {nodes: {}, resources: [cpu, cpu]}",
		want:    `spec.offer.resources[1]: Duplicate value: "cpu"`,
	},
	{
		name:    "a resource has a name",
		valid:   []string{"offer: {nodes: {}, resources: [" + longestName + "]}"},
		invalid: "offer: {nodes: {}, resources: [cpu/]}",
		want:    `spec.offer.resources[0]: Invalid value: "cpu/": write the name of a resource, such as cpu, memory, pods or nvidia.com/gpu`,
	},
	{
		name:    "a resource has a name that is not too long",
		invalid: "offer: {nodes: {}, resources: [" + longestName + "m]}",
		want:    `spec.offer.resources[0]: Too long: may not be more than 317 bytes`,
	},
	{
		name:    "at most 64 resources",
		valid:   []string{"offer: {nodes: {}, resources: [" + numbered("example.com/r", 64) + "]}"},
		invalid: "offer: {nodes: {}, resources: [" + numbered("example.com/r", 65) + "]}",
		want:    `spec.offer.resources: Too many: 65: must have at most 64 items`,
	},
	{
		name:    "nodes are counted in one of two ways",
		valid:   []string{"offer: {nodes: {count: Free}}", "offer: {nodes: {count: Allocatable}}"},
		invalid: "offer: {nodes: {count: free}}",
		want:    `spec.offer.nodes.count: Unsupported value: "free": supported values: "Free", "Allocatable"`,
	},
	{
		name:    "at most 64 tolerations",
		valid:   []string{"offer: {nodes: {tolerations: [" + repeated("{operator: Exists}", 64) + "]}}"},
		invalid: "offer: {nodes: {tolerations: [" + repeated("{operator: Exists}", 65) + "]}}",
		want:    `spec.offer.nodes.tolerations: Too many: 65: must have at most 64 items`,
	},
	{
		name:    "a selector of nodes has at most 64 labels",
		valid:   []string{"offer: {nodes: {selector: {matchLabels: {" + numberedPairs("k", 64, "v") + "}}}}"},
		invalid: "offer: {nodes: {selector: {matchLabels: {" + numberedPairs("k", 65, "v") + "}}}}",
		want:    `spec.offer.nodes.selector: Invalid value: a selector has at most 64 matchLabels: write fewer`,
	},
	{
		name: "a selector of nodes has at most 64 expressions",
		valid: []string{
			"offer: {nodes: {selector: {matchExpressions: [" + repeated("{key: a, operator: Exists}", 64) + "]}}}",
		},
		invalid: "offer: {nodes: {selector: {matchExpressions: [" + repeated("{key: a, operator: Exists}", 65) + "]}}}",
		want:    `spec.offer.nodes.selector: Invalid value: a selector has at most 64 matchExpressions: write fewer`,
	},
}

var sliceRules = []rule{
	{
		name:    "excess is capped or denied",
		valid:   []string{sliced("{onExcess: Cap}"), sliced("{onExcess: Deny}")},
		invalid: sliced("{onExcess: Grant}"),
		want:    `spec.slices.onExcess: Unsupported value: "Grant": supported values: "Cap", "Deny"`,
	},
	{
		name:    "defaults are quantities",
		valid:   []string{sliced("{defaults: {cpu: 1, memory: 1Gi, pods: 10}}"), sliced("{defaults: {}}")},
		invalid: sliced("{defaults: {memory: 100m}}"),
		want:    `spec.slices.defaults[memory]: Invalid value: "100m": ` + wholeMessage,
	},
	{
		name:    "node labels have keys of labels",
		valid:   []string{sliced("{nodeLabels: {tier: gold, example.com/tier: gold}}")},
		invalid: sliced("{nodeLabels: {a b: gold}}"),
		want:    `spec.slices.nodeLabels: Invalid value: a key is the key of a label, such as tier or example.com/tier`,
	},
	{
		name: "node labels have values of labels",
		valid: []string{
			sliced(`{nodeLabels: {tier: ""}}`), sliced("{nodeLabels: {tier: " + strings.Repeat("v", 63) + "}}"),
		},
		invalid: sliced("{nodeLabels: {tier: a b}}"),
		want:    `spec.slices.nodeLabels[tier]: Invalid value: "a b": write a label value: letters, digits, hyphens, underscores and dots, with a letter or digit first and last`,
	},
	{
		name:    "values of node labels are at most 63 long",
		invalid: sliced("{nodeLabels: {tier: " + strings.Repeat("v", 64) + "}}"),
		want:    `spec.slices.nodeLabels.tier: Too long: may not be more than 63 bytes`,
	},
	{
		name:    "at most 64 node labels",
		valid:   []string{sliced("{nodeLabels: {" + numberedPairs("k", 64, "v") + "}}")},
		invalid: sliced("{nodeLabels: {" + numberedPairs("k", 65, "v") + "}}"),
		want:    `spec.slices.nodeLabels: Too many: 65: must have at most 64 items`,
	},
	{
		name:    "a node selector has keys of labels",
		valid:   []string{sliced("{nodeSelector: {}}"), sliced("{nodeSelector: {dedicated: liqo}}")},
		invalid: sliced("{nodeSelector: {-a: b}}"),
		want:    `spec.slices.nodeSelector: Invalid value: a key is the key of a label, such as tier or example.com/tier`,
	},
	{
		name:    "a node selector has values of labels",
		invalid: sliced("{nodeSelector: {dedicated: -b}}"),
		want:    `spec.slices.nodeSelector[dedicated]: Invalid value: "-b": write a label value: letters, digits, hyphens, underscores and dots, with a letter or digit first and last`,
	},
	{
		name:    "a node key has the length of a label's key",
		valid:   []string{seated("nodeKey: " + longestName)},
		invalid: seated("nodeKey: a" + longestName),
		want:    `spec.slices.nodeKey: Too long: may not be more than 317 bytes`,
	},
	{
		name:    "request keys are labels",
		valid:   []string{seated("requestKeys: [zone, example.com/disk]"), seated("requestKeys: []")},
		invalid: seated("requestKeys: [zone, -disk]"),
		want:    `spec.slices.requestKeys[1]: Invalid value: "-disk": write the key of a label, such as zone or topology.kubernetes.io/zone`,
	},
	{
		name:    "at most 8 request keys",
		valid:   []string{seated("requestKeys: [" + numbered("k", 8) + "]")},
		invalid: seated("requestKeys: [" + numbered("k", 9) + "]"),
		want:    `spec.slices.requestKeys: Too many: 9: must have at most 8 items`,
	},
	{
		name:    "each request key once",
		invalid: seated("requestKeys: [zone, zone]"),
		want:    `spec.slices.requestKeys[1]: Duplicate value: "zone"`,
	},
	{
		name:    "storage classes have names",
		valid:   []string{sliced("{storageClasses: []}"), sliced("{storageClasses: [fast, slow.example.com]}")},
		invalid: sliced("{storageClasses: [a b]}"),
		want:    `spec.slices.storageClasses[0]: Invalid value: "a b": write the name of a class as its object has it, such as fast or example.com/internal`,
	},
	{
		name:    "at most 64 storage classes",
		valid:   []string{sliced("{storageClasses: [" + numbered("s", 64) + "]}")},
		invalid: sliced("{storageClasses: [" + numbered("s", 65) + "]}"),
		want:    `spec.slices.storageClasses: Too many: 65: must have at most 64 items`,
	},
	{
		name:    "ingress classes have names",
		valid:   []string{sliced("{ingressClasses: []}"), sliced("{ingressClasses: [nginx]}")},
		invalid: sliced(`{ingressClasses: ["nginx/"]}`),
		want:    `spec.slices.ingressClasses[0]: Invalid value: "nginx/": write the name of a class as its object has it, such as fast or example.com/internal`,
	},
	{
		name:    "at most 64 ingress classes",
		invalid: sliced("{ingressClasses: [" + numbered("i", 65) + "]}"),
		want:    `spec.slices.ingressClasses: Too many: 65: must have at most 64 items`,
	},
	{
		name:    "load balancer classes have names",
		valid:   []string{sliced("{loadBalancerClasses: []}"), sliced("{loadBalancerClasses: [example.com/internal]}")},
		invalid: sliced(`{loadBalancerClasses: [` + strings.Repeat("l", 254) + `]}`),
		want:    `spec.slices.loadBalancerClasses[0]: Too long: may not be more than 253 bytes`,
	},
	{
		name:    "at most 64 load balancer classes",
		invalid: sliced("{loadBalancerClasses: [" + numbered("l", 65) + "]}"),
		want:    `spec.slices.loadBalancerClasses: Too many: 65: must have at most 64 items`,
	},
}

// longestName is the longest name that a resource can have.
var longestName = strings.Repeat("p", 253) + "/" + strings.Repeat("n", 63)

func sliced(slices string) string {
	return "class: gold\n" + fixedOffer + "\nslices: " + slices
}

// seated returns a policy with fit: Node and a further field of slices.
func seated(field string) string {
	return fitting("{}", "{fit: Node, enforcePlacement: true, "+field+"}")
}

// numbered returns n different names: c0, c1 and so on.
func numbered(prefix string, n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return strings.Join(names, ", ")
}

// numberedPairs returns n pairs with different keys.
func numberedPairs(prefix string, n int, value string) string {
	pairs := make([]string, n)
	for i := range pairs {
		pairs[i] = fmt.Sprintf("%s%d: %s", prefix, i, value)
	}
	return strings.Join(pairs, ", ")
}

func repeated(item string, n int) string {
	return strings.TrimSuffix(strings.Repeat(item+", ", n), ", ")
}
