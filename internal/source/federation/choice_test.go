package federation

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/operatortest"
	"proffer.dev/proffer/test/providertest"
)

func TestAChoiceIsReadAsItIs(t *testing.T) {
	want := operatortest.Choice(v1alpha1.ProviderChoiceSpec{
		Providers: []v1alpha1.ClusterID{"oslo"}, Count: new(int32(2)),
		Require: []v1alpha1.Requirement{{KPI: v1alpha1.KPIPrice, Resource: "cpu", Max: "0.03"}},
		Prefer:  []v1alpha1.Preference{{KPI: v1alpha1.KPIUptime, Weight: 2}},
	}, 7, noon)
	text, err := json.Marshal(want)
	test.Must(t, err)
	got, err := readChoice(strings.NewReader(string(text)))
	test.Must(t, err)
	if diff := cmp.Diff(want.Spec, got.Spec); diff != "" || got.Generation != 7 || got.version != "7" {
		t.Errorf("got %+v\n%s", got, diff)
	}
	if diff := cmp.Diff(want.Status, got.Status); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A broker can write anything in the place of a ProviderChoice.
func TestABrokerCannotWriteMoreThanIsShown(t *testing.T) {
	listOf := func(n int, item string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	object := func(spec, status string) string {
		return `{"metadata":{"resourceVersion":"1","generation":1},"spec":{` + spec + `},"status":{` + status + `}}`
	}
	text, err := json.Marshal(hostile)
	test.Must(t, err)
	note := fmt.Sprintf(`{"namespace":%[1]s,"provider":%[1]s,"because":%[1]s}`, text)
	provider := fmt.Sprintf(`{"clusterID":%[1]s,"rejectedBy":%[1]s,"because":%[1]s,"uptimePercent":%[1]s,"latencyMs":%[1]s,"resources":[{"name":%[1]s,"price":%[1]s,"remaining":%[1]s},%[2]s}`,
		text, listOf(80, "{}")[1:])
	got, err := readChoice(strings.NewReader(object(
		`"providers":`+listOf(200, string(text))+`,"require":`+listOf(20, fmt.Sprintf(`{"kpi":%[1]s,"resource":%[1]s,"min":%[1]s}`, text)),
		`"chosenProviders":"`+strings.Repeat("x", 10_000)+`","draining":`+listOf(100, note)+`,"providers":`+listOf(70, provider),
	)))
	test.Must(t, err)
	s := got.Status
	if len(s.Providers) != maxItems || len(s.Draining) != maxItems || len(s.Providers[0].Resources) != maxItems || len(got.Spec.Providers) != maxItems ||
		len(s.ChosenProviders) != maxMessage || s.Providers[0].Because != `\x1b]0;title\a\u009b2J\r\u202e\nliqoctl` {
		t.Errorf("%d providers, %d notes: %.2000v", len(s.Providers), len(s.Draining), got)
	}
	printed, err := json.Marshal(got)
	test.Must(t, err)
	if strings.ContainsFunc(string(printed), func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) ||
		strings.Contains(string(printed), `\u001b`) {
		t.Errorf("control characters in %.2000q", printed)
	}

	for name, tc := range map[string]struct{ text, want string }{
		"many small providers": {object("", `"providers":`+listOf(10_000, `{"clusterID":"oslo"}`)), ""},
		"a large field":        {object(`"providers":["`+strings.Repeat("x", maxPart)+`"]`, ""), "its answer is not a ProviderChoice: a part of it has more than 32 KiB"},
		"a large provider":     {object("", `"providers":[{"because":"`+strings.Repeat("x", maxProvider)+`"}]`), "a part of it has more than 8 KiB"},
		"a large answer":       {object("", `"x":`+listOf(maxAnswer/2, "{}")), "its answer has more than 4 MiB"},
		"another type":         {object(`"providers":7`, ""), "its answer is not a ProviderChoice: "},
		"a list":               {`[]`, "its answer is not a ProviderChoice: "},
		"nothing":              {``, "its answer is not a ProviderChoice: "},
		"no version":           {`{"metadata":{"generation":1}}`, "its answer is not a ProviderChoice: it has no resourceVersion"},
		"an end":               {`{"metadata":{"resourceVersion":"1"},"spec":{`, "its answer is not a ProviderChoice: unexpected EOF"},
		"another status":       {`{"metadata":{"resourceVersion":"1"},"status":"Success"}`, ""},
	} {
		if _, err := readChoice(strings.NewReader(tc.text)); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

// brokerAt reaches a server that answers so.
func brokerAt(t *testing.T, serve http.HandlerFunc) Broker {
	t.Helper()
	at, err := connect(providertest.New(t, serve).Kubeconfig(t), operatortest.TenantNamespace)
	test.Must(t, err)
	return Broker{at, time.Minute}
}

func reply(w http.ResponseWriter, code int, value any) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}

func TestOnlyOneFieldIsWrittenAndConflictsAreTriedAgain(t *testing.T) {
	for _, conflicts := range []int{0, 3, 1000} {
		var writes []string
		b := brokerAt(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != operatortest.ChoicePath {
				t.Errorf("it asks for %s", r.URL)
			}
			if r.Method == http.MethodGet {
				reply(w, 200, operatortest.Choice(v1alpha1.ProviderChoiceSpec{}, int64(len(writes)+1), noon))
				return
			}
			body, err := io.ReadAll(r.Body)
			test.Must(t, err)
			writes = append(writes, r.Method+" "+r.Header.Get("Content-Type")+" "+string(body))
			if len(writes) <= conflicts {
				reply(w, 409, operatortest.Status(409, metav1.StatusReasonConflict, "the object has been modified", &metav1.StatusDetails{Name: "providers"}))
				return
			}
			reply(w, 200, operatortest.Choice(v1alpha1.ProviderChoiceSpec{}, 9, noon))
		})
		got, err := b.Choose(t.Context(), "count", 2)
		if conflicts == 1000 {
			if err == nil || len(writes) != maxAttempts || !strings.Contains(err.Error(), "others change the ProviderChoice all the time") {
				t.Errorf("%d writes, %v", len(writes), err)
			}
			continue
		}
		test.Must(t, err)
		want := fmt.Sprintf(`PATCH application/merge-patch+json {"metadata":{"resourceVersion":"%d"},"spec":{"count":2}}`, conflicts+1)
		if got.Generation != 9 || len(writes) != conflicts+1 || writes[conflicts] != want {
			t.Errorf("got %+v\n%s\nwant %s", got, strings.Join(writes, "\n"), want)
		}
	}
}

func TestAnAnswerAboutAChoiceIsExplained(t *testing.T) {
	const rule = `ProviderChoice.proffer.dev "providers" is invalid: spec.require[0]: Invalid value: "object": a price is a decimal number`
	for name, tc := range map[string]struct {
		code    int
		message string
		details *metav1.StatusDetails
		want    string
		served  bool
	}{
		"forbidden": {403, `User "rome" cannot get resource` + hostile, nil,
			`it has no component orchestrator, or has not bound ClusterRole proffer-provider-choice to this cluster yet (User "rome" cannot get resource\x1b]0`, false},
		"no CRD":           {404, "the server could not find the requested resource", nil, "it serves no ProviderChoice to this cluster: it has no component orchestrator", false},
		"another is gone":  {404, "gone", &metav1.StatusDetails{Name: operatortest.TenantNamespace}, "it has no component orchestrator", false},
		"invalid":          {422, rule, &metav1.StatusDetails{Name: "providers"}, "it refuses this: " + rule, true},
		"an unknown field": {400, `strict decoding error: unknown field "spec.x"`, nil, `it refuses this: strict decoding error: unknown field "spec.x"`, true},
		"former":           {401, "no", nil, "it does not accept the identity of this cluster", true},
		"broken":           {500, hostile, nil, `it answers 500: \x1b]0;title\a\u009b2J\r\u202e\nliqoctl`, true},
	} {
		b := brokerAt(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && tc.served {
				reply(w, 200, operatortest.Choice(v1alpha1.ProviderChoiceSpec{}, 1, noon))
				return
			}
			reply(w, tc.code, operatortest.Status(int32(tc.code), "x", tc.message, tc.details))
		})
		_, err := b.Choose(t.Context(), "count", 2)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.ContainsFunc(err.Error(), unicode.IsControl) || isServed(err) != tc.served {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
		if _, err := b.Reset(t.Context()); name != "another is gone" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: a reset got %v, want %s", name, err, tc.want)
		}
	}
}

func isServed(err error) bool { return !strings.Contains(err.Error(), ErrNotServed.Error()) }

// The body of a request does not go where a broker leads it.
func TestAWriteFollowsNoRedirect(t *testing.T) {
	thief := providertest.New(t, func(http.ResponseWriter, *http.Request) { t.Error("the redirect is followed") })
	b := brokerAt(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			reply(w, 200, operatortest.Choice(v1alpha1.ProviderChoiceSpec{}, 1, noon))
			return
		}
		http.Redirect(w, r, thief.URL, http.StatusPermanentRedirect)
	})
	if _, err := b.Choose(t.Context(), "count", 2); err == nil || err.Error() != "it answers 308, a redirect, which is not followed" {
		t.Errorf("got %v", err)
	}
}
