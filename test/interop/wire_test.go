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

// This client is written from the tables of the protocol, independently of other implementations:
// it sends and receives bytes.

const (
	readMethod      = "/resource_reader/ReadResources"
	removeMethod    = "/resource_reader/RemoveCluster"
	subscribeMethod = "/resource_reader/Subscribe"
)

// bare is a codec that passes bytes through.
type bare struct{}

func (bare) Name() string { return "proto" }

func (bare) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (bare) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}

// wire is a connection for requests that are given as bytes.
type wire struct{ *grpc.ClientConn }

func dial(t *testing.T, address string) wire {
	t.Helper()
	conn, err := grpc.DialContext(deadline(t), address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithBlock())
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return wire{conn}
}

// call returns the method's answer to the request.
func (w wire) call(ctx context.Context, method string, request []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var response []byte
	err := w.Invoke(ctx, method, &request, &response, grpc.ForceCodec(bare{}))
	return response, err
}

// subscribe opens a stream that ends with ctx.
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

// next returns the cluster ID of the stream's next message.
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

// identity encodes ClusterIdentity{string clusterID = 1}.
func identity(id string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), id)
}

// fields calls visit with each field of a message. All fields must be strings, bytes or messages.
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

// flatList decodes ResourceList{map<string, Quantity> resources = 1} like generated code: it skips
// unknown fields, and missing values are empty.
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

// canonical returns an error for each amount that is not a quantity in canonical form.
func canonical(amounts map[string]string) error {
	var errs []error
	for name, text := range amounts {
		if q, err := resource.ParseQuantity(text); err != nil || q.String() != text {
			errs = append(errs, fmt.Errorf("%s: %q is not canonical", name, text))
		}
	}
	return errors.Join(errs...)
}
