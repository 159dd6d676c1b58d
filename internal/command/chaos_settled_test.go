package command

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/internal/selection"
	"proffer.dev/proffer/test"
)

// finalQuietPeriod is how long no slice may be written at the end of the test.
const finalQuietPeriod = 2 * time.Second

func (a amounts) named() capacity.Amounts {
	out := capacity.Amounts{}
	for i, name := range []string{capacity.CPU, capacity.Memory} {
		if a[i] > 0 {
			out[name] = a[i]
		}
	}
	return out
}

// allocationInput returns the input that the operator should use, made from the test's own state
// and not from what the operator read.
func (p *provider) allocationInput(t *testing.T) *offer.AllocationInput {
	ledger := capacity.NewLedger()
	for name, h := range p.hosts {
		allocatable := h.allocatable.named()
		allocatable[capacity.Pods] = hostPods
		state := capacity.Ready
		if h.cordoned {
			state = capacity.Cordoned
		}
		ledger.SetNode(capacity.Node{
			Name: name, Labels: map[string]string{"zone": h.zone}, State: state, Allocatable: allocatable,
		})
	}
	for name, l := range p.loads {
		pod := capacity.Pod{Key: name, Node: l.node, Consumer: l.consumer, Requests: l.requests.named()}
		if l.consumer != "" {
			pod.Creator = creatorOf(l.consumer, l.slice)
		}
		if l.waits {
			pod.Node = ""
		}
		ledger.SetPod(pod)
	}
	var policies []offer.Policy
	for class, s := range p.shares {
		selector, err := metav1.LabelSelectorAsSelector(s.selector())
		test.Must(t, err)
		policy := offer.Policy{
			Name: class, Class: class, Slices: offer.Slices{DenyExcess: s.denyExcess},
			Nodes: &offer.Nodes{
				Selection: capacity.Selection{Selector: selection.Of(selector)}, Percent: s.percent,
				Reserve: s.reserve.named(),
			},
		}
		if s.max != nil {
			policy.Max = s.max.named()
		}
		switch {
		case s.evicts:
			policy.Reclaim = offer.Evict
		case s.retains:
			policy.Reclaim = offer.Retain
		}
		policies = append(policies, policy)
	}
	return offer.NewAllocationInput(offer.Input{
		Policies: policies, View: ledger.View(offer.Selections(policies), offer.ResourceNames(policies)...),
	})
}

// latest lists all slices from the API server.
func (c *consumers) latest() (map[string]sliceState, error) {
	var list authv1beta1.ResourceSliceList
	if err := c.api.List(c.t.Context(), &list); err != nil {
		return nil, err
	}
	out := map[string]sliceState{}
	for i := range list.Items {
		s := sliceStateOf(&list.Items[i])
		out[s.key] = s
	}
	return out, nil
}

// awaitSettled waits until each slice has the answer that grant.Allocate works out, and returns the
// slices and what the pods of each use.
func awaitSettled(
	t *testing.T, c *consumers, p *provider,
) (latest map[string]sliceState, used map[string]capacity.Amounts) {
	t.Helper()
	terms := p.allocationInput(t)
	test.Eventually(t, func() error {
		var err error
		if latest, err = c.latest(); err != nil {
			return err
		}
		var pinned []grant.Slice
		if pinned, used, err = c.useByGrants(terms); err != nil {
			return err
		}
		return compareWithAllocate(terms, latest, pinned, used, p.cordoned)
	})
	if len(latest) != chaosSlices {
		t.Errorf("%d slices at the end, want %d", len(latest), chaosSlices)
	}
	return latest, used
}

// useByGrants returns what pods still use, according to the Grants: as pinned slices for slices
// that are gone or have moved, and by key for each existing slice.
func (c *consumers) useByGrants(
	terms *offer.AllocationInput,
) (pinned []grant.Slice, used map[string]capacity.Amounts, err error) {
	var list v1alpha1.GrantList
	if err := c.api.List(c.t.Context(), &list); err != nil {
		return nil, nil, err
	}
	used = map[string]capacity.Amounts{}
	for i := range list.Items {
		s := &list.Items[i].Spec
		row := terms.View.Used.Of(s.ClusterID).By(creatorOf(s.ClusterID, s.Slice.Name))
		of := func(share v1alpha1.GrantedShare) capacity.Amounts {
			amounts := capacity.Amounts{}
			for name, amount := range quantity.AmountsOf(share.Resources, quantity.Up) {
				if held := min(amount, row.At(terms.Column(name))); held > 0 {
					amounts[name] = held
				}
			}
			return amounts
		}
		gone := s.Earlier
		if s.State == v1alpha1.GrantReleased {
			gone = append(slices.Clone(gone), s.GrantedShare)
		} else {
			used[s.Slice.Namespace+"/"+s.Slice.Name] = of(s.GrantedShare)
		}
		for _, share := range gone {
			if amounts := of(share); len(amounts) > 0 {
				pinned = append(pinned, grant.Slice{
					Key: s.Slice.UID + share.Class, Consumer: s.ClusterID, Class: share.Class, Created: s.Since.Unix(),
					Granted: amounts, GrantedBy: share.Policy, GrantedIn: share.Class, Pinned: true,
				})
			}
		}
	}
	return pinned, used, nil
}

func compareWithAllocate(
	terms *offer.AllocationInput, latest map[string]sliceState, pinned []grant.Slice, used map[string]capacity.Amounts,
	cordoned map[string]bool,
) error {
	var in []grant.Slice
	for _, key := range slices.Sorted(maps.Keys(latest)) {
		s := latest[key]
		if s.class == "default" {
			continue
		}
		one := grant.Slice{
			Key: key, Consumer: s.consumer, Class: s.class, Created: s.created, Frozen: cordoned[s.consumer],
			Request: capacity.Amounts{capacity.CPU: s.request[cpu], capacity.Memory: s.request[memory]},
			Used:    used[key],
		}
		if s.status == authv1beta1.ResourceSliceConditionAccepted {
			one.Granted = s.resources
		}
		in = append(in, one)
	}
	var errs []error
	for i, decided := range grant.Allocate(terms, append(in, pinned...))[:len(in)] {
		s := latest[in[i].Key]
		want, verdict := decided.Amounts(), authv1beta1.ResourceSliceConditionAccepted
		switch decided.Verdict {
		case grant.Deny:
			verdict = authv1beta1.ResourceSliceConditionDenied
		case grant.Accept:
		}
		if s.status != verdict || !maps.Equal(want, s.resources) || s.reason != "Proffer"+decided.Reason() ||
			s.message != decided.Explain("") {
			errs = append(errs, fmt.Errorf("%s of %s is %s %s %v %q, want %s %s %v %q",
				s.key, s.class, s.status, s.reason, s.resources, s.message, verdict, decided.Reason(), want,
				decided.Explain("")))
		}
	}
	if len(errs) > maxReports {
		errs = append(errs[:maxReports], fmt.Errorf("and %d more", len(errs)-maxReports))
	}
	return errors.Join(errs...)
}

// requireAllSpent checks, by sums alone, that nothing is held back: if a slice has less than it
// asks for, and could have more, then nothing is left.
func (a *auditor) requireAllSpent(latest map[string]sliceState, used map[string]capacity.Amounts) {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.provider.now()
	for _, s := range latest {
		p := now.pools[s.class]
		if s.class == "default" || a.provider.share(s.class).denyExcess || now.cordoned[s.consumer] ||
			s.status != authv1beta1.ResourceSliceConditionAccepted {
			continue
		}
		a.checks++
		own := a.granted([]string{s.class}, nil, nil)[s.consumer]
		granted := a.granted(p.overlapping, nil, nil)
		for key, other := range latest { // If its pods use more than it has, the use counts.
			if slices.Contains(p.overlapping, other.class) {
				over := amounts{
					max(0, used[key][capacity.CPU]-other.granted[cpu]),
					max(0, used[key][capacity.Memory]-other.granted[memory]),
				}
				granted[other.consumer] = granted[other.consumer].plus(over)
			}
		}
		sums := [len(amounts{})]int64{}
		for i := range s.granted {
			for id := range allKeys(granted, p.used) {
				sums[i] += max(granted[id][i], p.used[id][i])
			}
		}
		for i := range s.granted {
			// A slice that gets nothing of one exhausted resource gets nothing of the others
			// either.
			useless := false
			for j := range s.granted {
				exhausted := sums[j] >= p.capacity[j] || p.max != nil && own[j] >= p.max[j]
				useless = useless || j != i && s.request[j] > 0 && s.granted[j] == 0 && exhausted
			}
			if s.granted[i] == s.request[i] || useless || p.max != nil && own[i] >= p.max[i] {
				continue
			}
			// The use of pods of deleted slices counts against max too, as awaitSettled has
			// checked.
			if p.max != nil && strings.Contains(s.message, "gives this cluster at most") {
				continue
			}
			if sums[i] < p.capacity[i] {
				a.fail("%s has %d of %d of resource %d, but of %d only %d are committed: %s",
					s.key, s.granted[i], s.request[i], i, p.capacity[i], sums[i], s.message)
			}
		}
	}
}

// requireQuiet fails the test if any slice is written within finalQuietPeriod.
func requireQuiet(t *testing.T, c *consumers, before map[string]sliceState) {
	t.Helper()
	test.Consistently(t, finalQuietPeriod, func() error {
		after, err := c.latest()
		if err != nil {
			return err
		}
		for key := range allKeys(before, after) {
			if before[key].version != after[key].version {
				return fmt.Errorf("%s was written at the end: %+v, before %+v", key, after[key], before[key])
			}
		}
		return nil
	})
}
