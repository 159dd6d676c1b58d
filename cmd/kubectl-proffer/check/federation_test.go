package check

import (
	"testing"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/manifests"
	"proffer.dev/proffer/internal/source/federation"
)

func TestTheRightsToTheSecretsOfIdentitiesAreReported(t *testing.T) {
	ids := []federation.Identity{
		{Provider: "milan", Namespace: "liqo-tenant-milan", Secret: "milan"}, {Provider: "turin", Namespace: "liqo-tenant-turin", Secret: "turin"},
	}
	needed, all := secretRights(append(ids, ids[0]))
	if len(needed) != 3 || len(all) != 2 || needed[1].String() != "get secrets turin in liqo-tenant-turin" || all[1].Name != "" {
		t.Fatalf("%v, %v", needed, all)
	}
	type (
		identities = []federation.Identity
		rights     = []manifests.Right
	)
	none := there[rights](nil)
	for name, tc := range map[string]struct {
		ids           known[identities]
		denied, broad known[rights]
		want          []is
	}{
		"exactly those":      {there(ids), none, none, []is{{OK, []string{"the Secrets of its identities at providers (2), and no others"}}}},
		"one is missing":     {there(ids), there(needed[1:2]), none, []is{{Wrong, []string{"it may not get secrets turin in liqo-tenant-turin", "kubectl proffer catalog --roles | kubectl apply -f -"}}}},
		"all of a namespace": {there(ids), none, there(all[:1]), []is{{Warning, []string{"every Secret of liqo-tenant-milan,"}}}},
		"both":               {there(ids), there(needed[1:2]), there(all[:1]), []is{{Wrong, nil}, {Warning, nil}}},
		"no Liqo":            {failing[identities](errNotFound), none, none, []is{{Wrong, []string{"no Identities of Liqo v1"}}}},
		"no right":           {failing[identities](errForbidden), none, none, []is{{Skipped, []string{"list identities.authentication.liqo.io"}}}},
		"no reviews":         {there(ids), failing[rights](errForbidden), none, []is{{Skipped, []string{"create subjectaccessreviews"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := findFederation(tc.ids, tc.denied, tc.broad)
			if len(got) != len(tc.want) {
				t.Fatalf("findings %v, want %d", got, len(tc.want))
			}
			for i, want := range tc.want {
				if diff := want.diff(got[i]); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}
