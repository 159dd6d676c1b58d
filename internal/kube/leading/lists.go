package leading

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	"proffer.dev/proffer/internal/kube"
)

const (
	// waitingNotice is the wait for first lists after which the log says what they wait for, and
	// waitingAgain the time between two such lines.
	waitingNotice = 10 * time.Second
	waitingAgain  = 5 * time.Minute
)

// Lists is a source without requests: nothing is reconciled before these informers, which the caller
// runs, have seen every object once.
type Lists struct {
	Informers kube.CRDInformers
	// Waiting is the message of a log line about lists that take long.
	Waiting string
	Log     logr.Logger
}

// Start implements source.Source.
func (Lists) Start(context.Context, queue) error { return nil }

// WaitForSync implements source.SyncingSource.
func (l Lists) WaitForSync(ctx context.Context) error {
	notice := time.NewTimer(waitingNotice)
	defer notice.Stop()
	for _, i := range l.Informers {
		for done := false; !done; {
			select {
			case <-ctx.Done():
				return nil
			case <-i.Done():
				done = true
			case <-notice.C:
				l.Log.Info(l.Waiting, "waitingFor", i.Name())
				notice.Reset(waitingAgain)
			}
		}
	}
	return nil
}
