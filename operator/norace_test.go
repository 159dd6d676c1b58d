//go:build !race

package operator

const slower = 1
