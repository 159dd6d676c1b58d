package externaltest

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
)

// Dial returns a client of the server at an address, as Liqo v0.x has one of a monitor, until the test ends.
func Dial(t testing.TB, address string) wire.ResourceReaderClient {
	t.Helper()
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	test.Must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	return wire.NewResourceReaderClient(connection)
}

// CPU reads the cpu that a consumer is offered in each class.
func CPU(
	ctx context.Context, from wire.ResourceReaderClient, id string, options ...grpc.CallOption,
) (map[string]string, error) {
	answer, err := from.ReadResources(ctx, &wire.ClusterIdentity{ClusterID: id}, options...)
	cpu := map[string]string{}
	for _, pool := range answer.GetResourceLists() {
		cpu[pool.GetPoolPrefix()] = pool.GetResources()["cpu"].GetString_()
	}
	return cpu, err
}
