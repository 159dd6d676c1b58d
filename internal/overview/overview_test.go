package overview

import (
	"fmt"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/internal/trends"
)

// noon is the time of the evaluation, and healthy a process a second later.
var (
	noon    = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	healthy = Process{Now: noon.Add(time.Second), Namespace: "proffer-system", LeaderSeen: noon, Watched: "pods", Heard: noon}
)

func ago(d time.Duration) *time.Time { return new(noon.Add(-d)) }

// decided are slices with decisions.
type decided []table.DecidedSlice

func (decided) GrantedBy() map[string]map[string][]string                   { return nil }
func (decided) Granted() map[string]map[string]capacity.Amounts             { return nil }
func (decided) Under(string) table.PolicyGrants                             { return table.PolicyGrants{} }
func (d decided) DryRun(func() *offer.AllocationInput) table.SliceDecisions { return d }
func (d decided) All(yield func(table.DecidedSlice) bool) {
	for _, s := range d {
		if !yield(s) {
			return
		}
	}
}

// snapshot has these slices, and two pods of the slice "more" of rome, which request 3 cpu.
func snapshot(all ...table.DecidedSlice) *table.Snapshot {
	ledger := capacity.NewLedger()
	ledger.SetNode(capacity.Node{Name: "n"})
	for _, key := range []string{"a", "b"} {
		ledger.SetPod(capacity.Pod{Key: key, Node: "n", Consumer: "rome", Creator: "more-of-rome", Requests: capacity.Amounts{"cpu": 1500}})
	}
	return &table.Snapshot{Revision: 7, Time: noon, Slices: decided(all), Input: offer.Input{View: ledger.View(nil)}}
}

// slice was made two hours before noon. Its request is decided on as the edits say.
func slice(name string, edits ...func(*table.DecidedSlice)) table.DecidedSlice {
	d := table.DecidedSlice{
		Namespace: "liqo-tenant-rome", Name: name, Because: func() string { return "why " + name },
		Slice: grant.Slice{Consumer: "rome", Class: "gold", Created: noon.Add(-2 * time.Hour).Unix()},
	}
	for _, edit := range edits {
		edit(&d)
	}
	return d
}

func answered(verdict grant.Verdict, asked, granted int64) func(*table.DecidedSlice) {
	return func(d *table.DecidedSlice) {
		d.Answer = &grant.Answer{Verdict: verdict, Policy: &offer.Policy{Name: "gold-pool"}, Lines: []grant.Line{
			{Resource: "cpu", Asked: asked, Granted: granted, Listed: true},
		}}
	}
}

// stands has the status say this since then.
func stands(accepted bool, since time.Time) func(*table.DecidedSlice) {
	return func(d *table.DecidedSlice) { d.Stands = func() (bool, time.Time) { return accepted, since } }
}

func awaits(d *table.DecidedSlice) { d.Awaits = true }

func policyOf(name, reason, status, message string) rest.Policy {
	return rest.Policy{Name: name, Reason: reason, Conditions: []rest.Condition{{Type: "Ready", Status: status, Reason: reason, Message: message}}}
}

// poolOf has this left of 8 cpu, 0 gpu and 2 disks.
func poolOf(name, reason, cpu, disks string) rest.Policy {
	p := policyOf(name, reason, "True", "Nothing is left of memory.")
	q := resource.MustParse
	p.Capacity = rest.Amounts{"cpu": q("8"), "example.com/gpu": q("0"), "example.com/disk": q("2")}
	p.Remaining = rest.Amounts{"cpu": q(cpu), "example.com/gpu": q("0"), "example.com/disk": q(disks)}
	return p
}

func TestAPolicyWithASlipOrWithoutAnEndOfItsPauseNeedsSomebody(t *testing.T) {
	s := snapshot()
	for name, until := range map[string]int64{"ends": noon.Unix() + 1, "paused": 0, "active": 0} {
		s.Policies = append(s.Policies, table.Policy{Name: name, Parsed: &offer.Policy{Name: name, PausedUntil: until}})
	}
	got := Of(s, []rest.Policy{
		policyOf("active", "Offering", "True", "It decides."),
		policyOf("fixed", "Offering", "True", "It decides. Probably a slip: spec.offer.fixed[memory] is 8 bytes."), policyOf("ends", "Paused", "True", "It has an end."),
		policyOf("paused", "Paused", "True", "Consumers keep what they have."), policyOf("stopped", "Stopped", "True", "Nothing is offered."),
	}).With(healthy)
	want := []rest.Finding{
		{Kind: "policies", Status: "warning", Page: "policies#policy-fixed", Do: "kubectl edit resourcepolicy fixed",
			Message: "Policy fixed has what is probably a slip: spec.offer.fixed[memory] is 8 bytes."},
		{Kind: "policies", Status: "warning", Page: "policies#policy-paused", Do: "kubectl proffer resume paused",
			Message: "Policy paused is Paused, without an end: Consumers keep what they have."},
		{Kind: "policies", Status: "warning", Page: "policies#policy-stopped", Do: "kubectl proffer resume stopped",
			Message: "Policy stopped is Stopped, without an end: Nothing is offered."},
	}
	if diff := cmp.Diff(want, got.Findings); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheWorstComesFirstWithItsPageAndCommand(t *testing.T) {
	process := Process{
		Now: noon.Add(time.Hour), Namespace: "proffer-system", Watched: "nodes",
		LeaderSeen: noon, Heard: noon, KeepsBooks: true, BooksComplete: noon,
	}
	got := Of(snapshot(
		slice("batch", answered(grant.Deny, 4000, 0), stands(false, noon.Add(-time.Hour))),
		slice("capped", answered(grant.Accept, 4000, 3000), stands(true, noon.Add(-time.Minute))),
		slice("full", func(d *table.DecidedSlice) { d.Unwritable = true }),
		slice("more", answered(grant.Accept, 1000, 1000), func(d *table.DecidedSlice) { d.Creator = func() string { return "more-of-rome" } }),
		slice("waits", awaits),
	), []rest.Policy{
		policyOf("bad", "Invalid", "False", "The policy is ignored: spec.class"),
		poolOf("full", "Offering", "0", "0"),
		policyOf("gone", "NoNodes", "False", "No node is left to offer."),
		poolOf("none", "Exhausted", "4", "2"),
	}).With(process)
	want := rest.Overview{
		Evaluated: rest.Evaluated{Revision: 7, Time: noon}, Now: process.Now, Status: "wrong", Wrong: 3, Warnings: 9, BooksComplete: &noon,
		Findings: []rest.Finding{
			{Kind: "leader", Status: "wrong", Since: ago(0), Do: "kubectl proffer check",
				Message: "No replica leads, as far as this one sees: statuses, answers and Grants are not written."},
			{Kind: "news", Status: "wrong", Since: ago(0), Do: "kubectl proffer check",
				Message: "The watch of nodes is silent: what this replica offers may be outdated."},
			{Kind: "policies", Status: "wrong", Page: "policies#policy-bad", Do: "kubectl edit resourcepolicy bad",
				Message: "Policy bad is not Ready, Invalid: The policy is ignored: spec.class."},
			{Kind: "policies", Status: "warning", Page: "policies#policy-gone", Do: "kubectl describe resourcepolicy gone",
				Message: "Policy gone is not Ready, NoNodes: No node is left to offer."},
			{Kind: "unwritable", Status: "warning", Page: "consumers/rome", Do: "kubectl proffer explain rome",
				Message: "ResourceSlice liqo-tenant-rome/full, class gold: why full."},
			{Kind: "pools", Status: "warning", Page: "#pool-full", Do: "kubectl proffer top",
				Message: "Nothing is left of cpu, example.com/disk in the pool of policy full: whoever asks for more waits, or is denied."},
			{Kind: "pools", Status: "warning", Page: "#pool-none", Do: "kubectl proffer top",
				Message: "Policy none is Exhausted: Nothing is left of memory."},
			{Kind: "denied", Status: "warning", Since: ago(time.Hour), Page: "consumers/rome", Do: "kubectl proffer explain rome",
				Message: "ResourceSlice liqo-tenant-rome/batch, class gold: why batch."},
			{Kind: "waiting", Status: "warning", Since: ago(2 * time.Hour), Page: "consumers/rome", Do: "kubectl proffer explain rome",
				Message: "ResourceSlice liqo-tenant-rome/waits, class gold: why waits."},
			{Kind: "capped", Status: "warning", Since: ago(time.Minute), Page: "consumers/rome", Do: "kubectl proffer explain rome",
				Message: "ResourceSlice liqo-tenant-rome/capped, class gold: why capped."},
			{Kind: "grants", Status: "warning", Page: "consumers/rome", Do: "kubectl proffer explain rome",
				Message: "Pods of ResourceSlice more, class gold, request more than it was granted: 2 cpu more."},
			{Kind: "books", Status: "warning", Since: ago(0), Do: "kubectl -n proffer-system logs -l app.kubernetes.io/name=proffer --tail=-1",
				Message: "The books are behind: the accounting database lacks what has happened since."},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCommandsOfThePluginNameTheNamespaceOfTheOperator(t *testing.T) {
	process := healthy
	process.Now, process.BooksComplete = noon.Add(time.Hour), noon
	for namespace, want := range map[string][]string{
		"":               {"kubectl proffer check", "kubectl -n proffer-system logs "},
		"proffer-system": {"kubectl proffer check", "kubectl -n proffer-system logs "},
		"liqo-offers":    {"kubectl proffer check --operator-namespace=liqo-offers", "kubectl -n liqo-offers logs "},
	} {
		process.Namespace = namespace
		o := Of(snapshot(), []rest.Policy{policyOf("a", "Offering", "True", "")}).With(process)
		first, last := o.Findings[0].Do, o.Findings[len(o.Findings)-1].Do
		if first != want[0] || !strings.HasPrefix(last, want[1]) {
			t.Errorf("in %q: %q, %q", namespace, first, last)
		}
	}
}

func TestWhatNeedsNobodyIsNotListed(t *testing.T) {
	granted := answered(grant.Accept, 4000, 4000)
	got := Of(snapshot(
		slice("granted", granted, stands(true, noon)),
		slice("of-others", awaits, func(d *table.DecidedSlice) { d.OfOthers = true }),
		slice("a-part", answered(grant.Deny, 1, 0), func(d *table.DecidedSlice) { d.Pinned = true }),
		slice("of-liqo"),
	), []rest.Policy{
		policyOf("offering", "Offering", "True", ""),
		poolOf("some", "Offering", "1", "1"),
		poolOf("rehearsed", "DryRun", "0", "0"),
		poolOf("shadowed", "Shadowed", "0", "0"),
	}).With(healthy)
	want := rest.Overview{
		Evaluated: rest.Evaluated{Revision: 7, Time: noon}, Now: healthy.Now, Status: "ok", Findings: []rest.Finding{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	without := Of(&table.Snapshot{Time: noon}, nil).With(healthy)
	if len(without.Findings) != 1 || without.Findings[0].Message != "There is no ResourcePolicy, so nothing is offered." {
		t.Errorf("without policies: %+v", without)
	}
}

// of puts a slice into the namespace of a consumer.
func of(namespace string) func(*table.DecidedSlice) {
	return func(d *table.DecidedSlice) { d.Namespace = namespace }
}

var tenant = regexp.MustCompile(`^ResourceSlice [^/]*/`)

func TestNoConsumerHidesTheFindingsOfOthers(t *testing.T) {
	var all []table.DecidedSlice
	for i := range 47 {
		old := noon.Add(-time.Hour - time.Duration(i)*time.Second)
		all = append(all, slice(fmt.Sprint("rome-", i), answered(grant.Deny, 1, 0), stands(false, old)))
	}
	all = append(all, slice("oslo", answered(grant.Deny, 1, 0), stands(false, noon), of("liqo-tenant-oslo")))
	o := Of(snapshot(all...), []rest.Policy{policyOf("a", "Offering", "True", "")}).With(healthy)
	var got []string
	for _, f := range o.Findings {
		got = append(got, strings.TrimSuffix(f.Message, "."))
	}
	want := []string{
		"ResourceSlice liqo-tenant-rome/rome-46, class gold: why rome-46", "ResourceSlice liqo-tenant-rome/rome-45, class gold: why rome-45",
		"ResourceSlice liqo-tenant-rome/rome-44, class gold: why rome-44", "ResourceSlice liqo-tenant-oslo/oslo, class gold: why oslo",
		"And 44 more",
	}
	if diff := cmp.Diff(want, got); diff != "" || o.Warnings != 48 {
		t.Errorf("%d warnings, -want +got:\n%s", o.Warnings, diff)
	}
}

// The overview of a revision is kept until the next one is asked for.
func TestAnOverviewDoesNotKeepTheEvaluation(t *testing.T) {
	e, kept := func() (*Evaluation, weak.Pointer[[1 << 20]byte]) {
		large := new([1 << 20]byte)
		d := slice("s", answered(grant.Deny, 1, 0), stands(false, noon), func(d *table.DecidedSlice) {
			d.Because = func() string { return fmt.Sprint("why ", large[0]) }
		})
		return Of(snapshot(d), nil), weak.Make(large)
	}()
	runtime.GC()
	if kept.Value() != nil || e.findings[0].Message == "" {
		t.Error("the slice is kept")
	}
	runtime.KeepAlive(e)
}

func TestTheTimeOfASliceThatWaitsIsNotInTheFuture(t *testing.T) {
	o := Of(snapshot(slice("s", awaits, func(d *table.DecidedSlice) { d.Created = noon.Unix() + 5 })), nil).With(healthy)
	if f := o.Findings[len(o.Findings)-1]; f.Kind != waiting || !f.Since.Equal(noon) {
		t.Errorf("%+v", f)
	}
}

func TestTenOfAKindAreListedTheOldestFirstAndTheOthersCounted(t *testing.T) {
	var all []table.DecidedSlice
	for i := range 47 { // The last ones are the oldest, and one is not in the status yet.
		since := stands(false, noon.Add(-time.Duration(i)*time.Minute))
		all = append(all, slice(fmt.Sprintf("s%02d", i), answered(grant.Deny, 1, 0), since, of(fmt.Sprint("tenant-", i/MaxOfOne))))
	}
	all = append(all, slice("new", answered(grant.Deny, 1, 0), stands(true, noon)))
	policies := []rest.Policy{policyOf("a", "Offering", "True", "")}
	for i := range 2*MaxRows + 1 {
		policies = append(policies, policyOf(fmt.Sprintf("p%02d", i), "Invalid", "False", ""))
	}
	o := Of(snapshot(all...), policies).With(healthy)
	var got []string
	for _, f := range o.Findings {
		got = append(got, fmt.Sprintf("%s %s", f.Kind, strings.TrimSuffix(tenant.ReplaceAllString(f.Message, ""), ".")))
	}
	if o.Wrong != 21 || o.Warnings != 48 || len(got) != 2*(MaxRows+1) {
		t.Fatalf("%d wrong, %d warnings:\n%s", o.Wrong, o.Warnings, strings.Join(got, "\n"))
	}
	for i, want := range map[int]string{
		MaxRows:       "policies And 11 more",
		MaxRows + 1:   "denied s46, class gold: why s46",
		2 * MaxRows:   "denied s37, class gold: why s37",
		2*MaxRows + 1: "denied And 38 more",
	} {
		if got[i] != want {
			t.Errorf("finding %d: %s, want %s", i, got[i], want)
		}
	}
}

func TestATimeThatCannotBeIsNotBelieved(t *testing.T) {
	for name, tc := range map[string]struct {
		stands func(*table.DecidedSlice)
		want   *time.Time
	}{
		"the time of the answer":         {stands(false, noon.Add(-time.Minute)), ago(time.Minute)},
		"before the slice was made":      {stands(false, noon.Add(-3*time.Hour)), nil},
		"after the evaluation":           {stands(false, noon.Add(time.Hour)), nil},
		"none":                           {stands(false, time.Time{}), nil},
		"another answer stands":          {stands(true, noon.Add(-time.Minute)), nil},
		"the slice is not at hand":       {func(*table.DecidedSlice) {}, nil},
		"its time of creation is absent": {func(d *table.DecidedSlice) { d.Created = 0; stands(false, noon)(d) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := Of(snapshot(slice("s", answered(grant.Deny, 1, 0), tc.stands)), nil).With(healthy)
			at := slices.IndexFunc(o.Findings, func(f rest.Finding) bool { return f.Kind == denied })
			if diff := cmp.Diff(tc.want, o.Findings[at].Since); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A consumer chooses its ID, the class of a slice and what is wrong with a request.
func TestWhatAConsumerWritesIsBoundedAndNoCommand(t *testing.T) {
	const otherwise = "kubectl -n liqo-tenant-rome describe resourceslices.authentication.liqo.io s"
	for _, id := range []string{"rome; reboot", "$(reboot)", "`reboot`", "--as=admin", "a b", "", "ro/me", "r\u200bome", "'", "rome\n"} {
		d := slice("s", answered(grant.Deny, 1, 0), func(d *table.DecidedSlice) {
			d.Consumer, d.Class = id, "g\u043eld\x1b[2J"
			d.Because = func() string { return strings.Repeat("why", 1000) }
		})
		o := Of(snapshot(d), []rest.Policy{policyOf("a", "Offering", "True", "")}).With(healthy)
		if len(o.Findings) != 1 {
			t.Fatalf("%+v", o.Findings)
		}
		f := o.Findings[0]
		if f.Do != otherwise {
			t.Errorf("%q: %s", id, f.Do)
		}
		if page, err := url.Parse(f.Page); err != nil || page.Host != "" || page.Scheme != "" || strings.Count(f.Page, "/") > 1 {
			t.Errorf("%q leads to %s: %v", id, f.Page, err)
		}
		if len(f.Message) > maxReason+200 || !strings.Contains(f.Message, `class "g\u043eld\x1b[2J": why`) {
			t.Errorf("%q: %s", id, f.Message)
		}
	}
}

func TestAProcessIsWellUntilATimeHasPassed(t *testing.T) {
	after := func(d time.Duration) Process {
		p := Process{Now: noon.Add(d), Watched: "nodes", KeepsBooks: true}
		return p
	}
	e := Of(&table.Snapshot{Time: noon}, []rest.Policy{policyOf("a", "Offering", "True", "")})
	for _, tc := range []struct {
		name    string
		set     func(*Process)
		after   time.Duration
		want    string
		unknown bool
	}{
		{"the next leader is awaited", func(p *Process) { p.LeaderSeen, p.BooksComplete = noon, noon }, time.Minute, "", false},
		{"no leader", func(p *Process) { p.LeaderSeen, p.BooksComplete = noon, p.Now }, time.Minute + 1, "leader wrong", false},
		{"a bookmark is late", func(p *Process) { p.Heard, p.BooksComplete = noon, noon }, 2 * time.Minute, "", false},
		{"a watch is silent", func(p *Process) { p.Heard, p.BooksComplete = noon, noon }, 2*time.Minute + 1, "news warning", false},
		{"a watch is stale", func(p *Process) { p.Heard, p.BooksComplete = noon, noon }, 3*time.Minute + 1, "news wrong", false},
		{"the books are late", func(p *Process) { p.BooksComplete = noon }, 10 * time.Minute, "", false},
		{"the books are behind", func(p *Process) { p.BooksComplete = noon }, 10*time.Minute + 1, "books warning", false},
		{"the books are another replica's", func(*Process) {}, time.Hour, "", true},
		{"nothing is known", func(p *Process) { p.KeepsBooks = false }, time.Hour, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := after(tc.after)
			tc.set(&p)
			o, got := e.With(p), ""
			for _, f := range o.Findings {
				got += f.Kind + " " + f.Status
			}
			if got != tc.want || (len(o.Unknown) > 0) != tc.unknown {
				t.Errorf("%q, unknown %v; want %q", got, o.Unknown, tc.want)
			}
		})
	}
}

func TestItIsSaidForHowLongNothingHasChanged(t *testing.T) {
	for after, want := range map[time.Duration]string{
		0: "", time.Minute - 1: "", time.Minute: "1 minute", 20*time.Minute + 30*time.Second: "20 minutes",
		119 * time.Minute: "119 minutes", 2 * time.Hour: "2 hours", 47 * time.Hour: "47 hours", 50 * time.Hour: "2 days",
		-time.Hour: "",
	} {
		o := rest.Overview{Evaluated: rest.Evaluated{Time: noon}, Now: noon.Add(after)}
		if got := Quiet(&o); got != want {
			t.Errorf("after %v: %q, want %q", after, got, want)
		}
		o.Findings = []rest.Finding{{Kind: news}}
		if got := Quiet(&o); got != "" {
			t.Errorf("while a watch is silent: %q", got)
		}
	}
}

func TestWhatWillBeExhaustedIsAWarning(t *testing.T) {
	p := healthy
	for _, in := range []time.Duration{5 * time.Hour, 90 * time.Minute, time.Minute} {
		p.Exhaustions = append(p.Exhaustions, trends.Exhaustion{Policy: "gold", Resource: "cpu", In: in})
	}
	o := Of(snapshot(), []rest.Policy{policyOf("gold", "Offering", "True", "")}).With(p)
	var got []string
	for _, f := range o.Findings {
		got = append(got, fmt.Sprint(f.Kind, " ", f.Status, " ", f.Page, " ", f.Do, " ", f.Message))
	}
	text := func(in string) string {
		return "pools warning #pool-gold kubectl proffer top Nothing will be left of cpu in the pool of policy gold in " + in +
			", if as much is given out as in the hours before."
	}
	if diff := cmp.Diff([]string{text("5 hours"), text("90 minutes"), text("10 minutes")}, got); diff != "" || o.Warnings != 3 {
		t.Errorf("%d warnings (-want +got):\n%s", o.Warnings, diff)
	}
	p.Exhaustions = slices.Repeat(p.Exhaustions, 10)
	if o := Of(snapshot(), nil).With(p); o.Warnings != 31 || len(o.Findings) != MaxRows+2 {
		t.Errorf("%d warnings in %d findings", o.Warnings, len(o.Findings))
	}
}

func TestEachResourceWithDevicesThatAreNotCountedIsAWarning(t *testing.T) {
	p := healthy
	p.Uncounted = []capacity.Uncounted{
		{Node: "", Resource: "deviceclass.resource.kubernetes.io/mine", Why: "it has devices in common with example.com/gpu"},
		{Node: "", Resource: "example.com/fpga", Why: "its devices are not of one node"},
		{Node: "n1", Resource: "example.com/gpu", Why: "its devices share counters with those of example.com/mig"},
		{Node: "n2", Resource: "example.com/gpu", Why: "its devices share counters with those of example.com/mig"},
	}
	o := Of(snapshot(), []rest.Policy{policyOf("gold", "Offering", "True", "")}).With(p)
	var got []string
	for _, f := range o.Findings {
		got = append(got, fmt.Sprint(f.Kind, " ", f.Status, " ", f.Message))
	}
	want := []string{
		"devices warning Not all of example.com/fpga is offered: its devices are not of one node.",
		"devices warning Not all of example.com/gpu is offered on node n1: its devices share counters with those of " +
			"example.com/mig. And on 1 more.",
	}
	if diff := cmp.Diff(want, got); diff != "" || o.Warnings != 2 {
		t.Errorf("%d warnings (-want +got):\n%s", o.Warnings, diff)
	}
}

func TestASliceThatHasLostItsSeatNeedsSomebody(t *testing.T) {
	seated := func(s grant.Seat) func(*table.DecidedSlice) {
		return func(d *table.DecidedSlice) { d.Answer.Seat = &s }
	}
	whole, capped := answered(grant.Accept, 4000, 4000), answered(grant.Accept, 4000, 3000)
	o := Of(snapshot(
		slice("lost", whole, seated(grant.Seat{Lost: "n1"}), stands(true, noon)),
		slice("moved", whole, seated(grant.Seat{Node: "n2", Lost: "n1"}), stands(true, noon)),
		slice("cordoned", capped, seated(grant.Seat{Node: "n3", Cordoned: true}), stands(true, noon)),
		slice("denied", answered(grant.Deny, 1, 0), seated(grant.Seat{Lost: "n1"}), stands(false, noon)),
	), []rest.Policy{policyOf("a", "Offering", "True", "")}).With(healthy)
	want := []rest.Finding{
		{Kind: "denied", Status: "warning", Since: ago(0), Seat: "n1", Page: "consumers/rome", Do: "kubectl proffer explain rome",
			Message: "ResourceSlice liqo-tenant-rome/denied, class gold: why denied."},
		{Kind: "seats", Status: "warning", Seat: "n1", Page: "consumers/rome", Do: "kubectl proffer explain rome",
			Message: "ResourceSlice liqo-tenant-rome/lost, class gold: why lost."},
		{Kind: "capped", Status: "warning", Since: ago(0), Seat: "n3", Page: "consumers/rome", Do: "kubectl proffer explain rome",
			Message: "ResourceSlice liqo-tenant-rome/cordoned, class gold: why cordoned."},
	}
	if diff := cmp.Diff(want, o.Findings); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
