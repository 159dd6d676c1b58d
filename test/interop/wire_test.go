package interop

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The client below is written from the tables of the protocol, not from anybody's code: it sends and takes bare bytes.

const (
	readMethod      = "/resource_reader/ReadResources"
	removeMethod    = "/resource_reader/RemoveCluster"
	subscribeMethod = "/resource_reader/Subscribe"
)

// bare is a codec that leaves bytes as they are.
type bare struct{}

func (bare) Name() string { return "proto" }

func (bare) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (bare) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}

// A wire is a connection that is told what to send, byte by byte.
type wire struct{ *grpc.ClientConn }

func dial(t *testing.T, address string) wire {
	t.Helper()
	conn, err := grpc.DialContext(deadline(t), address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithBlock())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return wire{conn}
}

// call returns what the method answers to the request.
func (w wire) call(ctx context.Context, method string, request []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var response []byte
	err := w.Invoke(ctx, method, &request, &response, grpc.ForceCodec(bare{}))
	return response, err
}

// subscribe opens a stream that lives as long as ctx.
func (w wire) subscribe(ctx context.Context) (grpc.ClientStream, error) {
	stream, err := w.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, subscribeMethod, grpc.ForceCodec(bare{}))
	if err != nil {
		return nil, err
	}
	if err := stream.SendMsg(&[]byte{}); err != nil {
		return nil, err
	}
	return stream, stream.CloseSend()
}

// next returns the cluster ID that the stream names next.
func next(stream grpc.ClientStream) (string, error) {
	var message []byte
	if err := stream.RecvMsg(&message); err != nil {
		return "", err
	}
	id := ""
	err := fields(message, func(number protowire.Number, value []byte) error {
		if number != 1 {
			return fmt.Errorf("field %d in a ClusterIdentity", number)
		}
		id = string(value)
		return nil
	})
	return id, err
}

// identity is ClusterIdentity{string clusterID = 1}.
func identity(id string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), id)
}

// fields calls visit with each field of a message, all of which must be strings, bytes or messages.
func fields(message []byte, visit func(protowire.Number, []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if kind != protowire.BytesType {
			return fmt.Errorf("field %d is of wire type %d", number, kind)
		}
		value, m := protowire.ConsumeBytes(message[n:])
		if m < 0 {
			return protowire.ParseError(m)
		}
		if err := visit(number, value); err != nil {
			return err
		}
		message = message[n+m:]
	}
	return nil
}

// flatList decodes ResourceList{map<string, Quantity> resources = 1} the way generated code does: what it does not know it
// skips, and what is missing is empty.
func flatList(message []byte) (map[string]string, error) {
	amounts := map[string]string{}
	err := fields(message, func(number protowire.Number, entry []byte) error {
		if number != 1 {
			return nil
		}
		var key, text string
		err := fields(entry, func(number protowire.Number, value []byte) error {
			if number == 1 {
				key = string(value)
			}
			if number != 2 {
				return nil
			}
			// Quantity{optional string string = 1}
			return fields(value, func(_ protowire.Number, value []byte) error {
				text = string(value)
				return nil
			})
		})
		amounts[key] = text
		return err
	})
	return amounts, err
}

// canonical fails for what is not the canonical text of a quantity.
func canonical(amounts map[string]string) error {
	var errs []error
	for name, text := range amounts {
		if q, err := resource.ParseQuantity(text); err != nil || q.String() != text {
			errs = append(errs, fmt.Errorf("%s: %q is not canonical", name, text))
		}
	}
	return errors.Join(errs...)
}
