package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test/operatortest"
)

// hostileBrokers answer with what is no ProviderChoice, or with one that is larger than it could be.
var hostileBrokers = map[string]hostile{
	"many": {func(w http.ResponseWriter, _ *http.Request) {
		providers := strings.Repeat(`{"clusterID":"x","because":`+quotedEscapes+`},`, 10_000)
		_, _ = fmt.Fprintf(w, `{"metadata":{"resourceVersion":"1"},"status":{"providers":[%s]}}`, strings.TrimSuffix(providers, ","))
	}, ""},
	"fat": {func(w http.ResponseWriter, _ *http.Request) {
		providers := strings.Repeat(`{"resources":[{}`+strings.Repeat(",{}", 2000)+"]},", 10_000/64)
		_, _ = fmt.Fprintf(w, `{"metadata":{"resourceVersion":"1"},"status":{"providers":[%s]}}`, strings.TrimSuffix(providers, ","))
	}, ""},
	"vast": {func(w http.ResponseWriter, r *http.Request) {
		writeEndless(w, r, `{"metadata":{"resourceVersion":"1"},"status":{"providers":[{}`, `,{}`)
	}, "its answer has more than 4 MiB"},
}

var quotedEscapes = func() string {
	text, _ := json.Marshal(escapes)
	return string(text)
}()

func TestAHostileBrokerHarmsOnlyItself(t *testing.T) {
	s := operatortest.Start(t)
	warnings := map[string]string{}
	for name, h := range hostileProviders {
		addHostile(t, s, name, h.serve)
		switch name {
		case "secret", "absent": // They are no brokers.
		case "endless", "deep", "chatty", "headed", "closed", "former":
			warnings[name] = h.want
		default:
			warnings[name] = "its answer is not a ProviderChoice: "
		}
	}
	for name, h := range hostileBrokers {
		addHostile(t, s, name, h.serve)
		if h.want != "" {
			warnings[name] = h.want
		}
	}
	addForged(t, s, warnings)
	stolen, _ := addThieves(t, s, warnings)
	status, stdout, stderr := plugin(t, s, "providers", "--request-timeout=5m")
	if status != 1 || strings.Count(stdout, "\nmany ") != 64 || strings.Count(stdout, "\nfat ") != 64 || !strings.Contains(stdout, "milan: no ProviderChoice, so the broker chooses") {
		t.Errorf("exit status %d, %d rows of many\n%.3000s", status, strings.Count(stdout, "\nmany "), stdout)
	}
	got := map[string]string{}
	for line := range strings.Lines(stderr) {
		name, warning, _ := strings.Cut(strings.TrimPrefix(line, "warning: "), ": ")
		got[name] += warning
	}
	for name, want := range warnings {
		if !strings.Contains(got[name], want) || strings.Count(got[name], "\n") != 1 {
			t.Errorf("%s: got %q, want %q", name, got[name], want)
		}
	}
	if len(got) != len(warnings) || stolen.Load() > 0 {
		t.Errorf("%d warnings, want %d; %d requests follow a redirect", len(got), len(warnings), stolen.Load())
	}
	if strings.ContainsFunc(stdout+stderr, func(r rune) bool { return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) }) {
		t.Errorf("control characters in %q", stdout+stderr)
	}
	for name, want := range warnings {
		if status, stdout, stderr := plugin(t, s, "providers", "count", "2", "--request-timeout=5m", "--broker="+name); status != 1 || stdout != "" ||
			!strings.HasPrefix(stderr, "error: "+name+": ") || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d %s%s", name, status, stdout, stderr)
		}
	}
}

func TestABrokerThatDoesNotAnswerDelaysOnlyOnce(t *testing.T) {
	s := operatortest.Start(t)
	warnings := map[string]string{}
	for name, silent := range silentProviders {
		addHostile(t, s, name, silent.serve)
		warnings[name] = silent.want
	}
	addMute(t, s, warnings)
	status, stdout, stderr := plugin(t, s, "providers", "--request-timeout=1s")
	if status != 1 || !strings.Contains(stdout, "milan: no ProviderChoice") || strings.Count(stderr, "it does not answer within 1s\n") != len(warnings) {
		t.Errorf("%d %s%s", status, stdout, stderr)
	}
}

func TestAChoiceIsWrittenAtTheOneBroker(t *testing.T) {
	s := operatortest.Start(t)
	addHostile(t, s, "bern", refuse(http.StatusForbidden))
	for _, tc := range []struct {
		args   string
		status int
		want   string
	}{
		{"providers", 0, "milan: no ProviderChoice, so the broker chooses. To see its providers: kubectl proffer providers choose --all --broker milan\n"},
		{"providers choose oslo lima", 0, "milan: choose oslo lima\nBROKER   PROVIDER   CHOSEN"},
		{"providers count 2 --wait=false", 0, "milan: count 2\n"},
		{"providers require uptime=99.5,price.cpu=0.03", 0, "  set: require uptime=99.5,price.cpu=0.03\n"},
		{"providers -o json", 0, `"clusterID": "oslo"`},
		{"providers -o yaml", 0, "brokers:\n- choice:"},
		{"providers reset", 0, "milan: the ProviderChoice is deleted, and the broker chooses.\n"},
		{"providers reset", 0, "milan: there was no ProviderChoice.\n"},
		{"providers choose", 1, "error: write either arguments or --all: see kubectl proffer providers choose --help\n"},
		{"providers require uptime=1 --none", 1, "error: write either arguments or --none"},
		{"providers count many", 1, "error: \"many\" is not a number of providers: write one such as 2\n"},
		{"providers require speed=1", 1, "error: \"speed\" is not a KPI"},
		{"providers oslo", 1, "error: unknown command \"oslo\" for \"kubectl proffer providers\"\n"},
		{"providers --broker bern", 1, "error: no provider of this cluster lets it choose: bern: it serves no ProviderChoice to this cluster: "},
		{"providers --broker oslo", 1, "error: this cluster has no identity at a provider \"oslo\": peer with it, or leave --broker out to see all\n"},
	} {
		status, stdout, stderr := plugin(t, s, strings.Fields(tc.args)...)
		if status != tc.status || !strings.Contains(stdout+stderr, tc.want) {
			t.Errorf("%s: %d\n%s%s", tc.args, status, stdout, stderr)
		}
	}
	// With a second one, somebody has to say which.
	s.AddProvider(t, "turin", s.ProviderKubeconfig())
	if status, _, stderr := plugin(t, s, "providers", "count", "2"); status != 1 ||
		stderr != "error: this cluster may have several brokers: milan, turin: write which one, such as --broker milan\n" {
		t.Errorf("%d %s", status, stderr)
	}
	if status, stdout, _ := plugin(t, s, "providers", "count", "2", "--broker=turin"); status != 0 || !strings.HasPrefix(stdout, "turin: count 2\n") {
		t.Errorf("%d %s", status, stdout)
	}
}

// A broker that has let the cluster choose, and does not any more, is not waited for without an end.
func TestAChoiceThatIsNotFollowedEndsWithAnError(t *testing.T) {
	s := operatortest.Start(t)
	choice := operatortest.Choice(v1alpha1.ProviderChoiceSpec{}, 1, metav1.Now().Time)
	choice.Status.Conditions[0].Status, choice.Status.Conditions[0].Reason = metav1.ConditionFalse, v1alpha1.ProviderChoiceNotAllowed
	addHostile(t, s, "bern", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(choice) })
	status, stdout, _ := plugin(t, s, "providers", "--broker", "bern", "choose", "--all")
	if status != 1 || !strings.Contains(stdout, "bern: NotAllowed: ") || !slices.Contains(strings.Split(stdout, "\n"), "bern: all that the broker allows") {
		t.Errorf("%d %s", status, stdout)
	}
}

// afterEach calls a function after each write, with all that was written.
type afterEach struct {
	text *strings.Builder
	then func(text string)
}

func (a afterEach) Write(p []byte) (int, error) {
	n, err := a.text.Write(p)
	a.then(a.text.String())
	return n, err
}

func TestAWatchShowsEachChangeOfAChoice(t *testing.T) {
	s := operatortest.Start(t)
	plugin(t, s, "providers", "choose", "oslo")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var chosen, errOut strings.Builder
	edited := false
	out := afterEach{&chosen, func(text string) {
		if !edited && strings.Contains(text, "  set: choose oslo\n") {
			edited = true
			plugin(t, s, "providers", "choose", "paris", "--wait=false")
		}
		if strings.Contains(text, "  set: choose paris\n") {
			cancel()
		}
	}}
	run(ctx, []string{"providers", "--watch", "--kubeconfig=" + s.Kubeconfig}, genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: &errOut})
	if _, changes, _ := strings.Cut(chosen.String(), "  set: choose oslo\n"); !strings.Contains(changes, "\nmilan: InForce: ") ||
		!strings.Contains(changes, "  set: choose paris\n") || strings.Contains(changes, "UPTIME") {
		t.Errorf("got\n%s%s", chosen.String(), errOut.String())
	}
}
