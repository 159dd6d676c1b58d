package check

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/test"
)

func TestARowSaysWhatToDo(t *testing.T) {
	r := newReport([]Finding{
		{"crds", OK, "All CRDs are installed.", ""},
		{"liqo-address", Wrong, "Liqo v0.8 reads pools.", "Add the component flat."},
	})
	want := &output.Table{Header: []string{"CHECK", "STATUS", "FINDING"}, Text: true, Rows: []output.Row{
		{Cells: []string{"crds", "ok", "All CRDs are installed."}},
		{Cells: []string{"liqo-address", "wrong", "Liqo v0.8 reads pools.\n-> Add the component flat."}, Red: true},
	}}
	if diff := cmp.Diff(want, r.table()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheReportAsJSON(t *testing.T) {
	out, err := json.Marshal(newReport([]Finding{{"crds", OK, "fine", ""}, {"rights", Warning, "not fine", "mend it"}}))
	test.Must(t, err)
	const want = `{"status":"warning","findings":[` +
		`{"check":"crds","status":"ok","message":"fine"},{"check":"rights","status":"warning","message":"not fine","do":"mend it"}]}`
	if diff := cmp.Diff(want, string(out)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

func TestTheWeightiestFindingDecidesTheExitStatus(t *testing.T) {
	cases := map[string]struct {
		found []Status
		want  int
	}{
		"nothing":    {nil, 0},
		"all ok":     {[]Status{OK, OK}, 0},
		"skipped":    {[]Status{Skipped, OK}, 1},
		"a warning":  {[]Status{Warning, Skipped}, 1},
		"wrong":      {[]Status{OK, Wrong, Warning}, 2},
		"wrong last": {[]Status{Skipped, Wrong}, 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var findings []Finding
			for _, s := range c.found {
				findings = append(findings, Finding{Status: s})
			}
			if got := newReport(findings).Status.ExitStatus(); got != c.want {
				t.Errorf("exit status %d, want %d", got, c.want)
			}
		})
	}
}
