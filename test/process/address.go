package process

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// loopback is the argument that asks for a free port of the loopback device.
const loopback = "127.0.0.1:0"

// OnLoopback returns the arguments with a free port of the loopback device in each
// --*-bind-address. A server that is off (0) stays off, and a loopback address stays as it is.
func OnLoopback(args []string) ([]string, error) {
	adapted := slices.Clone(args)
	var bind []int
	for i, arg := range args {
		flag, at, ok := strings.Cut(arg, "-bind-address=")
		if ok && flag != "-" && at != "0" && (!strings.HasPrefix(at, "127.0.0.1:") || at == loopback) {
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
// port could be taken by a connection before it is used. Each process has a block of them for itself, so
// that none is taken by another test meanwhile.
const (
	firstPort = 20000
	blocks    = 100
	blockSize = 100
)

// block is the block of this process.
type block struct {
	// claim listens on the first port for as long as the process lives.
	claim net.Listener
	mu    sync.Mutex
	// first is the first port, last the index of the one that was tried last: a port that was free is not
	// tried again until all others were.
	first, last int
}

var ownBlock = sync.OnceValues(claimBlock)

// claimBlock finds a block that no other process has.
func claimBlock() (*block, error) {
	var last error
	for _, i := range rand.Perm(blocks) {
		b := &block{first: firstPort + i*blockSize}
		if b.claim, last = listen(b.first); last == nil {
			return b, nil
		}
	}
	return nil, fmt.Errorf("all %d blocks of ports are taken: %w", blocks, last)
}

// FreeAddresses returns n different addresses of the loopback device whose ports are free.
func FreeAddresses(n int) (addresses []string, err error) {
	b, err := ownBlock()
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for range n {
		l, err := b.listen()
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // only at the end, so that the addresses differ
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}

// listen listens on the next port that is free.
func (b *block) listen() (l net.Listener, err error) {
	for range blockSize - 1 {
		b.last = b.last%(blockSize-1) + 1
		if l, err = listen(b.first + b.last); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("no port from %d to %d is free: %w", b.first+1, b.first+blockSize-1, err)
}

func listen(port int) (net.Listener, error) {
	return new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}
