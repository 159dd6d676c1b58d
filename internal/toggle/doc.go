// Package toggle lists the providers that Orchestrations know, and disables and enables them for callers
// of the HTTP API, as the broker of Liqo's early days did.
//
// The state is spec.disabled and spec.enabled of the Orchestrations: nothing is kept in memory, so that every replica
// answers, and a restart changes nothing. Entries are written by server-side apply under the field
// manager Manager, without force. The entries of an admin's manifest belong to another manager, and are
// never changed here.
//
// A change reads the Orchestrations, works out for each the entries that Manager should own (plan.go:
// pure), and applies them to the UID and the version that were read. So a change of anybody else in
// between is not undone, and an Orchestration that was deleted is not created again; the change starts
// again with what exists then.
package toggle
