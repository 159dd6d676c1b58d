package command

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// address is the value of one flag with a listen address.
type address struct {
	flag, text string
	// optional reports whether an empty value or 0 disables the listener.
	optional   bool
	host, port string
}

// addresses returns every address that the process listens at.
func (o *commandOptions) addresses() []address {
	return []address{
		{flag: "grpc-bind-address", text: o.grpc},
		{flag: "grpc-flat-bind-address", text: o.flat, optional: true},
		{flag: "metrics-bind-address", text: o.MetricsAddress, optional: true},
		{flag: "health-probe-bind-address", text: o.ProbeAddress, optional: true},
		{flag: "pprof-bind-address", text: o.PprofAddress, optional: true},
		{flag: "catalog-bind-address", text: o.Catalog.Address, optional: true},
	}
}

func (a *address) parse() error {
	if a.optional && (a.text == "" || a.text == off) {
		return nil
	}
	host, port, err := net.SplitHostPort(a.text)
	if err != nil {
		return a.wrong()
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return a.wrong()
	}
	a.host, a.port = host, port
	return nil
}

func (a *address) wrong() error {
	return fmt.Errorf("--%s=%q is not an address to listen at: write host:port or :port, such as :6001", a.flag, a.text)
}

// clashes reports whether a process cannot listen at both addresses. Port 0 is any free port.
func (a *address) clashes(b address) bool {
	if a.port == "" || a.port != b.port || a.port == off {
		return false
	}
	return a.host == b.host || everyHost(a.host) || everyHost(b.host)
}

func everyHost(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }

// inUse replaces the error of a failed listen with one that names the flag. It returns every other
// error unchanged.
func (o *commandOptions) inUse(err error) error {
	failed, ok := errors.AsType[*net.OpError](err)
	if !ok || failed.Op != "listen" || failed.Addr == nil {
		return err
	}
	host, port, splitErr := net.SplitHostPort(failed.Addr.String())
	if splitErr != nil {
		return err
	}
	tried := address{text: failed.Addr.String(), host: host, port: port}
	for _, a := range o.addresses() {
		if a.parse() != nil || a.port != port || !a.mayBe(tried) {
			continue
		}
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("--%s=%s is in use: stop the program that listens there, or write another port",
				a.flag, a.text)
		}
		return fmt.Errorf("--%s=%s cannot be used to listen; write another address: %w", a.flag, a.text, failed.Err)
	}
	return err
}

// mayBe reports whether the address that was tried can be the address of the flag, whose host may be a
// name.
func (a *address) mayBe(tried address) bool {
	return a.host == tried.host || net.ParseIP(a.host) == nil || everyHost(a.host) && everyHost(tried.host)
}
