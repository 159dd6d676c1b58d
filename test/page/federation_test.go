package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/providertest"
)

const (
	markup = `<img src=x onerror="document.title='owned'">`
	script = "javascript:document.title='owned'"
)

// offerOf returns an Offer of class gold with words of a stranger.
func offerOf(cpus, price, region string) v1alpha1.Offer {
	o := v1alpha1.Offer{ObjectMeta: metav1.ObjectMeta{Name: "gold"}}
	amounts := kubetest.Quantities("cpu", cpus, "memory", "160Gi", "pods", "110")
	now := time.Now()
	o.Status = v1alpha1.OfferStatus{
		ClusterID: "milan", Class: o.Name, Price: "nothing", Available: amounts, LargestPod: amounts, Reason: v1alpha1.CatalogAvailable,
		CatalogWords: v1alpha1.CatalogWords{
			Title: markup, URL: script, Currency: "EUR", Period: v1alpha1.PeriodHour,
			Labels: v1alpha1.Labels{"region": v1alpha1.LabelValue(region)}, Prices: v1alpha1.Prices{corev1.ResourceCPU: v1alpha1.Price(price)},
		},
		ObservedTime: metav1.NewTime(now), ValidUntil: metav1.NewTime(now.Add(time.Hour)),
	}
	return o
}

// testFederation shows what two providers publish, one of which is filtered out or sorted to the end. It needs what
// Liqo installs, which the other pages do without.
func testFederation(t *testing.T, w *world) {
	for _, file := range providertest.CRDs {
		w.kubectl(t, "apply", "--server-side", "-f", controlplane.LiqoCRD(t, file))
	}
	// An identity is read as soon as it is there: the operator may do that already.
	for _, id := range []string{"oslo", "paris"} {
		w.kubectl(t, "create", "namespace", "liqo-tenant-"+id)
		w.kubectl(t, "-n", "liqo-tenant-"+id, "create", "role", "federation", "--verb=get", "--resource=secrets", "--resource-name=kubeconfig-controlplane-"+id)
		w.kubectl(t, "-n", "liqo-tenant-"+id, "create", "rolebinding", "federation", "--role=federation", "--serviceaccount="+namespace+":proffer")
	}
	oslo := providertest.New(t, nil, offerOf("40", "0.02", "eu-north"))
	oslo.Peer(t, w.client, "oslo")
	providertest.New(t, nil, offerOf("8", "0.01", "eu-west")).Peer(t, w.client, "paris")

	p := open(t, w, w.dashboard(t, w.user(t, "buyer", "proffer-plugin-reader")))
	p.do(chromedp.Click(chromedp.CSS(`nav a[href$="federation"]`)))
	p.awaitTitle("Federation")
	const rows = `[aria-label="Offers"] tbody tr`
	test.Eventually(t, func() error {
		p.visit("federation")
		if got := p.cells(rows); len(got) != 2 {
			return fmt.Errorf("the Offers are %v", got)
		}
		return nil
	})
	for i, want := range [][]string{
		{"oslo", "gold: " + markup, "cpu=40, memory=160Gi, pods=110", "cpu=40, memory=160Gi, pods=110", "cpu 0.02 EUR/hour", "region=eu-north"},
		{"paris", "gold: " + markup, "cpu=8, memory=160Gi, pods=110", "cpu=8, memory=160Gi, pods=110", "cpu 0.01 EUR/hour", "region=eu-west"},
	} {
		got := p.cells(rows)[i]
		if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if command := got[len(got)-1]; !strings.HasPrefix(command, "liqoctl create resourceslice ") || !strings.Contains(command, "--remote-cluster-id "+want[0]) {
			t.Errorf("the command is %q", command)
		}
	}
	if n := value[int](p, "document.querySelectorAll('main img, main a[href^=javascript]').length"); n > 0 {
		t.Errorf("%d elements are of a provider", n)
	}
	p.axe("the federation")
	p.screenshot("federation")

	for _, c := range []struct{ field, text, of string }{
		{"#region", "eu-west", "paris"}, {"#fits", "cpu=20", "oslo"}, {"#price", "cpu=0.015", "paris"}, {"#class", "silver", ""},
	} {
		p.visit("federation")
		p.do(chromedp.SendKeys(chromedp.CSS(c.field), c.text), chromedp.SetValue("#currency", "EUR"), chromedp.Click(".filter button"))
		p.awaitProviders(c.of)
	}
	p.visit("federation")
	p.do(chromedp.SetValue("#sort", "price"), chromedp.Click(".filter button"))
	p.awaitProviders("paris oslo")

	oslo.Publish(offerOf("39", "0.02", "eu-north"))
	test.Eventually(t, func() error {
		p.visit("federation")
		if got := p.cells(rows)[0][2]; !strings.HasPrefix(got, "cpu=39,") {
			return fmt.Errorf("oslo has %s", got)
		}
		return nil
	})
	p.do(screen(360, 740, true))
	p.visit("federation")
	if got := value[int](p, "document.documentElement.scrollWidth"); got > 360 {
		t.Errorf("it is %d pixels wide", got)
	}
	p.screenshot("narrow-federation")
}

// awaitProviders waits until the answer to a form has the Offers of these providers.
func (p *tab) awaitProviders(want string) {
	p.t.Helper()
	const found = `location.search === "" ? "no answer" : [...document.querySelectorAll('[aria-label="Offers"] tbody th')].map(h => h.textContent).join(" ")`
	test.Eventually(p.t, func() error {
		got, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](found))
		if err == nil && got != want {
			err = fmt.Errorf("the page has %q, not %q", got, want)
		}
		return err
	})
}
