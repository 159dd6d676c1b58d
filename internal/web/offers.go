package web

import (
	"cmp"
	"net/http"
	"slices"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/policy"
	"proffer.dev/proffer/internal/rehearse/world"
	"proffer.dev/proffer/internal/table"
)

// The bounds of the lists in Details. What is beyond one is left out, and Truncated names the list.
const (
	maxDetailPods   = 500
	maxDetailSlices = 500
	maxDetailNodes  = 100
)

func (s *Server) offers(w http.ResponseWriter, r *http.Request, snapshot *table.Snapshot) {
	s.read(w, r, func() any {
		v := s.viewOf(snapshot)
		return rest.Offers{
			Evaluated: v.Evaluated(), Anyone: v.Anyone(), Policies: v.Policies(),
			Consumers: slices.AppendSeq(make([]rest.Consumer, 0, snapshot.Entries.Len()), v.consumers(offersOf)),
		}
	})
}

func (s *Server) consumer(w http.ResponseWriter, r *http.Request, snapshot *table.Snapshot) {
	s.read(w, r, func() any { return s.viewOf(snapshot).Details(r.PathValue("clusterID")) })
}

// read answers with a value, for at most maxReaders at a time.
func (s *Server) read(w http.ResponseWriter, r *http.Request, value func() any) {
	leave, refused := enter(s.reading, manyReaders("offers"))
	if refused != nil {
		fail(w, refused)
		return
	}
	defer leave()
	defer boundWriting(w, r)()
	answer(w, http.StatusOK, value())
}

func (v *view) consumer(id string, write func([]offer.Explained) []rest.Offer) rest.Consumer {
	c := rest.Consumer{
		ClusterID: id, Known: v.snapshot.Entries.Of(id) != nil, Offers: write(offer.Shown(v.explainer.Of(id))),
	}
	switch {
	case len(c.Offers) > 0:
	case len(v.snapshot.Reports) == 0:
		c.Because = "there is no valid ResourcePolicy"
	default:
		c.Because = "no ResourcePolicy in force is for this consumer"
	}
	return c
}

// offersOf returns offers that are shown, with their explanations.
func offersOf(explained []offer.Explained) []rest.Offer {
	all := amountsOf(explained)
	for i := range explained {
		all[i].Because = explained[i].Because()
	}
	return all
}

// amountsOf returns offers that are shown, without explanations.
func amountsOf(explained []offer.Explained) []rest.Offer {
	all := make([]rest.Offer, 0, len(explained))
	for i := range explained {
		o := &explained[i]
		x := rest.Offer{
			Class: o.Class, Policy: o.Policy, Resources: world.Amounts(o.ByResource()),
			Granted: world.Amounts(o.Granted), Used: world.Amounts(o.Used),
		}
		if o.Override >= 0 {
			x.Override = &o.Override
		}
		all = append(all, x)
	}
	return all
}

// details explains everything about one consumer. The pods, and the nodes in their grace, are read
// now: they may be newer than the snapshot.
func (v *view) details(id string) *rest.Details {
	d := &rest.Details{
		Evaluated: v.Evaluated(), Policies: []rest.Candidate{}, Slices: []rest.Slice{}, Pods: []rest.Pod{},
	}
	for _, c := range v.explainer.Candidates(id) {
		d.Policies = append(d.Policies, rest.Candidate{
			Class: c.Class, Policy: c.Policy, Decides: c.Decides, Because: c.Because, LeftOut: leftOut(&c.LeftOut),
		})
	}
	for _, n := range v.server.ledger.InGrace() {
		if len(d.InGrace) == maxDetailNodes {
			d.Truncated = append(d.Truncated, "inGrace")
			break
		}
		d.InGrace = append(d.InGrace, rest.LeftOutNode{Name: n.Name, Why: n.Why})
	}
	for _, u := range v.server.ledger.Uncounted() {
		if len(d.Uncounted) == maxDetailNodes {
			d.Truncated = append(d.Truncated, "uncounted")
			break
		}
		d.Uncounted = append(d.Uncounted, rest.Uncounted{Resource: u.Resource, Node: u.Node, Why: u.Why})
	}
	if v.snapshot.Slices != nil {
		for x := range v.snapshot.Slices.All {
			if x.Consumer != id {
				continue
			}
			if len(d.Slices) == maxDetailSlices {
				d.Truncated = append(d.Truncated, "slices")
				break
			}
			slice := rest.Slice{
				Namespace: x.Namespace, Name: x.Name, Class: x.Class, Policy: x.Policy(),
				Asked: world.Amounts(x.Request), Granted: world.Amounts(x.After()),
				Accepted: x.Accepted(), Seat: x.Seat(), SeatState: seatState(&x), Because: x.Because(),
			}
			if x.Written != nil { // The slice is at hand.
				slice.Written = x.Written()
			}
			d.Slices = append(d.Slices, slice)
		}
		slices.SortStableFunc(d.Slices, func(a, b rest.Slice) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
	}
	if id == "" {
		return d // The pods without a consumer are this cluster's own.
	}
	pods, more := v.server.podsOf(id).FirstPods(maxDetailPods)
	if more {
		d.Truncated = append(d.Truncated, "pods")
	}
	for i := range pods {
		d.Pods = append(d.Pods, rest.Pod{UID: pods[i].Key, Node: pods[i].Node, Requests: world.Amounts(pods[i].Requests)})
	}
	return d
}

// seatState returns the state of the node that a slice is granted from, empty for one that is usable.
func seatState(s *table.DecidedSlice) string {
	switch {
	case s.SeatLost():
		return rest.SeatLost
	case s.Answer != nil && s.Answer.Seat != nil && s.Answer.Seat.Cordoned:
		return rest.SeatCordoned
	}
	return ""
}

// leftOut returns nil for no nodes.
func leftOut(nodes *capacity.Unusable) *rest.LeftOut {
	if nodes.Count == 0 {
		return nil
	}
	out := &rest.LeftOut{Nodes: nodes.Count, Filtered: nodes.Filtered}
	for _, n := range nodes.First {
		out.First = append(out.First, rest.LeftOutNode{Name: n.Name, Why: n.Why})
	}
	return out
}

// podsOf looks through all pods, for one caller at a time: events wait for each.
func (s *Server) podsOf(consumer string) *capacity.Copy {
	s.looking.Lock()
	defer s.looking.Unlock()
	return s.ledger.PodsOf(consumer)
}

// policiesOf returns what each policy does. A dry run costs an evaluation, so the list of a revision is
// made once.
func (s *Server) policiesOf(snapshot *table.Snapshot) []rest.Policy {
	return s.listed.of(snapshot.Revision, func() []rest.Policy {
		all := make([]rest.Policy, 0, len(snapshot.Policies))
		for i := range snapshot.Policies {
			all = append(all, policyOf(snapshot, &snapshot.Policies[i]))
		}
		return all
	})
}

// policyOf returns what a policy does. For a dry run, it is what would hold if it were active.
func policyOf(s *table.Snapshot, p *table.Policy) rest.Policy {
	report, granted := s.Reports[p.Name], s.Granted(p.Name)
	var active *policy.DryRun
	if report != nil && p.DryRun() {
		active = policy.Activate(s, p.Name)
	}
	conditions := policy.ConditionsOf(*p, report, active)
	if active != nil {
		report, granted = active.Report, active.Granted
	}
	out := rest.Policy{Name: p.Name, Generation: p.Generation, DryRun: p.DryRun(), Reason: conditions[0].Reason}
	for _, c := range conditions {
		out.Conditions = append(out.Conditions, rest.Condition{
			Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message,
		})
	}
	if report == nil {
		return out
	}
	out.Class, out.Source, out.Consumers = p.Parsed.Class, p.Source, report.Count
	out.Slices, out.SeatsLost = granted.Slices, granted.SeatsLost
	if p.Parsed.Nodes != nil {
		out.Nodes = &report.Nodes
		out.Capacity, out.Committed = world.Amounts(report.Capacity), world.Amounts(report.Committed)
		out.Remaining = world.Amounts(report.Remaining)
	}
	return out
}
