package command

import (
	"errors"
	"flag"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/golden"
)

// helpOf returns what --help prints.
func helpOf(t *testing.T, arg string) string {
	t.Helper()
	var help strings.Builder
	if _, err := parseFlags([]string{arg}, &help, Program{}); !errors.Is(err, pflag.ErrHelp) {
		t.Fatalf("got %v", err)
	}
	return help.String()
}

func TestThePageOfFlagsIsCurrent(t *testing.T) {
	golden.File(t, "../../docs/reference/flags.md", "# Flags of the operator\n\n"+
		"What `proffer --help` prints. A [configuration file](plugins.md#the-configuration-file) may hold every flag but\n"+
		"`--config`, and the [glossary](../explanation/glossary.md) defines the terms.\n\n"+
		"```text\n"+helpOf(t, "--help")+"```\n")
}

func TestHelpListsEachFlagOnceInItsGroup(t *testing.T) {
	group, got := "", map[string][]string{}
	flags := regexp.MustCompile(`^(?:  -h, |      )--([a-z-]+)`)
	for line := range strings.SplitSeq(helpOf(t, "--help"), "\n") {
		if title, ok := strings.CutSuffix(line, ":"); ok && !strings.HasPrefix(line, " ") {
			group = title
		}
		if match := flags.FindStringSubmatch(line); match != nil {
			got[group] = append(got[group], match[1])
		}
	}
	want := map[string][]string{
		"General": {"help", "version", "config", "kubeconfig", "batch-period", "node-grace-period"},
		"gRPC, for Liqo v0.6 to v0.10": {
			"grpc-bind-address", "grpc-form", "grpc-flat-bind-address", "grpc-tls-cert", "grpc-tls-key",
			"grpc-client-ca",
		},
		"ResourceSlices, for Liqo v1": {"served-classes", "other-served-class", "placements", "offloaded-pod-security", "publish-offers", "publish-offers-qps", "offers-subject", "federation", "orchestrate", "cluster-id", "legacy-toggle"},
		"HTTP": {
			"metrics-bind-address", "health-probe-bind-address", "pprof-bind-address", "catalog-bind-address",
			"catalog-tls-cert-file", "catalog-tls-key-file", "catalog-anonymous",
		},
		"Leader election": {"leader-elect", "leader-election-namespace"},
		"Logs": {
			"zap-log-level", "zap-encoder", "zap-time-encoding", "zap-stacktrace-level", "zap-devel",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if helpOf(t, "-h") != helpOf(t, "--help") {
		t.Error("-h and --help print different texts")
	}
}

func TestHelpListsTheFlagsOfOtherPackages(t *testing.T) {
	others := flag.NewFlagSet("", flag.ContinueOnError)
	config.RegisterFlags(others)
	new(zap.Options).BindFlags(others)
	help := helpOf(t, "--help")
	others.VisitAll(func(f *flag.Flag) {
		if !strings.Contains(help, "      --"+f.Name) {
			t.Errorf("help does not name --%s", f.Name)
		}
	})
}

func TestEachFlagIsExplainedInOneSentence(t *testing.T) {
	// A point within a version number does not end a sentence.
	sentence := regexp.MustCompile(`^[A-Z][^.]*(?:\.\S[^.]*)*\.$`)
	for _, g := range new(commandOptions).flagGroups() {
		g.flags.VisitAll(func(f *pflag.Flag) {
			if _, usage := pflag.UnquoteUsage(f); !sentence.MatchString(usage) {
				t.Errorf("--%s: %q is not one sentence", f.Name, usage)
			}
		})
	}
}

func TestTheDefaultsInTheHelpAreTheRealOnes(t *testing.T) {
	help := strings.Join(strings.Fields(helpOf(t, "--help")), " ")
	for _, want := range []string{
		`ends the wait. (default 100ms)`, `0 disables it. (default 2m0s)`, `Liqo reads offers. (default ":6001")`, `v0.6 to v0.8. (default pools)`,
		`(default ":8443")`, `(default ":8081")`, `this many Offers. (default 20)`, `for more subjects. (default [User:{clusterID}])`,
	} {
		if !strings.Contains(help, want) {
			t.Errorf("the help has no %s:\n%s", want, help)
		}
	}
	// The defaults of zap, as its output shows them.
	var log strings.Builder
	o, err := parseFlags(nil, io.Discard, Program{})
	test.Must(t, err)
	logger := zap.New(zap.UseFlagOptions(&o.zap), zap.WriteTo(&log))
	logger.V(1).Info("a detail")
	logger.Info("a message")
	logger.Error(errors.New("a reason"), "an error")
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(help, "a larger one logs more. (default info)") {
		t.Errorf("the lowest level is not info, or the help has another default:\n%s", log.String())
	}
	if !strings.HasPrefix(lines[0], `{"level":"info","ts":"`) ||
		!strings.Contains(help, "json or console. (default json)") {
		t.Errorf("%s is not json, or the help has another default", lines[0])
	}
	if ts := regexp.MustCompile(`"ts":"([^"]+)"`).FindStringSubmatch(lines[0]); ts == nil ||
		!strings.Contains(help, "or nano. (default rfc3339)") {
		t.Errorf("no ts in %s, or the help has another default", lines[0])
	} else if _, err := time.Parse(time.RFC3339, ts[1]); err != nil {
		t.Error(err)
	}
	if strings.Contains(lines[0], "stacktrace") || !strings.Contains(lines[1], "stacktrace") ||
		!strings.Contains(help, "error or panic. (default error)") {
		t.Errorf("not only errors have stack traces, or the help has another default:\n%s", log.String())
	}
}

func TestHelpIsAsWideAsTheTerminal(t *testing.T) {
	widest := func(text string) (n int) {
		for line := range strings.SplitSeq(text, "\n") {
			n = max(n, len(line))
		}
		return n
	}
	if n := widest(helpOf(t, "--help")); n > minHelpWidth {
		t.Errorf("%d columns without a terminal, want at most %d", n, minHelpWidth)
	}
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no pseudo-terminals on this machine:", err)
	}
	defer func() { _ = terminal.Close() }()
	for columns, want := range map[uint16]int{40: minHelpWidth, 100: 100, 300: maxHelpWidth} {
		test.Must(t, unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ,
			&unix.Winsize{Row: 24, Col: columns}))
		if got := helpWidth(terminal); got != want {
			t.Errorf("a terminal of %d columns: %d columns of help, want %d", columns, got, want)
		}
	}
}
