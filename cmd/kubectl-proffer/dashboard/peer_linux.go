package dashboard

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// connections list the TCP connections with the user of each. A socket of IPv6 can connect to an address
// of IPv4 too, and is in the second list only.
var connections = [2]string{"/proc/net/tcp", "/proc/net/tcp6"}

// others tells the connections of other users to a server on this machine.
type others struct {
	users [2]map[string]int // By the client's address, for each of connections.
}

// newOthers reads whose the connections to a server are.
func newOthers(server string) others {
	var read others
	to, err := addresses(server)
	if err != nil {
		return read
	}
	for i, name := range connections {
		if file, err := os.Open(name); err == nil {
			read.users[i] = usersIn(file, to[i])
			_ = file.Close()
		}
	}
	return read
}

// has reports whether the client of a connection may be another user, who is not root: also if the kernel
// does not list it, or no longer says whose it is.
func (o others) has(client string) bool {
	from, err := addresses(client)
	if err != nil {
		return true
	}
	for i := range connections {
		if user, known := o.users[i][from[i]]; known {
			return user != 0 && user != os.Getuid() && strconv.Itoa(user) != os.Getenv("SUDO_UID")
		}
	}
	return true
}

// usersIn returns the users of the clients of a server from a list of the kernel.
func usersIn(list io.Reader, server string) map[string]int {
	users := map[string]int{}
	for lines := bufio.NewScanner(list); lines.Scan(); {
		// The number, both addresses, the state, three fields of queues and timers, the user, a timeout, and
		// the inode. A socket that its program has closed has no inode, and root as its user.
		fields := strings.Fields(lines.Text())
		if len(fields) <= 9 || fields[2] != server || fields[9] == "0" {
			continue
		}
		if user, err := strconv.Atoi(fields[7]); err == nil {
			users[fields[1]] = user
		}
	}
	return users
}

// addresses writes an address of IPv4 as the kernel does in each of connections: the words of the IP in
// the order of the machine.
func addresses(text string) (in [2]string, err error) {
	parsed, err := netip.ParseAddrPort(text)
	if err != nil {
		return in, err
	}
	if !parsed.Addr().Is4() {
		return in, fmt.Errorf("%s is no address of IPv4", text)
	}
	ip, mapped := parsed.Addr().As4(), parsed.Addr().As16()
	port := fmt.Sprintf(":%04X", parsed.Port())
	var words strings.Builder
	for i := 0; i < len(mapped); i += 4 {
		fmt.Fprintf(&words, "%08X", binary.NativeEndian.Uint32(mapped[i:]))
	}
	return [2]string{fmt.Sprintf("%08X", binary.NativeEndian.Uint32(ip[:])) + port, words.String() + port}, nil
}
