package operator

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/internal/trends"
)

// sample returns what adds what the latest snapshot shows to the trends, once a minute. Every replica keeps its own.
func sample(from *table.Table, to *trends.Ring) manager.RunnableFunc {
	return func(ctx context.Context) error {
		wait.NonSlidingUntilWithContext(ctx, func(context.Context) {
			if snapshot := from.Current(); snapshot != nil {
				pools, consumers := trends.SamplesOf(snapshot)
				to.Add(time.Now(), pools, consumers)
			}
		}, trends.Every)
		return nil
	}
}
