// Package policy follows the ResourcePolicies: it keeps the parsed value of each, and writes their statuses
// from the published snapshots.
package policy
