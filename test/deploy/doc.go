// Package deploy holds the tests of config: what kubectl makes of it, what the API server accepts of it, and whether the
// operator can do its work with no more than it grants.
package deploy
