//go:build !linux

package life

import (
	"errors"
	"net"
)

// dropAll is supported on Linux only.
func dropAll(net.Conn) error { return errors.ErrUnsupported }

const canDrop = false
