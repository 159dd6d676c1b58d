//go:build !linux

package life

import (
	"errors"
	"net"
)

// dropAll needs Linux.
func dropAll(net.Conn) error { return errors.ErrUnsupported }

const canDrop = false
