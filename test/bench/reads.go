package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	wire "proffer.dev/proffer/proto/resourcereader"
)

// measureReads measures the CPU time of a server for each ReadResources. Ours is compared with bare
// grpc-go that answers the same bytes, and with generated code.
func measureReads(ctx context.Context, o options, r *report, _ io.Writer) (err error) {
	consumers, n := 10_000, 105
	loads := []load{{callers: 1, calls: 400}, {callers: 64, calls: 4_000}}
	if o.short {
		consumers, n, loads = 10, 2, []load{{1, 50}, {64, 640}}
	}
	requests := make([][]byte, consumers)
	for i := range requests {
		if requests[i], err = proto.Marshal(&wire.ClusterIdentity{ClusterID: consumerID(i)}); err != nil {
			return err
		}
	}
	servers, err := startServers(ctx, consumers, requests[0])
	defer func() {
		for _, s := range servers {
			err = errors.Join(err, s.stop())
		}
	}()
	if err != nil {
		return err
	}
	t := r.section(fmt.Sprintf("Server CPU for one ReadResources, %s consumers, answers of %d bytes",
		thousands(consumers), len(servers[0].answer)),
		"calls at a time", "server", "CPU", "objects", "calls per second of CPU")
	for _, l := range loads {
		costs := make([][]cost, len(servers))
		for round := range n + 1 {
			for k := range servers {
				i := (round + k) % len(servers)
				c, err := servers[i].load(ctx, l, requests)
				if err != nil {
					return fmt.Errorf("server %s: %w", servers[i].name, err)
				}
				if round > 0 {
					costs[i] = append(costs[i], c)
				}
			}
		}
		for i, s := range servers {
			used := median(costs[i], cpu)
			t.row(strconv.Itoa(l.callers), s.name, span(used), fmt.Sprintf("%.1f", median(costs[i], objects)),
				thousands(int(float64(time.Second)/used)))
		}
		at := fmt.Sprintf(", %d at a time", l.callers)
		r.ratio("server CPU of a read"+at, "bare grpc-go, the same bytes", ratioByRound(costs[0], costs[1], cpu))
		r.ratio("server CPU of a read"+at, "generated code", ratioByRound(costs[0], costs[2], cpu))
		r.ratio("objects that the server makes for a read"+at, "bare grpc-go, the same bytes",
			ratioByRound(costs[0], costs[1], objects))
	}
	return nil
}

// load is the number of concurrent callers, and of calls in a round.
type load struct{ callers, calls int }

// server is a server process and a connection to it.
type server struct {
	*child
	name    string
	address string
	conn    *grpc.ClientConn
	answer  []byte
}

// startServers starts ours, the bare and the generated one. The caller must stop the servers that
// it returns, also after an error.
func startServers(ctx context.Context, consumers int, request []byte) ([]*server, error) {
	var servers []*server
	var answer []byte
	for _, name := range []string{serveOurs, serveBare, serveGenerated} {
		s, err := startServer(ctx, name, consumers, answer)
		if err != nil {
			return servers, fmt.Errorf("server %s: %w", name, err)
		}
		servers = append(servers, s)
		if s.answer, err = s.read(ctx, request); err != nil {
			return servers, fmt.Errorf("server %s: %w", name, err)
		}
		if answer == nil {
			answer = s.answer
		}
		// Generated code encodes the keys of a map in any order, so only the length can be
		// compared.
		if len(s.answer) != len(answer) {
			return servers, fmt.Errorf("server %s answers %d bytes, ours %d", name, len(s.answer), len(answer))
		}
	}
	return servers, nil
}

func startServer(ctx context.Context, name string, consumers int, answer []byte) (*server, error) {
	started, err := startChild(ctx, serve, name, strconv.Itoa(consumers), base64.StdEncoding.EncodeToString(answer))
	if err != nil {
		return nil, err
	}
	s := &server{name: name, child: started}
	line, err := s.out.ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading its address: %w", err), s.end())
	}
	s.address = strings.TrimSpace(line)
	s.conn, err = dial(s.address)
	if err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

// stop ends the process.
func (s *server) stop() error {
	return errors.Join(s.conn.Close(), s.end())
}

func (s *server) read(ctx context.Context, request []byte) ([]byte, error) {
	var answer []byte
	err := s.conn.Invoke(ctx, wire.ResourceReader_ReadResources_FullMethodName, &request, &answer,
		grpc.ForceCodecV2(raw{}))
	return answer, err
}

// ask sends the process a question and scans the numbers of its answer.
func (s *server) ask(question string, figures ...any) error {
	if _, err := fmt.Fprintln(s.in, question); err != nil {
		return err
	}
	line, err := s.out.ReadString('\n')
	if err != nil {
		return fmt.Errorf("reading the answer to %s: %w", question, err)
	}
	_, err = fmt.Sscanln(line, figures...)
	return err
}

// load makes the calls over one connection, as Liqo does, and returns what one call costs the
// server.
func (s *server) load(ctx context.Context, l load, requests [][]byte) (cost, error) {
	var before, after struct{ cpu, objects float64 }
	if err := s.ask(askUsage, &before.cpu, &before.objects); err != nil {
		return cost{}, err
	}
	var made atomic.Int64
	failed := make([]error, l.callers)
	var callers sync.WaitGroup
	for c := range l.callers {
		callers.Go(func() {
			for {
				i := made.Add(1)
				if i > int64(l.calls) {
					return
				}
				answer, err := s.read(ctx, requests[i%int64(len(requests))])
				if err == nil && len(answer) != len(s.answer) {
					err = fmt.Errorf("an answer of %d bytes, want %d", len(answer), len(s.answer))
				}
				if err != nil {
					failed[c] = err
					return
				}
			}
		})
	}
	callers.Wait()
	if err := errors.Join(append(failed, s.ask(askUsage, &after.cpu, &after.objects))...); err != nil {
		return cost{}, err
	}
	calls := float64(l.calls)
	return cost{cpu: (after.cpu - before.cpu) / calls, objects: (after.objects - before.objects) / calls}, nil
}
