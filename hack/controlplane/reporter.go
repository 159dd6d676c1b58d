package controlplane

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// tick is the interval between progress reports of a long step.
const tick = 15 * time.Second

// A reporter writes lines of progress. A nil writer drops them.
type reporter struct {
	mu sync.Mutex
	w  io.Writer
}

func (r *reporter) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.w != nil {
		_, _ = fmt.Fprintf(r.w, "control plane: "+format+"\n", args...)
	}
}

// every reports at each tick what is being done and for how long, until stop is called. No line is
// written after stop returns.
func (r *reporter) every(doing string) (stop func()) {
	begin := time.Now()
	var reports sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	reports.Go(func() {
		_ = wait.PollUntilContextCancel(ctx, tick, false, func(context.Context) (bool, error) {
			r.say("%s: %s so far", doing, time.Since(begin).Round(time.Second))
			return false, nil
		})
	})
	return func() { cancel(); reports.Wait() }
}
