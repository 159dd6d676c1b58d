package federation

import (
	"crypto/sha256"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
)

// goldAt is an Offer of which the amounts were worked out so long after noon.
func goldAt(after time.Duration) *rest.FederationOffer {
	return &rest.FederationOffer{OfferStatus: v1alpha1.OfferStatus{Class: "gold", ObservedTime: metav1.NewTime(noon.Add(after))}}
}

// words returns what liqoctl would get from a shell.
func words(t *testing.T, command string) []string {
	t.Helper()
	rest, ok := strings.CutPrefix(command, "liqoctl ")
	if !ok {
		t.Fatalf("%s does not start liqoctl", command)
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\0' `+rest).Output()
	test.Must(t, err)
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

func TestTheCommandAsksForTheAmounts(t *testing.T) {
	got := Liqoctl{}.CreateSlice("milan", goldAt(0), quantities(t, "cpu=3500m,memory=18Gi,pods=20,nvidia.com/gpu=2,ephemeral-storage=10Gi"))
	const want = "liqoctl create resourceslice milan-gold-bdn9m --remote-cluster-id milan --class gold --cpu 3500m --memory 18Gi --pods 20" +
		" --resource ephemeral-storage=10Gi --resource nvidia.com/gpu=2"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAShellTakesEachWordAsItIs(t *testing.T) {
	for _, word := range []string{"$(touch x)", "`touch x`", "a b", "a'b", `a"b`, `a\b`, "", "*", "~", "a;b", "a\nb", "#", "!x", "é", "-x"} {
		if got := words(t, "liqoctl "+quoted(word)); !cmp.Equal(got, []string{word}) {
			t.Errorf("%q becomes %q", word, got)
		}
	}
}

// liqoctl changes a slice of the same name.
func TestNamesOfSlicesAreShortAndDifferWhereTheyAskForMore(t *testing.T) {
	name := func(provider string, after time.Duration, cpu string, flags ...string) string {
		return words(t, Liqoctl{flags}.CreateSlice(provider, goldAt(after), quantities(t, "cpu="+cpu)))[2]
	}
	long := strings.Repeat("a", 39)
	seen := map[string]bool{}
	for _, provider := range []string{"milan", long, long + "-b"} {
		for _, after := range []time.Duration{0, time.Second} {
			for _, cpu := range []string{"1", "2"} {
				got := name(provider, after, cpu)
				if len(validation.IsDNS1123Label(got)) > 0 || len(got) > maxPrefix+1+suffixLength || strings.Contains(got, "--") || seen[got] {
					t.Errorf("it is named %s", got)
				}
				seen[got] = true
			}
		}
	}
	if got := name("milan", 0, "1", "--context", "rome"); !seen[got] {
		t.Errorf("the same slice has another name in another terminal: %s", got)
	}
}

func TestEachOfSeveralSlicesHasAnotherNameThatStays(t *testing.T) {
	ask := func(cpu string) []string {
		return Liqoctl{}.CreateSlices("milan", goldAt(0), quantities(t, "cpu="+cpu), 50)
	}
	first, seen := ask("1"), map[string]bool{}
	for _, command := range slices.Concat(first, ask("2")) {
		got := words(t, command)[2]
		if len(validation.IsDNS1123Label(got)) > 0 || len(got) != len("milan-gold-")+suffixLength || seen[got] {
			t.Errorf("one is named %s", got)
		}
		seen[got] = true
	}
	if diff := cmp.Diff(first, ask("1")); diff != "" {
		t.Errorf("the same command prints others: %s", diff)
	}
	last := [sha256.Size]byte{0xff, 0xff, 0xff, 0xff}
	if suffixOf(last, 0) != "vvvvv" || suffixOf(last, 1) != "00000" {
		t.Errorf("after the last suffix, %s, comes %s", suffixOf(last, 0), suffixOf(last, 1))
	}
}
