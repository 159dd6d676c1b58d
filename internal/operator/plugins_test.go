package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/plugins/filters"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/plugin"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// stubborn is a filter that admits nodes without the label "hot", and that blocks on request.
type stubborn struct {
	blocks  atomic.Bool
	release chan struct{}
}

func (*stubborn) Name() string { return "Stubborn" }

func (f *stubborn) Filter(_ *plugin.Policy, n *plugin.Node) (ok bool, why string) {
	if f.blocks.Load() {
		<-f.release
	}
	_, hot := n.Labels["hot"]
	return !hot, "hot"
}

func TestPluginsReadTheWholeStateAsACopyOfTheirOwn(t *testing.T) {
	early := stateReader{table: table.New(), ledger: capacity.NewLedger()}
	if _, err := early.read(); !errors.Is(err, table.ErrNotReady) {
		t.Errorf("before the first evaluation: %v", err)
	}
	kubetest.Create(t, nodestest.Node("n1", nodestest.List("cpu", "4", "memory", "8Gi", "pods", "10")))
	kubetest.Create(t, kubetest.Policy("all", kubetest.Fixed("cpu", "2"), kubetest.ForIDs("rome")))
	o := startOperator(t)
	o.awaitOfferOf("rome", "cpu", 2000)
	reader := stateReader{table: o.table, ledger: o.ledger, version: "v0.1.0"}
	for range 2 {
		state, err := reader.read()
		test.Must(t, err)
		if state.Version != rest.WorldVersion || state.Proffer != "v0.1.0" || state.Revision == 0 {
			t.Errorf("got version %d of %s at revision %d", state.Version, state.Proffer, state.Revision)
		}
		offer := state.Offers[0]
		cpu := offer.Resources["cpu"]
		got := []string{state.Policies[0].Name, offer.ClusterID, offer.Policy, cpu.String(), state.Nodes[0].Name}
		if diff := cmp.Diff([]string{"all", "rome", "all", "2", "n1"}, got); diff != "" {
			t.Error(diff)
		}
		// Whatever the plugin does to its copy is not in the next one.
		state.Policies[0].Name, state.Nodes[0].Name = "changed", "changed"
		clear(state.Offers[0].Resources)
	}
}

// deaf is a reconciler that never returns.
type deaf struct{ calls chan struct{} }

func (deaf) Name() string { return "Deaf" }

func (d deaf) Reconcile(context.Context, plugin.Event) (time.Duration, error) {
	d.calls <- struct{}{}
	select {}
}

func (d deaf) HandleDeletion(context.Context, plugin.Event) error { select {} }

// diary is a reconciler that keeps the latest offer of cpu in the unnamed class to rome.
type diary struct{ cpu atomic.Value }

func (*diary) Name() string { return "Diary" }

func (d *diary) Reconcile(_ context.Context, e plugin.Event) (time.Duration, error) {
	if e.Reference == (plugin.Reference{Kind: plugin.KindOffer, Key: "rome/"}) {
		d.cpu.Store(e.New.Offer.Amounts.Cpu().String())
	}
	return 0, nil
}

func (*diary) HandleDeletion(context.Context, plugin.Event) error { return nil }

func TestPluginsDecideAndFollowAndDelayNothingWhenTheyHang(t *testing.T) {
	filter, never, notes := &stubborn{release: make(chan struct{})}, deaf{make(chan struct{}, 1)}, &diary{}
	cool := kubetest.Create(t, nodestest.Node("cool", nodestest.List("cpu", "16", "memory", "16Gi", "pods", "10")))
	kubetest.Create(t, nodestest.Node("mild", nodestest.List("cpu", "4", "memory", "16Gi", "pods", "10")))
	kubetest.Create(t, kubetest.Policy("nodes", kubetest.ForIDs("oslo", "rome")))
	o := startOperator(t, func(p *parts) {
		p.chain = filters.New(config.Filters{Nodes: []string{"Basic", "Affinity", "Stubborn"}}, map[string]plugin.NodeFilter{"Stubborn": filter}, nil, nil,
			filters.Late{Reconsider: p.ledger.Reconsider, Wake: p.debouncer.Wake}, logr.Discard())
		p.reconcilers = map[string]plugin.Reconciler{"Deaf": never, "Diary": notes}
	})
	diaryHas := func(want string) {
		t.Helper()
		test.Eventually(t, func() string {
			if got, _ := notes.cpu.Load().(string); got != want {
				return "the diary has " + got + ", want " + want
			}
			return ""
		})
	}
	o.awaitOfferOf("oslo", "cpu", 20_000)
	o.awaitOfferOf("rome", "cpu", 20_000)
	diaryHas("20")
	<-never.calls

	filter.blocks.Store(true)
	kubetest.Edit(t, cool, func(o client.Object) { o.SetLabels(map[string]string{"hot": ""}) }, kubetest.WriteSpec)
	kubetest.Create(t, nodestest.Node("new", nodestest.List("cpu", "2", "memory", "16Gi", "pods", "10")))
	// The policy is not affected by the filter. Its offer passes the one that waits for the filter.
	start := time.Now()
	kubetest.Create(t, kubetest.Policy("urgent", kubetest.Fixed("cpu", "1"), func(s *v1alpha1.ResourcePolicySpec) { s.Class = "urgent" }))
	test.Eventually(t, func() string {
		if o.offered("rome")["urgent"] == nil {
			return "rome is not offered the class urgent"
		}
		return ""
	})
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("an offer took %v while a filter hangs", took)
	}
	o.awaitOfferOf("oslo", "cpu", 20_000) // The earlier answer on cool counts, and new is left out.
	filter.blocks.Store(false)
	close(filter.release)
	o.awaitOfferOf("oslo", "cpu", 6_000)
	diaryHas("6")
}

func TestAFactoryThatMisbehavesIsOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := &stubborn{}
		for want, factory := range map[string]plugin.NodeFilterFactory{
			"": func(json.RawMessage, plugin.Handle) (plugin.NodeFilter, error) { return good, nil },
			"plugin Stubborn: its argument is wrong": func(json.RawMessage, plugin.Handle) (plugin.NodeFilter, error) {
				return nil, errors.New("its argument is wrong")
			},
			"plugin Stubborn: its factory panics: boom":      func(json.RawMessage, plugin.Handle) (plugin.NodeFilter, error) { panic("boom") },
			"plugin Stubborn: its factory panics: two lines": func(json.RawMessage, plugin.Handle) (plugin.NodeFilter, error) { panic("two\n\tlines") },
			"plugin Stubborn: cannot read a and b": func(json.RawMessage, plugin.Handle) (plugin.NodeFilter, error) {
				return nil, errors.Join(errors.New("cannot read a"), errors.New("and b"))
			},
			"plugin Stubborn: its factory panics: runtime error: invalid memory address or nil pointer dereference": func(json.RawMessage, plugin.Handle) (plugin.NodeFilter, error) {
				return nil, (*fs.PathError)(nil)
			},
			"plugin Stubborn: its factory ends its goroutine instead of returning": func(json.RawMessage, plugin.Handle) (plugin.NodeFilter, error) {
				runtime.Goexit()
				return good, nil
			},
			"plugin Stubborn: its factory returns nil": func(json.RawMessage, plugin.Handle) (plugin.NodeFilter, error) { return nil, nil },
			"plugin Stubborn: its factory does not return within 10s": func(json.RawMessage, plugin.Handle) (plugin.NodeFilter, error) {
				time.Sleep(2 * pluginTimeout) //nolint:forbidigo // in a bubble
				return good, nil
			},
		} {
			got := ""
			if _, err := start("Stubborn", nil, plugin.Handle{}, factory); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		_, err := start("Stubborn", nil, plugin.Handle{}, func(json.RawMessage, plugin.Handle) (plugin.NodeFilter, error) {
			return nil, errors.New(strings.Repeat("long ", 1<<20))
		})
		if err == nil || len(err.Error()) > 2000 {
			t.Errorf("got an error of %d bytes", len(fmt.Sprint(err)))
		}
		time.Sleep(2 * pluginTimeout) //nolint:forbidigo // in a bubble, which ends after all of its goroutines
		_, err = start("Other", nil, plugin.Handle{}, func(json.RawMessage, plugin.Handle) (plugin.NodeFilter, error) { return good, nil })
		if err == nil || !strings.HasSuffix(err.Error(), `it is registered as Other and calls itself "Stubborn": use one name`) {
			t.Errorf("got %v", err)
		}
	})
}
