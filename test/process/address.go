package process

import (
	"context"
	"net"
	"slices"
	"strings"
)

// loopback is the address that asks for a free port of the loopback device.
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

// FreeAddresses returns n different addresses of the loopback device whose ports are free.
func FreeAddresses(n int) (addresses []string, err error) {
	for range n {
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", loopback)
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // only at the end, so that the addresses differ
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}
