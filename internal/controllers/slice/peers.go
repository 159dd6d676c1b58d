package slice

import (
	"cmp"
	"slices"

	"proffer.dev/proffer/internal/table"
)

// peers implements table.Peers. The maps never change.
type peers struct {
	owners  map[string]string
	tenants map[string]tenantState
	storage map[string]storageClass
}

// Peers returns the present tenants and StorageClasses.
func (d *Decider) Peers() table.Peers {
	return peers{owners: d.gates.owners.All(), tenants: d.gates.tenants.All(), storage: d.storage.All()}
}

// Tenants lists the tenants whose slices pass the gates of a tenant: see gate.
func (p peers) Tenants() []table.Tenant {
	count := map[[2]string]int{}
	for _, t := range p.tenants {
		count[[2]string{t.namespace, t.consumer}]++
	}
	var all []table.Tenant
	for _, t := range p.tenants {
		if t.consumer == "" || p.owners[t.namespace] != t.consumer || t.deleting ||
			count[[2]string{t.namespace, t.consumer}] > 1 {
			continue
		}
		state := table.TenantCordoned
		switch t.condition {
		case active:
			state = table.TenantActive
		case drained:
			state = table.TenantDrained
		default:
		}
		all = append(all, table.Tenant{Consumer: t.consumer, Namespace: t.namespace, Name: t.name, UID: t.uid, State: state})
	}
	slices.SortFunc(all, func(a, b table.Tenant) int {
		return cmp.Or(cmp.Compare(a.Consumer, b.Consumer), cmp.Compare(a.Namespace, b.Namespace))
	})
	return all
}

// StorageClasses lists the names as an answer has them that leaves the choice to the operator.
func (p peers) StorageClasses() []string {
	var names []string
	for _, class := range listStorage(p.storage) {
		names = append(names, class.name)
	}
	return names
}
