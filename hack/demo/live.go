package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/offers"
	"proffer.dev/proffer/test/process"
)

const (
	// ownPeriod is the time between two reads in a cluster of the demo's own, which has few consumers.
	ownPeriod = 250 * time.Millisecond
	// readTimeout bounds a read, and the time until the operator has evaluated for the first time.
	readTimeout = 2 * time.Minute
)

// watch shows the offers as kubectl proffer offers --watch does, with the hints below, until ctx ends
// or nobody reads the output any longer.
func (c *cluster) watch(ctx context.Context, o *operator, hints []string, out, progress io.Writer) error {
	period := offers.Period
	if c.own {
		period = ownPeriod
	}
	read := func(ctx context.Context) (*rest.Offers, error) {
		if unread(out) {
			return nil, syscall.EPIPE
		}
		return o.offers(ctx)
	}
	printed := func() {
		for _, line := range hints {
			fmt.Fprintln(out, line)
		}
		if !c.own {
			hints = nil // Others change offers too, at any time.
		}
	}
	err := offers.Watch(ctx, genericiooptions.IOStreams{Out: out, ErrOut: progress}, period, read, printed)
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// offers asks the operator until it answers. If it ends, the error has its log.
func (o *operator) offers(ctx context.Context) (*rest.Offers, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	all := &rest.Offers{}
	err := o.process.Until(ctx, func(ctx context.Context) error {
		body, err := process.Get(ctx, o.admin, "https://"+o.address+rest.OffersPath, o.token)
		if err != nil {
			return err
		}
		return json.Unmarshal(body, all)
	})
	if o.process.Alive() != nil {
		text, _ := os.ReadFile(o.log)
		return nil, fmt.Errorf("the operator ended by itself:\n%s", text)
	}
	if err != nil {
		return nil, fmt.Errorf("asking for offers: %w", err)
	}
	return all, nil
}

// newAdmin returns a client for an operator that signs its own certificate, and serves on the loopback
// device of this machine.
func newAdmin() *http.Client {
	unverified := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // see above
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: unverified}}
}

// unread reports whether nobody reads the output any longer, as in `make run | head`.
func unread(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(file.Fd())}} //nolint:gosec // a file descriptor is small
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
