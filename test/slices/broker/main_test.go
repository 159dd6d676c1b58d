package broker

import (
	"context"
	"testing"
	"time"

	"proffer.dev/proffer/test/slices/lab"
)

// startTimeout is the time for the clusters to start.
const startTimeout = 8 * time.Minute

// clusters are shared by all tests.
var clusters *Lab

func TestMain(m *testing.M) {
	lab.Test(m, startTimeout, func(ctx context.Context, l *lab.Lab) (err error) {
		clusters, err = Start(ctx, l)
		return err
	})
}
