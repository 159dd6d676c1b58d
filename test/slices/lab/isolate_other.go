//go:build !linux

package lab

import "errors"

var errNotLinux = errors.New("this needs Linux: Liqo runs in new network and process namespaces")

// Isolated reports whether this process runs in the namespaces.
func Isolated() bool { return false }

// Isolate returns an error: it needs Linux.
func Isolate(...string) (int, error) { return 1, errNotLinux }

func loopback() error { return errNotLinux }

func endAll() {}

func lock(string, func()) error { return errNotLinux }
