// Package policy follows the ResourcePolicies: it parses each into plain values once per edit, and
// writes their statuses from the published snapshots.
package policy
