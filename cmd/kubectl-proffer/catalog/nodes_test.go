package catalog

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/internal/source/federation"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/operatortest"
)

// forNodes returns what milan is asked for several nodes, and its Offer gold.
func forNodes(t *testing.T, fits string, nodes int, fit v1alpha1.SliceFit) (lines []string, gold *rest.FederationOffer) {
	t.Helper()
	amounts, err := federation.ParseAmounts(fits)
	test.Must(t, err)
	c := two(t)
	c.Providers[0].Offers[0].Fit = fit
	federation.Fit(c.Providers, amounts, nodes, federation.Liqoctl{})
	return commandsForNodes(c, amounts), &c.Providers[0].Offers[0]
}

func TestEachNodeHasACommand(t *testing.T) {
	lines, _ := forNodes(t, "cpu=1,memory=4Gi", 3, v1alpha1.FitNode)
	operatortest.Golden(t, "nodes.txt", lines)
	pool, _ := forNodes(t, "cpu=1,memory=8Gi", 2, "")
	const want = "The class grants from its pool: one of your nodes may be spread over several nodes."
	if got := pool[len(pool)-1]; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTooFewNodesAreAWarning(t *testing.T) {
	for _, tc := range []struct {
		fits  string
		nodes int
		fit   v1alpha1.SliceFit
		want  string
	}{
		{"cpu=1,memory=8Gi", 2, "", ""},
		{"cpu=1,memory=8Gi", 4, "", "its class gold has room for 2 ResourceSlices of these amounts now, fewer than 4"},
		{"nvidia.com/gpu=1", 3, v1alpha1.FitNode, "its class gold has room for 2 ResourceSlices of these amounts now, fewer than 3"},
		{"cpu=1,memory=1Gi", 4, v1alpha1.FitNode, "its class gold has 3 nodes with room for these amounts now, fewer than 4"},
	} {
		_, gold := forNodes(t, tc.fits, tc.nodes, tc.fit)
		amounts, err := federation.ParseAmounts(tc.fits)
		test.Must(t, err)
		if got := shortage(gold, amounts, tc.nodes); got != tc.want {
			t.Errorf("%s on %d: %q, want %q", tc.fits, tc.nodes, got, tc.want)
		}
	}
}

func TestAWrongNumberOfNodesIsRefused(t *testing.T) {
	for args, want := range map[string]string{
		"--fits=cpu=1 --nodes=0":         "--nodes=0: write 1 to 50",
		"--fits=cpu=1 --nodes=51":        "--nodes=51: write 1 to 50",
		"--nodes=7":                      "--nodes needs --fits, with what each node has, such as --fits=nvidia.com/gpu=4",
		"--fits=cpu=1 --nodes=1 --roles": "if any flags in the group [fits roles] are set none of the others can be; [fits roles] were all set",
	} {
		cmd := NewCommand(operatorclient.NewFlags(genericclioptions.NewConfigFlags(true)), genericiooptions.NewTestIOStreamsDiscard())
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(strings.Fields(args))
		if err := cmd.ExecuteContext(t.Context()); fmt.Sprint(err) != want {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
	}
}
