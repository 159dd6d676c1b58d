package plugin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/test"
)

func TestAClusterIsEvaluatedWithoutAnOperatorAsWithOne(t *testing.T) {
	simulate := func(kubeconfig string, args ...string) (result, rest.Simulation) {
		t.Helper()
		r := kubectl(t.Context(), kubeconfig, append([]string{"proffer", "simulate", "--delete=gold-pool", "-o", "json"}, args...)...)
		var simulation rest.Simulation
		if r.status == 1 || r.status == 2 {
			decode(t, r.stdout, &simulation)
		}
		return r, simulation
	}
	kubeconfig := editor(t)
	operator := startOperator(t)
	populate(t, kubeconfig)
	_, want := simulate(cluster.admin)
	if len(want.Offers) == 0 || len(want.Policies) == 0 {
		t.Fatalf("nothing changes: %+v", want)
	}
	test.Must(t, operator.Stop(patience))

	r, got := simulate(cluster.admin, "--world=cluster")
	if len(got.Unknown) == 0 {
		t.Errorf("the answer does not say what it did not consider: %d %s%s", r.status, r.stdout, r.stderr)
	}
	got.Evaluated, got.Unknown = want.Evaluated, want.Unknown
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("exit status %d, -with +without an operator:\n%s", r.status, diff)
	}
	if table := kubectl(t.Context(), cluster.admin, "proffer", "simulate", "--delete=gold-pool", "--world=cluster"); table.status != r.status ||
		!strings.Contains(table.stdout, "Not considered:") {
		t.Errorf("%d %s%s", table.status, table.stdout, table.stderr)
	}

	refused, _ := simulate(kubeconfig, "--world=cluster")
	if missing := "--world=cluster: you may not list namespaces, watch namespaces, list nodes, watch nodes, and "; refused.status != 3 ||
		!strings.Contains(refused.stderr, missing) {
		t.Errorf("%d %s%s", refused.status, refused.stdout, refused.stderr)
	}
	elsewhere, _ := simulate(cluster.admin, "--operator-namespace=default")
	if hint := ": without an operator, write --world=cluster\n"; elsewhere.status != 3 || !strings.HasSuffix(elsewhere.stderr, hint) {
		t.Errorf("%d %s%s", elsewhere.status, elsewhere.stdout, elsewhere.stderr)
	}
}
