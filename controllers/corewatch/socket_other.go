//go:build !linux

package corewatch

import "net"

// wakeAt does nothing: who is woken for which bytes is only known of Linux. Events are read as they come.
func wakeAt(net.Conn, int) {}
