package main

import "slices"

// everything allows any package of this module.
const everything = "*"

// A rule is for the packages at a place and below it. The first rule that fits a package counts.
type rule struct {
	place string
	// may are the places of this module that they may import, besides their own.
	may []string
	// never are the packages of others that they may not import, except in tests.
	never []string
	// noClock forbids the functions in clock, except in tests.
	noClock bool
	// why is the reason, which every refusal ends with.
	why string
}

// kubernetes are what stays at the edge: Liqo's types and the machinery of clients. Plain words of
// the field, like labels, taints and quantities, are not among them.
var kubernetes = []string{
	"github.com/liqotech/liqo",
	"k8s.io/client-go",
	"sigs.k8s.io/controller-runtime",
}

// world is what a pure package must not import: input and output, loggers and wire formats.
var world = append([]string{
	"context",
	"log",
	"net",
	"os",
	"github.com/go-logr",
	"github.com/prometheus/client_golang",
	"go.uber.org/zap",
	"google.golang.org/grpc",
	"google.golang.org/protobuf",
	"k8s.io/klog",
}, kubernetes...)

// arithmetic are what the account and the offers must not import: they have types of their own for
// what they need of Kubernetes.
var arithmetic = append([]string{"k8s.io"}, world...)

// clock are the functions of package time that read the clock or wait for it. Values of time.Time
// and time.Duration that are passed in are plain values.
var clock = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

// core are the pure packages.
var core = []string{"internal/capacity", "internal/offer", "internal/grant"}

// room is what the controllers of one kind may import.
var room = append([]string{"api", "internal/table", "internal/kube", "internal/debounce", "internal/quantity", "internal/selection"}, core...)

// isLogr reports a logger that ToleratesTaint of k8s.io/api asks for.
func isLogr(p string) bool { return p == "github.com/go-logr" }

// testGround is what any test may use: the control plane, and the objects of tests.
var testGround = []string{"hack/controlplane", "internal/kubetest", "internal/source/nodes/nodestest"}

const (
	pure = "the core is pure: no input or output, clock, log, wire format or client"
	edge = "it converts between values of Kubernetes and of the core, and does nothing else"
	leaf = "it is a leaf that knows nothing of Proffer"
	kind = "each kind has a room of its own, and what several kinds share is a plain value in the table or the core"
	read = "readers of the table are of equal rank and know neither the engine nor each other"
)

// table is the house.
var table = []rule{
	{place: "api", never: []string{"github.com/liqotech/liqo", "k8s.io/client-go"}, why: "the API is types that any client can import"},
	{place: "proto", never: kubernetes, why: "it is Liqo's wire contract and nothing else"},
	{place: "internal/kube", why: leaf},
	{place: "internal/debounce", never: kubernetes, why: leaf},
	{
		place: "internal/kubetest", may: []string{"api", "internal/source/nodes/nodestest", "hack/controlplane"},
		why: "it builds objects for tests of any room",
	},
	{place: "internal/capacity", never: arithmetic, noClock: true, why: pure},
	{place: "internal/offer", may: []string{"internal/capacity"}, never: arithmetic, noClock: true, why: pure},
	{place: "internal/grant", may: []string{"internal/capacity", "internal/offer"}, never: world, noClock: true, why: pure},
	{place: "internal/quantity", may: []string{"internal/capacity"}, never: world, noClock: true, why: edge},
	{place: "internal/selection", may: []string{"internal/capacity"}, never: slices.DeleteFunc(slices.Clone(world), isLogr), noClock: true, why: edge},
	{
		place: "internal/table", may: core, never: append([]string{"google.golang.org/grpc"}, kubernetes...),
		why: "the table holds plain values of the core",
	},
	{
		place: "internal/engine", may: append([]string{"internal/table", "internal/debounce"}, core...), never: kubernetes,
		why: "the engine gathers plain values and knows no kind of object",
	},
	{
		place: "internal/source", may: []string{"internal/capacity", "internal/quantity", "internal/selection", "internal/kube", "proto"},
		why: "a source brings amounts to the ledger and knows nothing of offers",
	},
	// Of controller-runtime it takes the watcher of certificates, which is all that one does.
	{
		place: "internal/resourcereader", may: []string{"internal/capacity", "internal/table", "internal/offer", "proto"},
		never: []string{
			"github.com/liqotech/liqo", "k8s.io/client-go", "sigs.k8s.io/controller-runtime/pkg/client",
			"sigs.k8s.io/controller-runtime/pkg/cache", "sigs.k8s.io/controller-runtime/pkg/manager",
		},
		why: read,
	},
	{place: "internal/explain", may: []string{"internal/capacity", "internal/quantity", "internal/table", "internal/offer"}, never: kubernetes, why: read},
	{place: "controllers/policy", may: room, why: kind},
	{place: "controllers/consumer", may: room, why: kind},
	{place: "controllers/slice", may: room, why: kind},
	{place: "controllers/classlist", may: room, why: kind},
	{place: "controllers/offered", may: room, why: kind},
	{place: "operator", may: []string{everything}},
	{place: "cmd/proffer", may: []string{everything}},
	{place: "hack", may: []string{everything}},
	{place: "test", may: []string{everything}},
}
