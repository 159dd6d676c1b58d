package life

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/util/wait"

	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test/process"
)

// operator is a process, and what rome reads from it.
type operator struct {
	*process.Process
	reader wire.ResourceReaderClient
}

// startOperator runs the operator, with a kubeconfig and what else is in its environment, until the test ends.
func startOperator(t *testing.T, kubeconfig string, env ...string) *operator {
	t.Helper()
	args := process.OnLoopback(t, []string{
		"--leader-elect", "--leader-election-namespace=default",
		"--grpc-bind-address=", "--metrics-bind-address=", "--health-probe-bind-address=",
	})
	o := &operator{Process: process.Start(t, program, args, append([]string{"KUBECONFIG=" + kubeconfig}, env...)...)}
	connection, err := grpc.NewClient(o.Address("grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	o.reader = wire.NewResourceReaderClient(connection)
	return o
}

// offers waits until rome is offered so much cpu, by class.
func (o *operator) offers(ctx context.Context, within time.Duration, want map[string]string) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		select {
		case <-o.Exited:
			return false, fmt.Errorf("the operator ended: %w", o.Err)
		default:
		}
		last = o.differs(ctx, want)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// differs reads once what rome is offered.
func (o *operator) differs(ctx context.Context, want map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	answer, err := o.reader.ReadResources(ctx, &wire.ClusterIdentity{ClusterID: "rome"})
	if err != nil {
		return err
	}
	got := map[string]string{}
	for _, pool := range answer.GetResourceLists() {
		got[pool.GetPoolPrefix()] = pool.GetResources()["cpu"].GetString_()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("cpu by class: -want +got\n%s", diff)
	}
	return nil
}
