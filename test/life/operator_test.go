package life

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test/externaltest"
	"proffer.dev/proffer/test/process"
)

// operator is a running operator, and a client that reads from it as rome.
type operator struct {
	*process.Process
	reader wire.ResourceReaderClient
}

// startOperator runs the operator until the test ends, with env and the kubeconfig in its
// environment.
func startOperator(t *testing.T, kubeconfig string, env ...string) *operator {
	t.Helper()
	args := []string{
		"--leader-elect", "--leader-election-namespace=default",
		"--grpc-bind-address=", "--metrics-bind-address=", "--health-probe-bind-address=",
	}
	o := &operator{Process: process.StartTest(t, process.Program(t), args, append([]string{"KUBECONFIG=" + kubeconfig}, env...)...)}
	o.reader = externaltest.Dial(t, o.Address("grpc"))
	return o
}

// awaitOffers waits until rome's offers have these amounts of cpu, by class.
func (o *operator) awaitOffers(ctx context.Context, within time.Duration, want map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return o.Until(ctx, func(ctx context.Context) error { return o.compareOffers(ctx, want) })
}

// compareOffers reads rome's offers once and compares their cpu.
func (o *operator) compareOffers(ctx context.Context, want map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	got, err := externaltest.CPU(ctx, o.reader, "rome")
	if err != nil {
		return err
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("cpu by class (-want +got):\n%s", diff)
	}
	return nil
}
