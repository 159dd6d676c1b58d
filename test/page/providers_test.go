package page

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
)

// testProviders disables and enables a provider with the buttons of the page.
func testProviders(t *testing.T, w *world) {
	reader := open(t, w, w.dashboard(t, w.user(t, "broker", "proffer-plugin-reader")))
	reader.do(chromedp.Click(chromedp.CSS(`nav a[href$="providers"]`)))
	reader.awaitTitle("Providers")
	if buttons := value[int](reader, "document.querySelectorAll('main button').length"); buttons != 0 {
		t.Errorf("a reader sees %d buttons", buttons)
	}

	w.kubectl(t, "create", "clusterrolebinding", "dashboard-toggles", "--clusterrole=proffer-toggle", "--serviceaccount="+namespace+":proffer-simulator")
	p := open(t, w, w.dashboard(t, w.admin))
	p.visit("providers")
	const state = `[aria-label="oslo in broker"] tbody tr`
	for _, step := range []struct {
		button, state, by, then string
		// entries are those of spec.disabled: one is in the manifest.
		entries []v1alpha1.DisabledProvider
	}{
		{"Disable oslo for every consumer in broker", "enabled", "–", "disabled", []v1alpha1.DisabledProvider{{Provider: "paris", Consumer: "rome"}, {Provider: "oslo"}}},
		{"Enable oslo for every consumer in broker", "disabled", "admin", "enabled", []v1alpha1.DisabledProvider{{Provider: "paris", Consumer: "rome"}}},
	} {
		if diff := cmp.Diff([][]string{{"every consumer", step.state, "–", "–", step.by, "–", strings.Fields(step.button)[0]}}, p.cells(state)); diff != "" {
			t.Fatal(diff)
		}
		p.axe("providers, " + step.state)
		p.screenshot("providers-" + step.state)
		p.do(chromedp.Click(chromedp.CSS(fmt.Sprintf("button[aria-label=%q]", step.button))))
		test.Eventually(t, func() error {
			if got := p.cells(state); len(got) != 1 || got[0][1] != step.then {
				return fmt.Errorf("oslo: %v", got)
			}
			return nil
		})
		var o v1alpha1.Orchestration
		test.Must(t, json.Unmarshal([]byte(w.kubectl(t, "get", "orch", "broker", "-o", "json")), &o))
		if diff := cmp.Diff(step.entries, o.Spec.Disabled); diff != "" {
			t.Error(diff)
		}
	}
	// The manifest of an admin is not changed by a button.
	if got := p.cells(`[aria-label="paris in broker"] tbody tr`); len(got) != 2 || got[1][1] != "disabled" ||
		got[1][5] != "in the manifest of kubectl-client-side-apply" || got[1][6] != "–" {
		t.Errorf("paris: %v", got)
	}
}
