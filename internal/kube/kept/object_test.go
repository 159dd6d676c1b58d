package kept

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChangesLeaveTheDataAsWanted(t *testing.T) {
	got := Changes(map[string]string{"a": "x=1", "b": "x=1", "c": "x=1"}, map[string]string{"b": "x=2", "c": "x=1", "d": "x=3"})
	if diff := cmp.Diff(map[string]any{"a": nil, "b": "x=2", "d": "x=3"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
