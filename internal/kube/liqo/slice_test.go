package liqo_test

import (
	"testing"

	"proffer.dev/proffer/internal/kube/liqo"
)

func TestTheCreatorOfPodsIsNamedAsLiqoDoes(t *testing.T) {
	// These names are those of github.com/liqotech/liqo v1.2.0:
	// authentication.CommonNameResourceSliceCSR, resource.EscapeLabel.
	if got, want := liqo.SliceCreator("mypool.x", "rome"), "mypool.x-a8a4c692b93b"; got != want {
		t.Errorf("creator %s, want %s", got, want)
	}
	if got, want := liqo.SliceCreator("a:b", "rome"), "a-b-a8a4c692b93b"; got != want {
		t.Errorf("creator %s, want %s", got, want)
	}
}
