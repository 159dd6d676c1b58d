package main

import "slices"

// everything allows any package of this module.
const everything = "*"

// A rule applies to the packages at a place and below it. The first rule that matches a package
// counts.
type rule struct {
	place string
	// may lists the places of this module that they may import, besides their own.
	may []string
	// never lists packages of other modules that they must not import, except in tests.
	never []string
	// tests are the places of this module that only their tests may import.
	tests []string
	// noClock forbids the functions in clock, except in tests.
	noClock bool
	// why is the reason that every problem ends with.
	why string
}

// kubernetes lists what must stay at the edge: Liqo's types and the machinery of clients. The types
// of labels, taints and quantities are not on the list.
var kubernetes = []string{
	"github.com/liqotech/liqo",
	"k8s.io/client-go",
	"sigs.k8s.io/controller-runtime",
}

// noClient lists what a package must not import that uses other parts of controller-runtime than its client:
// controllers, or the watcher of certificates.
var noClient = []string{
	"github.com/liqotech/liqo",
	"k8s.io/client-go",
	"sigs.k8s.io/controller-runtime/pkg/cache",
	"sigs.k8s.io/controller-runtime/pkg/client",
	"sigs.k8s.io/controller-runtime/pkg/manager",
}

// world lists what a pure package must not import: input and output, loggers and wire formats.
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

// arithmetic lists what the ledger and the offers must not import: they have their own types for
// what they need of Kubernetes.
var arithmetic = append([]string{"k8s.io"}, world...)

// clock lists the functions of package time that read the clock or wait for it. Values of type
// time.Time and time.Duration may be passed in.
var clock = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

// core are the pure packages.
var core = []string{"internal/capacity", "internal/offer", "internal/grant"}

// perKind lists what the controllers of one kind may import.
var perKind = append([]string{
	"api", "internal/table", "internal/kube", "internal/debounce", "internal/quantity", "internal/selection",
	"internal/filter", "internal/visible",
}, core...)

// isContext is for package filter: CEL looks at a context to end an evaluation.
func isContext(path string) bool { return path == "context" }

// isLogr reports whether p is the logger package, which ToleratesTaint of k8s.io/api requires.
func isLogr(p string) bool { return p == "github.com/go-logr" }

// testHelpers lists what any test may import: the control plane, and what is below test: databases, builders
// of objects, and what all tests share.
var testHelpers = []string{"hack/controlplane", "test"}

const (
	pure = "the core is pure: no input or output, clock, log, wire format or client"
	edge = "it converts between values of Kubernetes and of the core, and does nothing else"
	leaf = "it is a leaf that knows nothing of Proffer"
	kind = "each kind has a package of its own, and kinds share only plain values of the table or the core"
	read = "readers of the table import neither the engine nor each other"
)

// table has the rules for all packages.
var table = []rule{
	{
		place: "api", never: []string{"github.com/liqotech/liqo", "k8s.io/client-go"},
		why: "the API is types that any client can import",
	},
	{
		place: "plugin", may: []string{"api"}, never: []string{"github.com/liqotech/liqo"},
		why: "others write their plugins against it",
	},
	{place: "proto", never: kubernetes, why: "it is Liqo's wire contract and nothing else"},
	{place: "internal/kube", may: []string{"internal/visible"}, why: leaf},
	{place: "internal/debounce", never: kubernetes, why: leaf},
	{place: "internal/visible", never: world, noClock: true, why: leaf},
	{
		place: "test/kubetest",
		may:   []string{"api", "hack/controlplane", "test"},
		why:   "it builds objects for the tests of any package",
	},
	{
		place: "test/dbtest", may: []string{"hack/tether", "test"}, never: kubernetes,
		why: "it starts databases, and knows nothing of what is kept in them",
	},
	{place: "internal/capacity", never: arithmetic, noClock: true, why: pure},
	{place: "internal/offer", may: []string{"internal/capacity"}, never: arithmetic, noClock: true, why: pure},
	{
		place: "internal/grant", may: []string{"internal/capacity", "internal/offer"}, never: world, noClock: true,
		why: pure,
	},
	{place: "internal/quantity", may: []string{"internal/capacity"}, never: world, noClock: true, why: edge},
	{
		place: "internal/selection", may: []string{"internal/capacity"},
		never: slices.DeleteFunc(slices.Clone(world), isLogr), noClock: true, why: edge,
	},
	{
		place: "internal/filter", may: []string{"internal/capacity", "internal/offer", "internal/quantity", "internal/kube"},
		never: slices.DeleteFunc(slices.Clone(world), isContext), noClock: true, why: edge,
	},
	{
		place: "internal/policy", may: append([]string{
			"api", "config", "internal/table", "internal/quantity", "internal/selection", "internal/filter", "internal/kube",
		}, core...),
		never: []string{"github.com/liqotech/liqo", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, noClock: true,
		why: edge,
	},
	{
		place: "internal/toggle", may: []string{"api"}, never: []string{"github.com/liqotech/liqo"},
		why: "it writes for callers of the HTTP API, and knows nothing of the table",
	},
	{
		place: "internal/rehearse/world", may: append([]string{
			"api", "internal/policy", "internal/rehearse", "internal/table", "internal/quantity", "internal/source/nodes",
			"internal/kube", "internal/kube/jsonstream", "internal/visible",
		}, core...),
		never: kubernetes, tests: []string{"internal/engine", "internal/debounce", "internal/controllers/policy"}, why: edge,
	},
	{
		place: "internal/rehearse",
		may:   append([]string{"api/v1alpha1", "internal/table", "internal/engine/evaluation"}, core...),
		never: arithmetic, noClock: true, why: pure,
	},
	{
		place: "internal/catalog", may: append([]string{"api", "internal/table", "internal/quantity"}, core...),
		never: world, noClock: true, why: pure,
	},
	{
		place: "internal/trends", may: []string{"internal/capacity", "internal/offer", "internal/table"},
		never: world, noClock: true, why: pure,
	},
	{
		place: "internal/overview",
		may:   append([]string{"api", "internal/table", "internal/trends", "internal/kube", "internal/visible"}, core...),
		never: world, noClock: true, why: pure,
	},
	{place: "internal/broker", may: []string{"internal/capacity"}, never: arithmetic, noClock: true, why: pure},
	{
		place: "internal/table", may: append([]string{"api/v1alpha1"}, core...),
		never: append([]string{"google.golang.org/grpc"}, kubernetes...), why: "the table holds plain values of the core",
	},
	{
		place: "internal/engine/evaluation", may: append([]string{"internal/table"}, core...),
		never: arithmetic, noClock: true, why: pure,
	},
	{
		place: "internal/engine", may: append([]string{"internal/table", "internal/debounce"}, core...),
		never: kubernetes,
		why:   "the engine gathers plain values and knows no kind of object",
	},
	{
		place: "test/nodestest", may: []string{"test"},
		why: "it builds objects for the tests of any package",
	},
	{
		place: "internal/source/consumers", may: []string{"internal/kube", "internal/offer"},
		why: "it brings consumers to the engine, and knows nothing of what they are offered",
	},
	{
		place: "internal/source/federation",
		may:   []string{"api", "internal/capacity", "internal/kube", "internal/quantity", "internal/visible"},
		why:   "it brings what other clusters publish, and knows nothing of what this one offers",
	},
	{
		place: "internal/source/devices/inventory", may: []string{"internal/capacity", "internal/quantity"},
		never: slices.DeleteFunc(slices.Clone(world), isContext), noClock: true, why: pure,
	},
	{
		place: "internal/source",
		may: []string{
			"internal/capacity", "internal/quantity", "internal/selection", "internal/debounce", "internal/kube",
			"internal/visible", "proto",
		},
		why: "a source brings amounts to the ledger and knows nothing of offers",
	},
	{
		place: "internal/plugins/filters",
		may: []string{
			"api", "plugin", "internal/capacity", "internal/offer", "internal/table", "internal/quantity", "internal/kube",
			"internal/visible", "internal/filter/memo",
		},
		never: kubernetes, why: "it asks filters for evaluations, and knows nothing of what these come to",
	},
	{
		place: "internal/plugins/reconcilers",
		may: []string{
			"plugin", "internal/table", "internal/capacity", "internal/offer", "internal/quantity", "internal/debounce",
			"internal/kube",
		},
		never: noClient,
		tests: []string{"api/v1alpha1", "internal/grant"}, why: "it hands over what the table has, and writes nothing",
	},
	// The package uses only the watcher of certificates of controller-runtime.
	{
		place: "internal/resourcereader",
		may:   []string{"internal/bounded", "internal/capacity", "internal/table", "internal/offer", "proto"},
		never: noClient, why: read,
	},
	{place: "internal/bounded", never: kubernetes, why: "it bounds callers, and knows nothing of what is served"},
	// The package uses only the watcher of certificates of controller-runtime.
	{
		place: "internal/web/outside", may: []string{"api", "internal/bounded"},
		never: noClient, why: "it bounds callers, and knows nothing of what it serves",
	},
	{
		place: "internal/web",
		may: []string{
			"api", "internal/policy", "internal/source/consumers", "internal/source/federation", "internal/toggle",
			"internal/overview",
			"internal/trends", "internal/capacity", "internal/catalog", "internal/rehearse", "internal/table",
			"internal/offer", "internal/plugins/filters", "internal/visible", "internal/quantity",
		},
		never: kubernetes, tests: []string{"internal/grant"}, why: read,
	},
	{
		place: "internal/metasync",
		may: []string{
			"api", "internal/table", "internal/trends", "internal/offer", "internal/grant", "internal/kube",
		},
		never: noClient,
		tests: []string{"internal/capacity"}, why: read,
	},
	{place: "internal/controllers/policy", may: append([]string{"internal/policy"}, perKind...), why: kind},
	{place: "internal/controllers/slice", may: perKind, tests: []string{"internal/rehearse/world"}, why: kind},
	{place: "internal/controllers/classlist", may: perKind, why: kind},
	{place: "internal/controllers/placement", may: perKind, why: kind},
	{place: "internal/controllers/podsecurity", may: perKind, why: kind},
	{place: "internal/controllers/offered", may: perKind, tests: []string{"internal/policy"}, why: kind},
	{place: "internal/controllers/catalog", may: append([]string{"internal/catalog"}, perKind...), why: kind},
	{
		place: "internal/controllers/orchestration",
		may:   append([]string{"internal/broker", "internal/source/federation"}, perKind...), why: kind,
	},
	{place: "internal/operator", may: []string{everything}},
	{place: "internal/command", may: []string{everything}},
	{place: "operator", may: []string{"plugin", "internal/command"}, why: "it is the public face of the command line"},
	{place: "config", why: "it embeds the manifests and does nothing else"},
	{place: "cmd/proffer", may: []string{"operator"}, why: "what it adds to the operator anybody can add"},
	{place: "cmd/kubectl-proffer", may: []string{everything}},
	{place: "hack", may: []string{everything}},
	{place: "test", may: []string{everything}},
}
