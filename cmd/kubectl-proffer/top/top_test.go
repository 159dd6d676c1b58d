package top

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/operatortest"
)

func TestTablesAreAlignedAtAnyWidth(t *testing.T) {
	offers, world := operatortest.Offers(), operatortest.World()
	nodes, total, err := nodeRows(&offers, &world)
	test.Must(t, err)
	shapes, err := shapeRows(&world)
	test.Must(t, err)
	for name, table := range map[string]*output.Table{
		"policies": policiesTable(policyRows(&offers), ""), "consumers": consumersTable(consumerRows(&offers, &world), ""),
		"nodes": nodesTable(nodes, ""), "total": totalTable(total, ""), "shapes": shapesTable(shapes, ""),
	} {
		for _, width := range []int{80, 160} {
			t.Run(fmt.Sprintf("%s at %d", name, width), func(t *testing.T) {
				lines := table.Lines(width, false)
				operatortest.Golden(t, fmt.Sprintf("%s-%d.txt", name, width), lines)
				operatortest.Fits(t, width, lines)
			})
		}
	}
}

func TestAmountsAreRoundedForPeopleAndExactInWide(t *testing.T) {
	offers, world := operatortest.Offers(), operatortest.World()
	rome := &offers.Consumers[2].Offers[1]
	rome.Resources, rome.Used = operatortest.Amounts("memory", "69363721830"), operatortest.Amounts("memory", "69363721829")
	offers.Consumers, world.Slices = offers.Consumers[2:3], nil
	offers.Consumers[0].Offers = offers.Consumers[0].Offers[1:]
	for format, want := range map[string]string{
		"":          "rome gold memory 69363721830 16Gi 69363721829 99% 0",
		output.Wide: "rome gold memory 69363721830 16Gi 69363721829 99% 0",
	} {
		if got := strings.Join(consumersTable(consumerRows(&offers, &world), format).Rows[0].Cells, " "); got != want {
			t.Errorf("%q: got %q, want %q", format, got, want)
		}
	}
	rome.Resources = operatortest.Amounts("memory", "1")
	if got := strings.Join(consumersTable(consumerRows(&offers, &world), "").Rows[0].Cells, " "); got != "rome gold memory 1 16Gi 64.5Gi >999% 0" {
		t.Errorf("of a byte: got %q", got)
	}
	rome.Resources, rome.Used = operatortest.Amounts("memory", "69363721830"), operatortest.Amounts("memory", "8Gi")
	for format, want := range map[string]string{"": "rome gold memory 64.5Gi 16Gi 8Gi 12% 0", output.Wide: "rome gold memory 69363721830 16Gi 8Gi 12% 0"} {
		if got := strings.Join(consumersTable(consumerRows(&offers, &world), format).Rows[0].Cells, " "); got != want {
			t.Errorf("%q: got %q, want %q", format, got, want)
		}
	}
}

func TestJSONHasTheRowsWithExactAmounts(t *testing.T) {
	offers, world := operatortest.Offers(), operatortest.World()
	for name, tc := range map[string]struct {
		rows any
		want string
	}{
		"policies": {policyRows(&offers)[0], `{"policy":"gold-pool","class":"gold","reason":"Offering","nodes":3,"resource":"cpu",` +
			`"capacity":"7","committed":"4","used":"3500m","remaining":"3","offered":"10","offeredPercent":142}`},
		"a policy of fixed amounts": {policyRows(&offers)[5],
			`{"policy":"standard","class":"","reason":"Offering","resource":"cpu","used":"0","offered":"6"}`},
		"consumers": {consumerRows(&offers, &world)[3],
			`{"consumer":"rome","class":"gold","resource":"cpu","offered":"6","granted":"3","used":"2500m","usedPercent":41,"waiting":"1"}`},
	} {
		if got, err := json.Marshal(tc.rows); err != nil || string(got) != tc.want {
			t.Errorf("%s: %v\ngot  %s\nwant %s", name, err, got, tc.want)
		}
	}
}

// Of 9 cores and 3 GPUs pods have 1 core and a GPU. A node that is not Ready is in no shape.
func TestShapesCountTheNodesOfAPolicyByWhatIsFree(t *testing.T) {
	node := func(name, state string, pairs ...string) rest.WorldNode {
		return rest.WorldNode{Name: name, State: state, Labels: map[string]string{"pool": "gold", "zone": "north"}, Allocatable: operatortest.Amounts(pairs...)}
	}
	amounts := []string{"cpu", "9", "memory", "16Gi", "pods", "10", "nvidia.com/gpu", "3"}
	world := rest.World{
		Policies: operatortest.World().Policies[:1],
		Nodes:    []rest.WorldNode{node("a", "Ready", amounts...), node("b", "Ready", amounts...), node("c", "NotReady", amounts...)},
		Pods: []rest.WorldPod{
			{UID: "p", Node: "a", Requests: operatortest.Amounts("cpu", "1", "nvidia.com/gpu", "1")}, {UID: "q", Node: "b", Consumer: "rome"},
		},
	}
	got, err := shapeRows(&world)
	test.Must(t, err)
	text, err := json.Marshal(got)
	test.Must(t, err)
	want := `[{"policy":"gold-pool","nodes":1,"free":{"cpu":"8","memory":"16Gi","nvidia.com/gpu":"3"}},` +
		`{"policy":"gold-pool","nodes":1,"free":{"cpu":"8","memory":"16Gi","nvidia.com/gpu":"2"}}]`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func TestRowsAreSortedByTheLargestAmountOfAColumn(t *testing.T) {
	row := func(consumer, name, used string) consumerRow {
		offered := map[string]string{"cpu": "4", "memory": "4Gi"}[name]
		return consumerRow{Consumer: consumer, Resource: name, Used: new(resource.MustParse(used)), Offered: new(resource.MustParse(offered))}
	}
	rows := []consumerRow{
		row("rome", "cpu", "3"), row("rome", "memory", "1Gi"), row("oslo", "cpu", "1"), row("oslo", "memory", "3Gi"),
		row("milan", "cpu", "3"),
	}
	for _, tc := range []struct{ order, resource, want string }{
		{"", "", "rome/cpu rome/memory oslo/cpu oslo/memory milan/cpu"},
		{"share", "", "rome/cpu rome/memory oslo/cpu oslo/memory milan/cpu"},
		{"", "memory", "oslo/memory rome/memory"},
		{"share", "cpu", "rome/cpu milan/cpu oslo/cpu"},
		{"consumer", "", "milan/cpu oslo/cpu oslo/memory rome/cpu rome/memory"},
		{"used", "", "rome/cpu rome/memory milan/cpu oslo/cpu oslo/memory"},
		{"used", "memory", "oslo/memory rome/memory"},
		{"waiting", "", "rome/cpu rome/memory oslo/cpu oslo/memory milan/cpu"},
	} {
		var got []string
		for _, r := range arranged(slices.Clone(rows), consumerOrders, tc.order, tc.resource) {
			got = append(got, r.Consumer+"/"+r.Resource)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("--sort=%s --resource=%s: got %v, want %s", tc.order, tc.resource, got, tc.want)
		}
	}
}

// Each order is that of the column of its name.
func TestEachOrderIsByItsColumn(t *testing.T) {
	offers, world := operatortest.Offers(), operatortest.World()
	nodes, _, err := nodeRows(&offers, &world)
	test.Must(t, err)
	checkOrders(t, policyRows(&offers), policyOrders, func(r policyRow) *output.Table {
		return policiesTable([]policyRow{r}, output.Wide)
	})
	checkOrders(t, consumerRows(&offers, &world), consumerOrders[1:], func(r consumerRow) *output.Table {
		return consumersTable([]consumerRow{r}, output.Wide)
	})
	checkOrders(t, nodes, nodeOrders, func(r nodeRow) *output.Table { return nodesTable([]nodeRow{r}, output.Wide) })
}

func checkOrders[R any](t *testing.T, rows []R, orders []output.Order[R], table func(R) *output.Table) {
	t.Helper()
	for _, o := range orders {
		for _, r := range rows {
			of := table(r)
			column := slices.Index(of.Header, strings.ToUpper(o.Name))
			if column < 0 {
				t.Fatalf("--sort=%s is no column of %v", o.Name, of.Header)
			}
			if o.Amount == nil || o.Amount(r) == nil {
				continue
			}
			if got, want := o.Amount(r), resource.MustParse(of.Rows[0].Cells[column]); got.Cmp(want) != 0 {
				t.Errorf("--sort=%s is by %s, and the column has %s", o.Name, got, &want)
			}
		}
	}
}

func TestSlicesWithoutASeatAreCountedBelowTheirPolicy(t *testing.T) {
	offers := operatortest.Offers()
	if lines := lostSeats(policyRows(&offers), 80); lines != nil {
		t.Errorf("without any: %q", lines)
	}
	offers.Policies[0].SeatsLost = 2
	rows := policyRows(&offers)
	for width, want := range map[int][]string{
		160: {"", "Policy gold-pool: 2 ResourceSlices have lost their node and wait for another one."},
		80:  {"", "Policy gold-pool: 2 ResourceSlices have lost their node and wait for another", "one."},
	} {
		if diff := cmp.Diff(want, lostSeats(rows, width)); diff != "" {
			t.Errorf("at %d: %s", width, diff)
		}
	}
	if got, err := json.Marshal(rows[0]); err != nil || !strings.Contains(string(got), `"nodes":3,"seatsLost":2,"resource":"cpu"`) {
		t.Errorf("%v: %s", err, got)
	}
}
