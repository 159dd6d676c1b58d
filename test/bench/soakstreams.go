package main

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"

	wire "proffer.dev/proffer/proto/resourcereader"
)

const (
	// streamsPerConnection is how many streams are opened before a new connection.
	streamsPerConnection = 200
	// hanging is how many streams each writer leaves open without reading them. What is sent to
	// them stays in buffers; with more of them the soak would measure these buffers.
	hanging = 1
)

// soakStreams opens streams. It must be used by one goroutine only.
type soakStreams struct {
	address string
	conn    *grpc.ClientConn
	opened  int
	ends    []context.CancelFunc
}

// open opens a stream, reads the first message and the consumer's offer, and closes the stream.
// Some streams are left open for a while, and some end with their connection.
func (s *soakStreams) open(ctx context.Context, consumer string) (err error) {
	if s.opened%streamsPerConnection == 0 {
		if err := s.close(); err != nil {
			return err
		}
		if s.conn, err = dial(s.address); err != nil {
			return err
		}
	}
	s.opened++
	ctx, end := context.WithCancel(ctx)
	s.ends = append(s.ends, end)
	liqo := wire.NewResourceReaderClient(s.conn)
	stream, err := liqo.Subscribe(ctx, &wire.Empty{}, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("subscribing: %w", err)
	}
	if s.opened%10 == 0 { // left open, never read
		if len(s.ends) > hanging {
			s.ends[0]()
			s.ends = s.ends[1:]
		}
		return nil
	}
	defer func() {
		end()
		s.ends = s.ends[:len(s.ends)-1]
	}()
	if first, err := stream.Recv(); err != nil || first.GetClusterID() != "" {
		return errors.Join(fmt.Errorf("the first message names %q, want no consumer", first.GetClusterID()), err)
	}
	answer, err := liqo.ReadResources(ctx, &wire.ClusterIdentity{ClusterID: consumer})
	if err != nil {
		return fmt.Errorf("reading resources: %w", err)
	}
	if len(answer.GetResourceLists()) == 0 {
		return fmt.Errorf("%s is offered nothing", consumer)
	}
	return nil
}

// close closes the connection and with it all streams.
func (s *soakStreams) close() error {
	var err error
	if s.conn != nil {
		err = s.conn.Close()
	}
	for _, end := range s.ends {
		end()
	}
	s.ends = nil
	return err
}
