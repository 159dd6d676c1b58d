package operator

import (
	"context"
	"time"

	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/internal/trends"
)

// sampler adds what the latest snapshot shows to the trends, once a minute. Every replica keeps its own.
type sampler struct {
	table *table.Table
	ring  *trends.Ring
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (s *sampler) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s *sampler) Start(ctx context.Context) error {
	ticker := time.NewTicker(trends.Every)
	defer ticker.Stop()
	for {
		if snapshot := s.table.Current(); snapshot != nil {
			pools, consumers := trends.SamplesOf(snapshot)
			s.ring.Add(time.Now(), pools, consumers)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
