package dashboard

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// connections lists the TCP connections of IPv4, with the user of each.
const connections = "/proc/net/tcp"

// otherUser reports whether the other end of a connection within this machine belongs to another
// user, who is not root. It reports false if the kernel does not list the connection, as for a
// browser outside of a virtual machine: the cookie still counts then.
func otherUser(client, server string) bool {
	user, known := userOf(client, server)
	return known && user != 0 && user != os.Getuid() && strconv.Itoa(user) != os.Getenv("SUDO_UID")
}

// userOf returns the user of the connection from client to server.
func userOf(client, server string) (user int, known bool) {
	from, err := address(client)
	if err != nil {
		return 0, false
	}
	to, err := address(server)
	if err != nil {
		return 0, false
	}
	file, err := os.Open(connections)
	if err != nil {
		return 0, false
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		// The number, both addresses, the state, three fields of queues and timers, and the user.
		fields := strings.Fields(lines.Text())
		if len(fields) > 7 && fields[1] == from && fields[2] == to {
			user, err := strconv.Atoi(fields[7])
			return user, err == nil
		}
	}
	return 0, false
}

// address writes an address as the kernel does: the bytes of the IP in the order of the machine.
func address(text string) (string, error) {
	parsed, err := netip.ParseAddrPort(text)
	if err != nil {
		return "", err
	}
	if !parsed.Addr().Is4() {
		return "", fmt.Errorf("%s is no address of IPv4", text)
	}
	ip := parsed.Addr().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip[:]), parsed.Port()), nil
}
