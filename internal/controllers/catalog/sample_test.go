package catalog

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
)

// flooding are providers of which one changes each time that it is looked at.
type flooding struct {
	unread, looks int
}

func (f *flooding) Complete(time.Time) bool {
	f.unread--
	return f.unread < 0
}

func (f *flooding) Behind(time.Time) map[string][]v1alpha1.OfferProvider {
	f.looks++
	return map[string][]v1alpha1.OfferProvider{"oslo": {{ClusterID: "oslo", Class: "gold", Title: v1alpha1.ShownText(fmt.Sprint(f.looks))}}}
}

// However often a provider changes what it publishes, the Offers that show it are worked out again once a minute.
func TestProvidersAreLookedAtOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, shows := range []bool{true, false} {
			providers, all := &flooding{unread: 2}, table.New()
			policy := offer.Policy{Name: "gold", Class: "gold", Nodes: &offer.Nodes{Percent: 100, Selection: capacity.Selection{Peers: &capacity.Peers{Depth: 1}}}}
			policy.Catalog.ShowProviders = shows
			in := offer.Input{Policies: []offer.Policy{policy}, View: capacity.NewLedger().View(offer.Selections([]offer.Policy{policy}))}
			all.Publish(table.Snapshot{Result: offer.Evaluate(in), Input: in, Policies: []table.Policy{{Name: "gold", Parsed: &policy}}, Time: time.Now()})
			served := kube.NewCRDInformer(nil, kube.Kind{Builtin: true, Reflect: func() kube.Reflection {
				return kube.Reflection{Run: func(ctx context.Context) { <-ctx.Done() }, Synced: make(chan struct{})}
			}}, func() {}, logr.Discard())
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { test.Check(t, kube.CRDInformers{served}.Start(ctx)) })
			synctest.Wait()
			c := &comparison{
				Writer: &Writer{Config: Config{Table: all, Shapes: capacity.NewLedger().Shapes, Publish: true, Providers: providers}},
				plan:   newPlan(pacers(restore.New(), logr.Discard()), newEvents(&events.FakeRecorder{}), nil), watches: watches{offers: served, roles: kube.NewObjectCache(uidOf)},
			}
			begin, states, before := time.Now(), 0, state(nil)
			for time.Since(begin) < 10*time.Minute {
				got, err := c.Reconcile(t.Context(), reconcile.Request{})
				if err != nil || shows && (got.RequeueAfter <= 0 || got.RequeueAfter > samplePeriod) || !shows && got.RequeueAfter != 0 {
					t.Fatalf("%+v, %v", got, err)
				}
				if c.latest != before {
					before = c.latest
					states++
				}
				time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
			}
			stop()
			running.Wait()
			if want := map[bool]int{true: 10, false: 0}[shows]; providers.looks != want {
				t.Errorf("shown %v: looked at %d times, want %d", shows, providers.looks, want)
			}
			if want := map[bool]int{true: 10, false: 1}[shows]; states != want {
				t.Errorf("shown %v: %d states, want %d", shows, states, want)
			}
		}
	})
}

// A provider renews its Offer every few minutes, which is no reason to write those that show it.
func TestTheTimesOfProvidersAreNoChange(t *testing.T) {
	printOf := func(edit func(p *v1alpha1.OfferProvider)) fingerprint {
		p := v1alpha1.OfferProvider{ClusterID: "oslo", Class: "gold", ValidUntil: metav1.NewTime(time.Unix(1000, 0))}
		edit(&p)
		u, err := offerOf(table.Tenant{Namespace: "liqo-tenant-rome"}, &v1alpha1.OfferStatus{Class: "gold", Providers: []v1alpha1.OfferProvider{p}})
		if err != nil {
			t.Fatal(err)
		}
		return fingerprintOf(u)
	}
	same := printOf(func(*v1alpha1.OfferProvider) {})
	if printOf(func(p *v1alpha1.OfferProvider) { p.ValidUntil.Time = time.Unix(2000, 0) }) != same {
		t.Error("a time is a change")
	}
	if printOf(func(p *v1alpha1.OfferProvider) { p.Title = "near" }) == same {
		t.Error("a title is no change")
	}
}
