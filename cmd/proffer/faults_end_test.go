package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
)

// quiet is for how long nothing may be written in the end. It is not waited for something: it is the thing itself.
const quiet = 2 * time.Second

func (a amounts) named() capacity.Amounts {
	out := capacity.Amounts{}
	for i, name := range []string{capacity.CPU, capacity.Memory} {
		if a[i] > 0 {
			out[name] = a[i]
		}
	}
	return out
}

// terms are what the operator should go by, made from what the test did and not from what the operator read.
func (p *provider) terms(t *testing.T) *offer.Terms {
	ledger := capacity.NewLedger()
	for name, h := range p.hosts {
		allocatable := h.allocatable.named()
		allocatable[capacity.Pods] = hostPods
		ledger.SetNode(capacity.Node{Name: name, Labels: map[string]string{"zone": h.zone}, Usable: !h.cordoned, Allocatable: allocatable})
	}
	for name, l := range p.loads {
		ledger.SetPod(capacity.Pod{Key: name, Node: l.node, Consumer: l.consumer, Requests: l.requests.named()})
	}
	var policies []offer.Policy
	for class, s := range p.shares {
		selector, err := metav1.LabelSelectorAsSelector(s.selector())
		if err != nil {
			t.Fatal(err)
		}
		policy := offer.Policy{
			Name: class, Class: class, Slices: offer.Slices{DenyExcess: s.denyExcess},
			Nodes: &offer.Nodes{Selection: capacity.Selection{Selector: selector}, Percent: s.percent, Reserve: s.reserve.named()},
		}
		if s.max != nil {
			policy.Max = s.max.named()
		}
		if s.evicts {
			policy.Reclaim = offer.Evict
		}
		policies = append(policies, policy)
	}
	return offer.NewTerms(offer.Input{Policies: policies, View: ledger.View(offer.Selections(policies))})
}

// standing reads all slices from the API server itself.
func (c *consumers) standing() (map[string]seen, error) {
	var list authv1beta1.ResourceSliceList
	if err := c.api.List(c.t.Context(), &list); err != nil {
		return nil, err
	}
	out := map[string]seen{}
	for i := range list.Items {
		s := seenOf(&list.Items[i])
		out[s.key] = s
	}
	return out, nil
}

// settled returns the slices when each is answered as the pure function says, by what all of them have.
func settled(t *testing.T, c *consumers, p *provider) map[string]seen {
	t.Helper()
	terms := p.terms(t)
	var standing map[string]seen
	eventually(t, func() error {
		var err error
		if standing, err = c.standing(); err != nil {
			return err
		}
		return asDecided(terms, standing, p.cordoned)
	})
	if len(standing) != faultSlices {
		t.Errorf("%d slices in the end, want %d", len(standing), faultSlices)
	}
	return standing
}

func asDecided(terms *offer.Terms, standing map[string]seen, cordoned map[string]bool) error {
	var in []grant.Slice
	for _, key := range slices.Sorted(maps.Keys(standing)) {
		s := standing[key]
		if s.class == "default" {
			continue
		}
		one := grant.Slice{
			Key: key, Consumer: s.consumer, Class: s.class, Created: s.created, Frozen: cordoned[s.consumer],
			Request: capacity.Amounts{capacity.CPU: s.request[cpu], capacity.Memory: s.request[memory]},
		}
		if s.status == authv1beta1.ResourceSliceConditionAccepted {
			one.Granted = s.resources
		}
		in = append(in, one)
	}
	var errs []error
	for i, decided := range grant.Allocate(terms, in) {
		s := standing[in[i].Key]
		want, verdict := decided.Amounts(), authv1beta1.ResourceSliceConditionAccepted
		switch decided.Verdict {
		case grant.Wait:
			errs = append(errs, fmt.Errorf("%s still waits for others", s.key))
			continue
		case grant.Deny:
			verdict = authv1beta1.ResourceSliceConditionDenied
		case grant.Accept:
		}
		if s.status != verdict || !maps.Equal(want, s.resources) || s.reason != "Proffer"+decided.Reason() || s.message != decided.Explain("") {
			errs = append(errs, fmt.Errorf("%s of %s is %s %s %v %q, want %s %s %v %q",
				s.key, s.class, s.status, s.reason, s.resources, s.message, verdict, decided.Reason(), want, decided.Explain("")))
		}
	}
	if len(errs) > maxWrong {
		errs = append(errs[:maxWrong], fmt.Errorf("and %d more", len(errs)-maxWrong))
	}
	return errors.Join(errs...)
}

// spent checks, by the sums alone, that nothing is held back: where a slice has less than it asks for, and could have more, there is no more.
func (a *account) spent(standing map[string]seen) {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.provider.now()
	for _, s := range standing {
		p := now.pools[s.class]
		if s.class == "default" || a.provider.share(s.class).denyExcess || now.cordoned[s.consumer] || s.status != authv1beta1.ResourceSliceConditionAccepted {
			continue
		}
		a.checks++
		own := a.granted([]string{s.class}, nil)[s.consumer]
		granted := a.granted(p.beside, nil)
		for i := range s.granted {
			if s.granted[i] == s.request[i] || p.max != nil && own[i] >= p.max[i] {
				continue
			}
			var sum int64
			for id := range allKeys(granted, p.used) {
				sum += max(granted[id][i], p.used[id][i])
			}
			if sum < p.capacity[i] {
				a.fail("%s has %d of %d of resource %d, and of %d only %d are committed", s.key, s.granted[i], s.request[i], i, p.capacity[i], sum)
			}
		}
	}
}

// staysQuiet checks that nothing is written any more.
func staysQuiet(t *testing.T, c *consumers, before map[string]seen) {
	t.Helper()
	select {
	case <-time.After(quiet):
	case <-t.Context().Done():
	}
	after, err := c.standing()
	if err != nil {
		t.Fatal(err)
	}
	for key := range allKeys(before, after) {
		if before[key].version != after[key].version {
			t.Errorf("%s was written in the end: %+v, before %+v", key, after[key], before[key])
		}
	}
}
