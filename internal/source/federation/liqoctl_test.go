package federation

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	"proffer.dev/proffer/test"
)

// names returns a Liqoctl that names slices one after the other.
func names() Liqoctl {
	n := 0
	return Liqoctl{Suffix: func() string { n++; return fmt.Sprintf("x%d", n) }}
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
	got := names().CreateSlice("milan", "gold", quantities(t, "cpu=3500m,memory=18Gi,pods=20,nvidia.com/gpu=2,ephemeral-storage=10Gi"))
	const want = "liqoctl create resourceslice milan-gold-x1 --remote-cluster-id milan --class gold --cpu 3500m --memory 18Gi --pods 20" +
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

func TestNamesOfSlicesAreShortAndDiffer(t *testing.T) {
	long := strings.Repeat("a", 39)
	seen := map[string]bool{}
	for _, provider := range []string{"milan", long, long + "-b"} {
		for range 2 {
			name := words(t, NewLiqoctl().CreateSlice(provider, "gold", nil))[2]
			if len(validation.IsDNS1123Label(name)) > 0 || len(name) > maxPrefix+1+suffixLength || strings.Contains(name, "--") || seen[name] {
				t.Errorf("it is named %s", name)
			}
			seen[name] = true
		}
	}
}
