package slice

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/internal/table"
)

func TestPeersAreTheOneTenantOfAConsumerInItsTenantNamespace(t *testing.T) {
	tenant := func(namespace, consumer, name string, condition gateState) tenantState {
		return tenantState{namespace: namespace, consumer: consumer, condition: condition, name: name, uid: name + "-uid"}
	}
	deleting := tenant("e", "wien", "w", active)
	deleting.deleting = true
	p := peers{
		owners: map[string]string{"a": "rome", "b": "oslo", "c": "bonn", "d": "", "e": "wien", "f": "rome"},
		tenants: map[string]tenantState{
			"a/r":    tenant("a", "rome", "r", active),
			"a/else": tenant("a", "oslo", "else", active), // Not of the owner of the namespace.
			"b/o":    tenant("b", "oslo", "o", cordoned),
			"c/1":    tenant("c", "bonn", "1", active), // Two of one consumer.
			"c/2":    tenant("c", "bonn", "2", active),
			"d/x":    tenant("d", "lima", "x", active), // Not a tenant namespace.
			"e/w":    deleting,
			"f/r":    tenant("f", "rome", "r", drained),
		},
		storage: map[string]storageClass{"c": {name: "c"}, "b": {name: "b", marked: true}, "a": {name: "a"}},
	}
	want := []table.Tenant{
		{Consumer: "oslo", Namespace: "b", Name: "o", UID: "o-uid", State: table.TenantCordoned},
		{Consumer: "rome", Namespace: "a", Name: "r", UID: "r-uid", State: table.TenantActive},
		{Consumer: "rome", Namespace: "f", Name: "r", UID: "r-uid", State: table.TenantDrained},
	}
	if diff := cmp.Diff(want, p.Tenants()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b", "a", "c"}, p.StorageClasses()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
