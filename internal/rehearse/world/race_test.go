//go:build race

package world

// slower is how much longer the race detector makes everything take.
const slower = 20
