package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test/bench/population"
	"proffer.dev/proffer/test/process"
)

// The soak makes an hour's worth of churn as fast as it can.
const (
	soakEvents      = 1_000_000
	eventsPerEdit   = 100
	eventsPerOpen   = 10
	soakWriters     = 64
	soakSamples     = 50
	fixedPolicies   = 10
	shortRunWriters = 4 // writers of a short run
)

// soak is the churn, and the samples of the operator during it.
type soak struct {
	*filled
	operator *operator
	events   int
	writers  int
	size     population.Size
	done     atomic.Int64
	begun    time.Time
	mu       sync.Mutex
	samples  []soakSample
	// judgesMemory is set if all hanging streams are open by the second tenth, so that its memory
	// can be compared.
	judgesMemory bool
}

// soakSample describes the operator at one moment.
type soakSample struct {
	done, goroutines int
	at               time.Duration
	memory           resident
	cpu              time.Duration
}

// measureSoak makes an hour's worth of churn in minutes. It fails if goroutines are left behind or
// if memory keeps growing.
func measureSoak(ctx context.Context, o options, r *report, progress io.Writer) (err error) {
	s := &soak{events: int(soakEvents * o.scale), writers: soakWriters, judgesMemory: o.scale >= 0.1}
	if o.short {
		s.events, s.writers = 5*soakSamples, shortRunWriters
	} else {
		// A separate cluster with small pods, so that the soak leaves nothing behind for other
		// parts.
		o.population = population.Size{Nodes: 500, Pods: 5_000, Consumers: o.population.Consumers, Small: true}
		o.kubeconfig, o.filled = "", &filled{}
		defer func() { err = errors.Join(err, o.filled.stop()) }()
	}
	if s.events < soakSamples {
		return fmt.Errorf("-scale %v leaves %d events: write at least %v", o.scale, s.events, float64(soakSamples)/soakEvents)
	}
	s.filled, s.size = o.filled, o.population
	if err := s.fill(ctx, o, progress); err != nil {
		return err
	}
	if err := s.admitReader(ctx); err != nil {
		return err
	}
	for i := range fixedPolicies {
		if err := s.client.Create(ctx, fixedPolicy(i)); err != nil {
			return fmt.Errorf("creating a policy: %w", err)
		}
	}
	if s.operator, err = s.startOperator(batchPeriod); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.operator.stop(err != nil)) }()
	if err := s.operator.ready(ctx); err != nil {
		return err
	}
	if err := s.provokeEvent(ctx); err != nil {
		return err
	}
	return s.measure(ctx, r, progress)
}

// provokeEvent makes the operator write an Event, with a policy that matches no nodes. With the
// first Event, client-go starts nine goroutines that stay. Churn causes an Event sooner or later,
// when consumers use more than a policy offers.
func (s *soak) provokeEvent(ctx context.Context) error {
	policy := &v1alpha1.ResourcePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "without-nodes"},
		Spec: v1alpha1.ResourcePolicySpec{Class: "without-nodes", Offer: v1alpha1.PolicyOffer{Nodes: &v1alpha1.Nodes{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/none": "such"}},
		}}},
	}
	if err := s.client.Create(ctx, policy); err != nil {
		return fmt.Errorf("creating a policy: %w", err)
	}
	err := until(ctx, func() error {
		var events eventsv1.EventList
		if err := s.client.List(ctx, &events); err != nil {
			return err
		}
		if !slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool { return e.Regarding.UID == policy.UID }) {
			return fmt.Errorf("none of %d Events regards the policy %s", len(events.Items), policy.Name)
		}
		return nil
	})
	return errors.Join(err, s.client.Delete(context.WithoutCancel(ctx), policy))
}

func fixedPolicy(i int) *v1alpha1.ResourcePolicy {
	amounts := v1alpha1.Quantities{}
	for name, amount := range map[corev1.ResourceName]string{"cpu": "4", "memory": "8Gi", "pods": "10"} {
		amounts[name] = v1alpha1.Quantity{Quantity: resource.MustParse(amount)}
	}
	return &v1alpha1.ResourcePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: fixedPolicyName(i)},
		Spec: v1alpha1.ResourcePolicySpec{
			Class: fmt.Sprintf("class-%d", i), Offer: v1alpha1.PolicyOffer{Fixed: amounts},
		},
	}
}

func fixedPolicyName(i int) string { return fmt.Sprintf("fixed-%d", i) }

func (s *soak) measure(ctx context.Context, r *report, progress io.Writer) error {
	figures := func() (running goroutines, heap float64, m metrics, server serverFigures, err error) {
		// Metrics are served last: once they are, all goroutines run.
		if m, err = s.scrapeOperator(ctx, s.operator); err != nil {
			return
		}
		if heap, err = s.operator.heap(ctx); err != nil {
			return
		}
		if running, err = s.operator.goroutines(ctx); err != nil {
			return
		}
		server, err = s.serverFigures(ctx)
		return
	}
	before, heapBefore, metricsBefore, serverBefore, err := figures()
	if err != nil {
		return err
	}
	if err := s.churn(ctx, progress); err != nil {
		return err
	}
	lasted := time.Since(s.begun)
	left, unsettled := s.settle(ctx, before)
	_, heapAfter, metricsAfter, serverAfter, err := figures()
	if err != nil {
		return err
	}
	const evaluations = "proffer_evaluation_duration_seconds"
	t := r.section("What there was in the soak", "what", "number", "a second")
	row := func(what string, n float64) { t.row(what, thousands(int(n)), factor(n/lasted.Seconds())) }
	row("events of pods", float64(s.events))
	row("edits of policies", float64(s.events/eventsPerEdit))
	row("streams opened", float64(s.events/eventsPerOpen))
	row("evaluations", metricsAfter.sum(evaluations, nil)-metricsBefore.sum(evaluations, nil))
	row("nodes or pods listed again by the operator",
		serverAfter.streams+serverAfter.lists-serverBefore.streams-serverBefore.lists)
	second, last := s.tenths(r)
	r.one("RSS in the last tenth of the soak", "in the second", last.memory.now/second.memory.now)
	r.one("goroutines in the last tenth of the soak", "in the second", float64(last.goroutines)/float64(second.goroutines))
	r.one("live heap after the soak", "before", heapAfter/heapBefore)
	r.one("goroutines after the soak", "before", float64(left.total)/float64(before.total))
	if s.judgesMemory && last.memory.now > 2*second.memory.now {
		unsettled = errors.Join(unsettled, fmt.Errorf("the operator's RSS is %s in the last tenth and %s in the second",
			memory(last.memory.now), memory(second.memory.now)))
	}
	return unsettled
}

// tenths reports the samples of each tenth of the churn. It returns the medians of the second and
// of the last tenth.
func (s *soak) tenths(r *report) (second, last soakSample) {
	t := r.section("The operator in each tenth of the soak",
		"events until then", "after", "CPU until then", "goroutines", "RSS", "RSS not mapped from the program")
	// Concurrent samples may be out of order.
	slices.SortFunc(s.samples, func(a, b soakSample) int { return a.done - b.done })
	tenth := 0
	for samples := range slices.Chunk(s.samples, soakSamples/10) {
		last = samples[len(samples)-1]
		last.memory.now = median(samples, func(one soakSample) float64 { return one.memory.now })
		last.memory.anonymous = median(samples, func(one soakSample) float64 { return one.memory.anonymous })
		last.goroutines = int(median(samples, func(one soakSample) float64 { return float64(one.goroutines) }))
		t.row(thousands(last.done), last.at.Round(time.Second).String(), span(float64(last.cpu)), thousands(last.goroutines),
			memory(last.memory.now), memory(last.memory.anonymous))
		if tenth++; tenth == 2 {
			second = last
		}
	}
	return second, last
}

// churn makes all events. The writer of some events also opens a stream or edits a policy, so that
// their rates stay in proportion.
func (s *soak) churn(ctx context.Context, progress io.Writer) error {
	s.begun = time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for w := range s.writers {
		group.Go(func() (err error) {
			streams := &soakStreams{address: s.operator.address}
			defer func() { err = errors.Join(err, streams.close()) }()
			pods := s.writer.Churn(s.size, w, s.writers)
			for i := s.done.Add(1); i <= int64(s.events) && ctx.Err() == nil; i = s.done.Add(1) {
				event := pods.Quiet
				if i/int64(s.writers)%2 == 0 {
					event = pods.Loud
				}
				if err := event(ctx); err != nil {
					return err
				}
				if err := s.extras(ctx, int(i), streams, progress); err != nil {
					return err
				}
			}
			return errors.Join(context.Cause(ctx), pods.Restore(ctx))
		})
	}
	return group.Wait()
}

// extras does what accompanies the i-th event: it opens a stream, edits a policy, takes a sample.
func (s *soak) extras(ctx context.Context, i int, streams *soakStreams, progress io.Writer) error {
	if i%eventsPerOpen == 0 {
		if err := streams.open(ctx, population.Consumer(i/eventsPerOpen%s.size.Consumers)); err != nil {
			return fmt.Errorf("stream %d: %w", i/eventsPerOpen, err)
		}
	}
	if i%eventsPerEdit == 0 {
		if err := s.edit(ctx, i/eventsPerEdit); err != nil {
			return err
		}
	}
	if every := s.events / soakSamples; i%every == 0 && i/every <= soakSamples {
		return s.sample(ctx, i, progress)
	}
	return nil
}

// edit changes what a policy offers, taking the policies in turn.
func (s *soak) edit(ctx context.Context, i int) error {
	shares := sharePolicies(0)
	k := i % (len(shares) + fixedPolicies)
	policy, change := &v1alpha1.ResourcePolicy{}, fmt.Sprintf(`{"spec":{"offer":{"percent":%d}}}`, 20+i%70)
	if k < len(shares) {
		policy.Name = shares[k].Name
	} else {
		policy.Name = fixedPolicyName(k - len(shares))
		change = fmt.Sprintf(`{"spec":{"offer":{"fixed":{"cpu":"%d"}}}}`, 4+i%1000)
	}
	if err := s.client.Patch(ctx, policy, client.RawPatch(types.MergePatchType, []byte(change))); err != nil {
		return fmt.Errorf("editing policy %s: %w", policy.Name, err)
	}
	return nil
}

func (s *soak) sample(ctx context.Context, done int, progress io.Writer) (err error) {
	sample := soakSample{done: done, at: time.Since(s.begun)}
	if sample.memory, err = residentOf(s.operator.pid()); err != nil {
		return err
	}
	if sample.cpu, err = cpuOf(s.operator.pid()); err != nil {
		return err
	}
	running, err := s.operator.goroutines(ctx)
	if err != nil {
		return err
	}
	sample.goroutines = running.total
	fmt.Fprintf(progress, "bench: %s events after %v: %s, %d goroutines\n",
		thousands(done), sample.at.Round(time.Second), memory(sample.memory.now), sample.goroutines)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples = append(s.samples, sample)
	return nil
}

// settle waits until there are no more goroutines than before, and returns how many there are. Its
// error lists those that are left.
func (s *soak) settle(ctx context.Context, before goroutines) (goroutines, error) {
	// Other clients in the operator may have opened or closed connections meanwhile.
	const slack = 5
	var left goroutines
	err := until(ctx, func() (err error) {
		if left, err = s.operator.goroutines(ctx); err == nil && left.total > before.total+slack {
			err = fmt.Errorf("%d goroutines are left, there were %d before:\n%s",
				left.total, before.total, strings.Join(left.since(before), "\n"))
		}
		return err
	})
	return left, err
}

// goroutines counts the goroutines, in total and by stack.
type goroutines struct {
	total   int
	byStack map[string]int
}

// since lists the stacks whose number of goroutines differs from before, with the difference.
func (g goroutines) since(before goroutines) []string {
	more := maps.Clone(g.byStack)
	for stack, n := range before.byStack {
		more[stack] -= n
	}
	var all []string
	for stack, n := range more {
		if n != 0 {
			all = append(all, fmt.Sprintf("%+d of %s", n, stack))
		}
	}
	slices.Sort(all)
	return all
}

// goroutines reads the operator's pprof profile of goroutines.
func (o *operator) goroutines(ctx context.Context) (goroutines, error) {
	profile, err := process.Get(ctx, http.DefaultClient, "http://"+o.pprof+"/debug/pprof/goroutine?debug=1", "")
	if err != nil {
		return goroutines{}, err
	}
	return parseGoroutines(string(profile))
}

// parseGoroutines reads pprof's text. After the total it has a block for each stack: a line that
// begins with the number of goroutines, and one line for each function, the innermost first.
func parseGoroutines(profile string) (goroutines, error) {
	g := goroutines{byStack: map[string]int{}}
	head, rest, _ := strings.Cut(profile, "\n")
	if _, err := fmt.Sscanf(head, "goroutine profile: total %d", &g.total); err != nil {
		return g, fmt.Errorf("the profile of goroutines: %w", err)
	}
	for place := range strings.SplitSeq(rest, "\n\n") {
		var n int
		if _, err := fmt.Sscanf(place, "%d @", &n); err != nil {
			continue
		}
		var calls []string
		for line := range strings.Lines(place) {
			if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "#" && fields[1] != "labels:" {
				function, _, _ := strings.Cut(path.Base(fields[2]), "+")
				calls = append(calls, function)
			}
		}
		g.byStack[strings.Join(calls, " < ")] += n
	}
	return g, nil
}
