package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"

	"proffer.dev/proffer/test/process"
)

// metrics are the metric families of one scrape, by name.
type metrics map[string]*dto.MetricFamily

func scrape(ctx context.Context, web *http.Client, address, token string) (metrics, error) {
	text, err := process.Get(ctx, web, address, token)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return families, nil
}

// sum adds up the samples that have all of these labels. A histogram counts as its number of
// observations, a metric that does not exist as 0.
func (m metrics) sum(name string, labels map[string]string) float64 {
	var total float64
	for _, sample := range m[name].GetMetric() {
		matching := 0
		for _, l := range sample.GetLabel() {
			if want, asked := labels[l.GetName()]; asked && want == l.GetValue() {
				matching++
			}
		}
		if matching == len(labels) {
			total += sample.GetCounter().GetValue() + sample.GetGauge().GetValue() +
				float64(sample.GetHistogram().GetSampleCount())
		}
	}
	return total
}

// serverFigures come from the API server's metrics.
type serverFigures struct {
	// cpu is the CPU time in nanoseconds.
	cpu float64
	// streams counts the watches of nodes and pods that began with a full list, lists the LIST
	// requests for them.
	streams, lists float64
}

func (c *cluster) serverFigures(ctx context.Context) (serverFigures, error) {
	m, err := c.scrapeServer(ctx)
	if err != nil {
		return serverFigures{}, err
	}
	f := serverFigures{cpu: m.sum("process_cpu_seconds_total", nil) * float64(time.Second)}
	for _, resource := range []string{"nodes", "pods"} {
		f.streams += m.sum("apiserver_watch_list_duration_seconds", map[string]string{"resource": resource})
		f.lists += m.sum("apiserver_request_total", map[string]string{"resource": resource, "verb": "LIST"})
	}
	return f, nil
}

func (c *cluster) scrapeServer(ctx context.Context) (metrics, error) {
	web, server, err := c.overHTTP()
	if err != nil {
		return nil, err
	}
	return scrape(ctx, web, server.JoinPath("metrics").String(), "")
}

// overHTTP returns an HTTP client with the credentials for the API server, and the server's URL.
func (c *cluster) overHTTP() (*http.Client, *url.URL, error) {
	web, err := rest.HTTPClientFor(c.plane.Config)
	if err != nil {
		return nil, nil, err
	}
	server, _, err := rest.DefaultServerUrlFor(c.plane.Config)
	return web, server, err
}
