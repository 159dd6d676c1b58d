// Package life tests dead connections. The operator runs as a process, its connection to the API
// server dies without a word, and within a minute the operator must know what it missed.
package life
