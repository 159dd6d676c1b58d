package controlplane

import (
	"context"
	"io"
	"path/filepath"
)

// PrometheusVersion must match the go.mod file of test/monitoring; a test compares them. Version
// 0.316.0 of the Go module is Prometheus 3.16.0.
const PrometheusVersion = "0.316.0"

// Prometheus returns a directory with prometheus and promtool. It builds them from Go modules, which
// takes minutes the first time, without the web pages and without service discovery except by files
// and HTTP.
func Prometheus(ctx context.Context, progress io.Writer) (string, error) {
	return keepBuilt(ctx, progress, "prometheus-"+PrometheusVersion, func(dir string, progress *reporter) error {
		return goBuild(ctx, progress, "building Prometheus (3 min on two cores, the first time)", "test/monitoring",
			dir+string(filepath.Separator), "-tags=remove_all_sd", "-ldflags=-s -w", "tool")
	})
}
