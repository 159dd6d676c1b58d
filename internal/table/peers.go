package table

// Peers are the consumers that can ask for ResourceSlices, and what all answers have in common, at the
// time of an evaluation.
type Peers interface {
	// Tenants are sorted by consumer and namespace. The caller owns the list.
	Tenants() []Tenant
	// StorageClasses are the names of all StorageClasses, the default first.
	StorageClasses() []string
}

// Tenant is a peering with a consumer: the one Tenant of its consumer in a tenant namespace of that
// consumer. It is not being deleted.
type Tenant struct {
	Consumer, Namespace, Name, UID string
	State                          TenantState
}

// TenantState says whether new ResourceSlices of a tenant are accepted.
type TenantState int

const (
	// TenantActive: they are.
	TenantActive TenantState = iota
	// TenantCordoned: what is granted stays, and nothing more is granted.
	TenantCordoned
	// TenantDrained: Liqo denies and deletes all of them.
	TenantDrained
)
