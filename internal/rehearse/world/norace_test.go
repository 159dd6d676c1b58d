//go:build !race

package world

const slower = 1
