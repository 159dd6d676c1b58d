package life

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// dropAll drops every packet that arrives on a connection before TCP sees it, so none is
// acknowledged. A firewall that has forgotten the connection does the same. dropAll needs no
// privileges: it attaches a socket filter, see socket(7), that keeps 0 bytes of each packet.
func dropAll(conn net.Conn) error {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	none := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: 1, Filter: &none})
	})
	if err != nil {
		return err
	}
	return failed
}

const canDrop = true
