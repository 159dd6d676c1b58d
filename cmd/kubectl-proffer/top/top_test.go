package top

import (
	"fmt"
	"testing"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/operatortest"
)

func TestTablesAreAlignedAtAnyWidth(t *testing.T) {
	offers, world := operatortest.Offers(), operatortest.World()
	nodes, total, err := nodesTables(&offers, &world)
	test.Must(t, err)
	for name, table := range map[string]*output.Table{
		"policies": policiesTable(&offers), "consumers": consumersTable(&offers, &world), "nodes": nodes, "total": total,
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
