package v1alpha1_test

var peersRules = []rule{
	{
		name:    "there is one of peers and nodes",
		invalid: "offer: {nodes: {}, peers: {}}",
		want: `spec.offer: Invalid value: set exactly one of fixed (these amounts, for each consumer), nodes (a share of some nodes), ` +
			`peers (a share of what other clusters give) and external (what a resource plugin of Liqo v0.x answers)`,
	},
	{
		name: "the share of nodes goes with peers",
		valid: []string{
			"offer: {peers: {}, reserve: {cpu: 2}, percent: 90, percentages: {memory: 50}, max: {cpu: 2}, resources: [cpu]}",
			"offer: {peers: {selector: {matchLabels: {region: eu}}, count: Allocatable, depth: 8}}",
		},
		invalid: "offer: {peers: {count: All}}",
		want:    `spec.offer.peers.count: Unsupported value: "All": supported values: "Free", "Allocatable"`,
	},
	{
		name:    "peers are named in one way",
		valid:   []string{"offer: {peers: {clusterIDs: [milan, oslo]}}"},
		invalid: "offer: {peers: {clusterIDs: [milan], selector: {}}}",
		want:    `spec.offer.peers: Invalid value: set clusterIDs or selector, not both`,
	},
	{
		name:    "a list of peers is not empty",
		invalid: "offer: {peers: {clusterIDs: []}}",
		want:    `spec.offer.peers.clusterIDs: Invalid value: 0: spec.offer.peers.clusterIDs in body should have at least 1 items`,
	},
	{
		name:    "a peer has the ID of a cluster",
		invalid: "offer: {peers: {clusterIDs: [Milan]}}",
		want: `spec.offer.peers.clusterIDs[0]: Invalid value: "Milan": a cluster ID is a lower-case UUID or a DNS-1123 label, ` +
			`such as rome: write it as Liqo shows it`,
	},
	{
		name:    "what is resold is not what the cluster has itself",
		invalid: "offer: {peers: {depth: 0}}",
		want:    `spec.offer.peers.depth: Invalid value: 0: spec.offer.peers.depth in body should be greater than or equal to 1`,
	},
	{
		name:    "a depth has a bound",
		invalid: "offer: {peers: {depth: 9}}",
		want:    `spec.offer.peers.depth: Invalid value: 9: spec.offer.peers.depth in body should be less than or equal to 8`,
	},
}
