package process

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
)

// loopback is the argument that asks for a free port of the loopback device.
const loopback = "127.0.0.1:0"

// OnLoopback returns the arguments with a free port of the loopback device in each
// --*-bind-address. A server that is off (0) stays off, and a loopback address stays as it is.
func OnLoopback(args []string) ([]string, error) {
	adapted := slices.Clone(args)
	var bind []int
	for i, arg := range args {
		_, at, ok := strings.Cut(arg, "-bind-address=")
		if ok && at != "0" && (!strings.HasPrefix(at, "127.0.0.1:") || at == loopback) {
			bind = append(bind, i)
		}
	}
	addresses, err := FreeAddresses(len(bind))
	if err != nil {
		return nil, err
	}
	for k, i := range bind {
		flag, _, _ := strings.Cut(args[i], "=")
		adapted[i] = flag + "=" + addresses[k]
	}
	return adapted, nil
}

// The ports of FreeAddresses are below those that systems give to connections, 32768 and more: such a
// port could be taken by a connection before it is used.
const (
	firstPort = 20000
	ports     = 10000
	// attempts is how many ports are tried.
	attempts = 100
)

// FreeAddresses returns n different addresses of the loopback device whose ports are free.
func FreeAddresses(n int) (addresses []string, err error) {
	for range n {
		l, err := listen()
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // only at the end, so that the addresses differ
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}

// listen listens on any port that is free.
func listen() (l net.Listener, err error) {
	for range attempts {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(ports)))
		if l, err = new(net.ListenConfig).Listen(context.Background(), "tcp", address); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("no port is free, the last of %d attempts: %w", attempts, err)
}
