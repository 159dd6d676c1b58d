package corewatch

import (
	"net"
	"syscall"
)

// wakeAt has the kernel wake the reader of a connection once so many bytes are there, or the connection ends: SO_RCVLOWAT of socket(7), to which
// Linux holds epoll as well, see tcp_data_ready. To lower it wakes a reader for whom enough is there. A connection that is closed, or that lies behind
// a type which does not show it, is left as it is: its events are read as they come.
func wakeAt(conn net.Conn, bytes int) {
	if secured, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secured.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, bytes) })
}
