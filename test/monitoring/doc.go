// Package monitoring tests the components alerts and dashboard: each alert fires when it should and
// only then, and each panel of the board has data. It runs Prometheus and promtool themselves, which
// hack/controlplane builds from the version in go.mod.
package monitoring
