package main

// everything allows any package of this module.
const everything = "*"

// A rule is for the packages at a place and below it.
type rule struct {
	place string
	// may are the places of this module that they may import, beside their own.
	may []string
	// never are the packages of others that they may not, except in tests.
	never []string
}

// kubernetes are what stays at the edge: Liqo's types and the machinery of clients.
// Plain words of the field, like labels, taints and quantities, are not among them.
var kubernetes = []string{
	"github.com/liqotech/liqo",
	"k8s.io/client-go",
	"sigs.k8s.io/controller-runtime",
}

// world is what a pure package has nothing to do with.
var world = append([]string{
	"context",
	"log",
	"net",
	"os",
	"google.golang.org/grpc",
	"github.com/prometheus/client_golang",
}, kubernetes...)

// core are the pure packages.
var core = []string{"internal/capacity", "internal/offer", "internal/grant"}

// room is what the controllers of one kind may import.
var room = append([]string{"api", "internal/table", "internal/kube", "internal/debounce"}, core...)

// testGround is what any test may use: the control plane, and the objects of tests.
var testGround = []string{"hack/controlplane", "internal/kubetest", "internal/source/nodes/nodestest"}

// table is the house: the first rule that fits counts.
var table = []rule{
	{place: "api", never: []string{"github.com/liqotech/liqo", "k8s.io/client-go"}},
	{place: "proto", never: kubernetes},
	{place: "internal/capacity", never: world},
	{place: "internal/offer", may: []string{"internal/capacity"}, never: world},
	{place: "internal/grant", may: []string{"internal/capacity", "internal/offer"}, never: world},
	{place: "internal/table", may: core, never: append([]string{"google.golang.org/grpc"}, kubernetes...)},
	{place: "internal/engine", may: append([]string{"internal/table", "internal/debounce"}, core...), never: kubernetes},
	// Of controller-runtime it takes the watcher of certificates, which is all that one does.
	{
		place: "internal/resourcereader", may: []string{"internal/capacity", "internal/table", "internal/offer", "proto"},
		never: []string{
			"github.com/liqotech/liqo", "k8s.io/client-go", "sigs.k8s.io/controller-runtime/pkg/client",
			"sigs.k8s.io/controller-runtime/pkg/cache", "sigs.k8s.io/controller-runtime/pkg/manager",
		},
	},
	{place: "internal/explain", may: []string{"internal/capacity", "internal/table", "internal/offer"}, never: kubernetes},
	{place: "internal/kube"},
	{place: "internal/kubetest", may: []string{"api", "internal/source/nodes/nodestest", "hack/controlplane"}},
	{place: "internal/debounce", never: kubernetes},
	{place: "internal/source", may: []string{"internal/capacity", "internal/kube", "proto"}},
	// Each kind has a room of its own, and no room imports another one.
	{place: "controllers/policy", may: room},
	{place: "controllers/consumer", may: room},
	{place: "controllers/slice", may: room},
	{place: "controllers/classlist", may: room},
	{place: "controllers/offered", may: room},
	{place: "operator", may: []string{everything}},
	{place: "cmd/proffer", may: []string{everything}},
	{place: "hack", may: []string{everything}},
	{place: "test", may: []string{everything}},
}
