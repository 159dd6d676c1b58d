package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"proffer.dev/proffer/internal/explain"
	wire "proffer.dev/proffer/proto/resourcereader"
)

// lookout is how often the demo looks for consumers that are new. Liqo reads for a new peer by itself.
const lookout = time.Second

// row is what a line shows of one consumer in one class.
type row struct{ consumer, class string }

// view is what was last shown.
type view struct {
	out   io.Writer
	shown map[row]string
	known []string
	// err is the first error of a write.
	err error
}

func (v *view) print(format string, args ...any) {
	if _, err := fmt.Fprintf(v.out, format, args...); v.err == nil {
		v.err = err
	}
}

// unread reports whether nobody reads any more what is written to out, as in `make run | head`.
func unread(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(file.Fd())}} //nolint:gosec // a file descriptor is small
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}

// follow behaves as a Liqo would, and prints a line for each offer that changes, until ctx ends.
func (o *operator) follow(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := o.liqo.Subscribe(ctx, &wire.Empty{}, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("subscribing: %w", err)
	}
	notifications := make(chan string)
	failed := make(chan error, 1)
	go func() {
		for {
			notification, err := stream.Recv()
			if err != nil {
				failed <- err
				return
			}
			select {
			case notifications <- notification.GetClusterID():
			case <-ctx.Done():
				return
			}
		}
	}()
	v := &view{out: out, shown: map[row]string{}}
	v.header()
	ticker := time.NewTicker(lookout)
	defer ticker.Stop()
	for begun := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-o.exited:
			text, _ := os.ReadFile(o.log)
			return fmt.Errorf("the operator ended by itself:\n%s", text)
		case err := <-failed:
			return fmt.Errorf("the subscription ended: %w", err)
		case id := <-notifications:
			begun = true
			err = o.refresh(ctx, v, id)
		case <-ticker.C:
			if unread(out) {
				return nil
			}
			if begun {
				err = o.findNew(ctx, v)
			}
		}
		if errors.Is(v.err, syscall.EPIPE) {
			return nil
		}
		if err = errors.Join(err, v.err); err != nil {
			return err
		}
	}
}

// refresh reads, over gRPC, what the consumer is offered, or all of them for the empty ID.
func (o *operator) refresh(ctx context.Context, v *view, id string) error {
	why, err := o.explain(ctx)
	if err != nil {
		return err
	}
	ids := []string{id}
	if id == "" {
		v.meet(why)
		ids = v.known
	}
	for _, id := range ids {
		read, err := o.liqo.ReadResources(ctx, &wire.ClusterIdentity{ClusterID: id})
		if err != nil {
			return fmt.Errorf("reading what %s is offered: %w", id, err)
		}
		v.show(id, read, why)
	}
	return nil
}

// findNew reads for consumers that were not there before.
func (o *operator) findNew(ctx context.Context, v *view) error {
	why, err := o.explain(ctx)
	if err != nil {
		return err
	}
	for _, id := range v.meet(why) {
		if err := o.refresh(ctx, v, id); err != nil {
			return err
		}
	}
	return nil
}

// meet takes note of the consumers there are, and returns those that are new.
func (v *view) meet(why explain.Offers) (added []string) {
	for _, c := range why.Consumers {
		if !slices.Contains(v.known, c.ClusterID) {
			added = append(added, c.ClusterID)
		}
	}
	v.known = append(v.known, added...)
	return added
}

const layout = "%-8s  %-12s  %-10s  %-20s  %-46s  %s\n"

func (v *view) header() {
	v.print(layout, "TIME", "CONSUMER", "CLASS", "POLICY", "OFFER", "WHY")
}

// show prints a line for each class in which the offer is not what it was.
func (v *view) show(id string, read *wire.PoolResourceList, why explain.Offers) {
	for _, pool := range read.GetResourceLists() {
		class := pool.GetPoolPrefix()
		text := amounts(pool)
		at := row{id, class}
		if v.shown[at] == text {
			continue
		}
		before := v.shown[at]
		v.shown[at] = text
		policy, because := reasons(why, id, class)
		if class == "" {
			class = "-"
		}
		v.print(layout, time.Now().Format(time.TimeOnly), short(id), class, policy, text, changed(before, text, because))
	}
}

// short cuts a UUID, as IDs were up to Liqo v0.10, to what tells it apart.
func short(id string) string {
	const width = 12
	if len(id) <= width {
		return id
	}
	return id[:width-1] + "…"
}

// amounts is a pool in a line: cpu, memory and pods first.
func amounts(pool *wire.ResourceList) string {
	resources := pool.GetResources()
	var parts []string
	add := func(name string) { parts = append(parts, name+"="+resources[name].GetString_()) }
	first := []string{"cpu", "memory", "pods"}
	for _, name := range first {
		if resources[name] != nil {
			add(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		if !slices.Contains(first, name) {
			add(name)
		}
	}
	return strings.Join(parts, " ")
}

// reasons returns which policy decided, and a sentence for each resource.
func reasons(why explain.Offers, id, class string) (policy string, because []string) {
	for _, c := range why.Consumers {
		if c.ClusterID != id {
			continue
		}
		for _, o := range c.Offers {
			if o.Class != class {
				continue
			}
			policy = o.Policy
			if o.Override != nil {
				policy = fmt.Sprintf("%s[%d]", o.Policy, *o.Override)
			}
			return policy, o.Because
		}
	}
	return "", nil
}

// changed picks the sentence of the first resource whose amount is not what it was.
func changed(before, now string, because []string) string {
	old := strings.Fields(before)
	for amount := range strings.FieldsSeq(now) {
		if slices.Contains(old, amount) {
			continue
		}
		name, _, _ := strings.Cut(amount, "=")
		for _, sentence := range because {
			if strings.HasPrefix(sentence, name+" ") {
				return sentence
			}
		}
	}
	return strings.Join(because, "; ")
}
