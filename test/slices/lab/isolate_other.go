//go:build !linux

package lab

import "errors"

var errNotLinux = errors.New("this needs Linux: real Liqo runs in network and process namespaces of its own")

// Isolated says whether this process is the one in the namespaces.
func Isolated() bool { return false }

// Isolate says that it needs Linux.
func Isolate(...string) (int, error) { return 1, errNotLinux }

func loopback() error { return errNotLinux }
