// Package life holds the tests of dead connections: the operator runs as a process of its own, what stands between it and the API server dies in
// silence, and the operator has to know within a minute what it missed.
package life
