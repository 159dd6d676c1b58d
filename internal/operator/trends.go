package operator

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/internal/trends"
)

// sampler adds what the latest snapshot shows to the trends, once a minute. Every replica keeps its own.
type sampler struct {
	table *table.Table
	ring  *trends.Ring
}

// Start implements manager.Runnable.
func (s *sampler) Start(ctx context.Context) error {
	wait.NonSlidingUntilWithContext(ctx, func(context.Context) {
		if snapshot := s.table.Current(); snapshot != nil {
			pools, consumers := trends.SamplesOf(snapshot)
			s.ring.Add(time.Now(), pools, consumers)
		}
	}, trends.Every)
	return nil
}
