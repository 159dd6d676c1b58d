package status

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/exit"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/internal/overview"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/operatortest"
)

func TestTheTableIsAlignedAtAnyWidth(t *testing.T) {
	all := operatortest.Overview()
	for _, width := range []int{80, 160} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			got := lines(&all, width, false)
			operatortest.Golden(t, fmt.Sprintf("status-%d.txt", width), got)
			operatortest.Fits(t, width, got)
		})
	}
}

// call runs the command against an operator with this overview.
func call(t *testing.T, all any, code int, args ...string) (out string, status int) {
	t.Helper()
	s := operatortest.Start(t)
	s.Refuse(operatortest.OperatorPath("GET", rest.OverviewPath), operatortest.Refusal{Code: code, Body: all})
	streams, _, stdout, _ := genericiooptions.NewTestIOStreams()
	cmd := NewCommand(operatorclient.NewFlags(s.Flags()), streams)
	cmd.SetArgs(append([]string{}, args...)) // Nil stands for those of the test.
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	status, printed := exit.Of(cmd, err)
	if printed {
		return stdout.String() + err.Error(), status
	}
	return stdout.String(), status
}

func TestTheExitStatusIsThatOfTheWorstFinding(t *testing.T) {
	finding := func(status string) rest.Overview {
		return rest.Overview{
			Evaluated: operatortest.Evaluated, Now: operatortest.Evaluated.Time, Status: status,
			Findings: []rest.Finding{{Kind: "news", Status: status, Message: "m.", Do: "d"}},
		}
	}
	none := rest.Overview{Evaluated: operatortest.Evaluated, Now: operatortest.Evaluated.Time, Status: rest.StatusOK}
	for name, tc := range map[string]struct {
		all  any
		code int
		want int
		out  string
	}{
		"nothing":        {none, 200, 0, "Nothing needs you.\nEvaluated at 2026-11-23T12:00:00Z, revision 42.\n"},
		"a warning":      {finding(rest.StatusWarning), 200, 1, "news   warning   -     m. -> d\n"},
		"wrong":          {finding(rest.StatusWrong), 200, 2, "news   wrong    -     m. -> d\n"},
		"a later status": {finding("worse"), 200, 2, "news   worse    -     m. -> d\n"},
		"an older operator": {"404 page not found", 404, exit.Failed,
			"the operator in namespace proffer-system does not serve /overview: it is too old for this plugin"},
	} {
		t.Run(name, func(t *testing.T) {
			if out, status := call(t, tc.all, tc.code); status != tc.want || !strings.Contains(out, tc.out) {
				t.Errorf("exit status %d, want %d:\n%s", status, tc.want, out)
			}
			if out, status := call(t, tc.all, tc.code, "-o", "json"); status != tc.want || tc.code == 200 && !strings.Contains(out, `"revision": 42`) {
				t.Errorf("with -o json, exit status %d, want %d:\n%s", status, tc.want, out)
			}
		})
	}
}

func TestWhatAConsumerWritesBeginsNoLine(t *testing.T) {
	all := operatortest.Overview()
	all.Findings = all.Findings[:1]
	all.Findings[0].Message, all.Findings[0].Do, all.Unknown = "a\nb\x1b[2J", "c\nd", []string{"e\nf"}
	for _, width := range []int{0, 80} {
		text := strings.Join(lines(&all, width, false), "\n")
		for _, want := range []string{`a\nb\x1b[2J`, `-> c\nd`, `e\nf`} {
			if !strings.Contains(text, want) {
				t.Errorf("no %s in %q", want, text)
			}
		}
	}
}

// A consumer chooses the names of resources, and so where a line breaks.
func TestWhatAConsumerWritesIsNoCommand(t *testing.T) {
	all := operatortest.Overview()
	all.Findings = all.Findings[:1]
	all.Findings[0].Message = `denied: asks for the resource " -> kubectl delete ns liqo --wait=false": write a name.`
	for _, width := range []int{0, 80, 100, 120, 160} {
		if text := strings.Join(lines(&all, width, false), "\n"); strings.Count(text, "->") != 1 || !strings.Contains(text, "-> "+all.Findings[0].Do) {
			t.Fatalf("at %d:\n%s", width, text)
		}
	}
}

// The page shows the table of TestTheTableIsAlignedAtAnyWidth, each kind and each exit status.
func TestTheDocsShowTheTableAndListEachKind(t *testing.T) {
	text := test.Read(t, "../../../docs/reference/commands/status.md")
	table := test.Read(t, "testdata/status-80.txt")
	want := []string{
		"```text\n" + table + "```\n", fmt.Sprintf("at most %d of a kind and status, at most %d of them of one consumer", overview.MaxRows, overview.MaxOfOne),
		"\n| 0 | nothing needs you |\n", "\n| 1 | ", "\n| 2 | ", fmt.Sprintf("\n| %d | an error |\n", exit.Failed),
	}
	for _, kind := range overview.Kinds {
		want = append(want, "\n| `"+kind+"` | ")
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("the page lacks\n%s", w)
		}
	}
	for _, line := range []string{"0 if nothing needs you", "1 for warnings", "2 if something is wrong", "3 for an error"} {
		if !strings.Contains(NewCommand(&operatorclient.Flags{}, genericiooptions.NewTestIOStreamsDiscard()).Long, line) {
			t.Errorf("--help lacks %q", line)
		}
	}
}
