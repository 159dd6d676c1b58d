//go:build race

package operator

// slower is how much longer the race detector makes publishing the catalog take, also on a busy machine.
const slower = 10
