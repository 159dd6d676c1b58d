package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

const (
	// pollInterval is the time between two looks for new consumers. Liqo reads for a new peer by itself.
	pollInterval = time.Second
	// lull is the time for which nothing must have been printed before the hints are printed.
	lull = time.Second
)

// follower behaves as Liqo does, and prints what changes.
type follower struct {
	operator *operator
	cluster  *cluster
	screen   *screen
	table    *table
	edits    *edits
	// hints are printed below the changes, once nothing more changes.
	hints  []string
	hinted bool
	quiet  *time.Timer
}

// follow subscribes, and prints the offers of all consumers and then each change, until ctx ends.
func (f *follower) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	notifications, failed, err := f.operator.subscribe(ctx)
	if err != nil {
		return err
	}
	processed, err := f.cluster.watchPolicies(ctx)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	f.quiet = time.NewTimer(lull)
	f.quiet.Stop() // until the first offers are shown
	defer f.quiet.Stop()
	for begun := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-f.operator.exited:
			text, _ := os.ReadFile(f.operator.log)
			return fmt.Errorf("the operator ended by itself:\n%s", text)
		case err := <-failed:
			return fmt.Errorf("the subscription ended: %w", err)
		case id := <-notifications:
			err = f.refresh(ctx, id)
			if !begun {
				f.quiet.Reset(lull) // also where there is nothing to show
			}
			begun = true
		case <-processed:
			if begun {
				err = f.refresh(ctx, "")
			}
		case <-f.quiet.C:
			f.screen.print(f.hints...)
			f.hinted = true
		case <-ticker.C:
			if f.screen.unread() {
				return nil
			}
			if begun {
				err = f.findNew(ctx)
			}
		}
		if errors.Is(f.screen.err, syscall.EPIPE) {
			return nil
		}
		if err = errors.Join(err, f.screen.err); err != nil {
			return err
		}
	}
}

// refresh reads a consumer's offer over gRPC, or all offers for the empty ID, and prints what
// changed.
func (f *follower) refresh(ctx context.Context, id string) error {
	read, err := f.cluster.policies(ctx)
	if err != nil {
		return err
	}
	now, err := f.consumers(ctx)
	if err != nil {
		return err
	}
	f.dropGone(now)
	if id != "" {
		return f.show(ctx, slices.DeleteFunc(now, func(other string) bool { return other != id }))
	}
	if err := f.show(ctx, now); err != nil {
		return err
	}
	if f.cluster.reads {
		// The status names the generation that another operator has processed, if any.
		return nil
	}
	unchanged := f.edits.settle(read)
	for i := range unchanged {
		f.printed(heading(time.Now(), seen(&unchanged[i]), f.screen.width()))
	}
	return nil
}

// findNew reads the offers of new consumers, and drops the consumers that are gone.
func (f *follower) findNew(ctx context.Context) error {
	now, err := f.consumers(ctx)
	if err != nil {
		return err
	}
	f.dropGone(now)
	return f.show(ctx, slices.DeleteFunc(now, f.table.knows))
}

// dropGone reports the consumers that are no longer among these.
func (f *follower) dropGone(now []string) {
	for _, id := range f.table.consumers() {
		if !slices.Contains(now, id) {
			f.printed(f.table.forget(time.Now(), id, f.screen.width()))
		}
	}
}

// show reads the offers of these consumers, and prints what changed.
func (f *follower) show(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	var now []consumer
	for _, id := range ids {
		c, err := f.operator.offersTo(ctx, id)
		if err != nil {
			return fmt.Errorf("reading what %s is offered: %w", id, err)
		}
		now = append(now, c)
	}
	lines, deciding := f.table.update(time.Now(), now, f.screen.width())
	if len(lines) == 0 {
		return nil
	}
	f.printed(lines)
	policies, err := f.cluster.policies(ctx)
	if err != nil {
		return err
	}
	f.edits.show(policies, deciding)
	return nil
}

// printed prints the lines, if any, and schedules the hints.
func (f *follower) printed(lines []string) {
	if len(lines) == 0 {
		return
	}
	if f.hinted {
		f.screen.print("")
		f.hinted = false
	}
	f.screen.print(lines...)
	f.quiet.Reset(lull)
}

// consumers returns the consumers that the operator knows and that an object of Liqo describes.
// Policies may name others, which do not exist yet. Without Liqo nothing distinguishes them.
func (f *follower) consumers(ctx context.Context) (ids []string, err error) {
	described, err := f.cluster.describedConsumers(ctx)
	if err != nil {
		return nil, err
	}
	why, err := f.operator.explainAll(ctx)
	for _, c := range why.Consumers {
		if described == nil || described[c.ClusterID] {
			ids = append(ids, c.ClusterID)
		}
	}
	return ids, err
}
