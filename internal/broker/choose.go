package broker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Previous is the previous choice for a consumer.
type Previous struct {
	// Chosen has the providers with the time since when they are chosen, and Left those that lost their
	// place, with the time when they did.
	Chosen, Left map[string]time.Time
}

// Chosen is a provider that was chosen.
type Chosen struct {
	ID      string
	Score   int64
	Since   time.Time
	Because string
}

// Layer is who has rejected a provider. A layer is asked only about what the ones before have left.
type Layer string

// The layers, in the order in which they are asked.
const (
	// Admin is an admin of this cluster, who has disabled the provider.
	Admin Layer = "Admin"
	// ByOrchestration is what the Orchestration requires, and what makes a provider unusable for everybody.
	ByOrchestration Layer = "Orchestration"
	// ByConsumer is the wish of the consumer.
	ByConsumer Layer = "Consumer"
	// ByRank is the comparison with the others: the provider qualifies, and has no place.
	ByRank Layer = "Rank"
)

// Rejected is a provider that was not chosen.
type Rejected struct {
	ID string
	// By is the first layer that rejects it.
	By Layer
	// Because is the first reason that applies.
	Because string
	// Left is the time at which it lost its place, zero if that is longer ago than Stay.For.
	Left time.Time
}

// Choice has the chosen providers, the best first, and all others by ID.
type Choice struct {
	Chosen   []Chosen
	Rejected []Rejected
}

// IDs returns the IDs of the chosen providers, sorted.
func (c *Choice) IDs() []string {
	ids := make([]string, 0, len(c.Chosen))
	for _, p := range c.Chosen {
		ids = append(ids, p.ID)
	}
	slices.Sort(ids)
	return ids
}

// Wished reports whether the wish of the consumer rejects a provider that all others leave.
func (c *Choice) Wished() bool {
	return slices.ContainsFunc(c.Rejected, func(r Rejected) bool { return r.By == ByConsumer })
}

// candidate is a provider that qualifies.
type candidate struct {
	*Provider
	score   int64
	because string
	// since is the time at which it was chosen, zero if it is not.
	since time.Time
}

// choosing is the work on one choice.
type choosing struct {
	*Orchestration
	consumer string
	wish     Wish
	previous Previous
	now      time.Time
	rejected map[string]rejection
	// ranked are the candidates, the best first.
	ranked []*candidate
}

// rejection is by whom a provider is rejected, and why.
type rejection struct {
	by      Layer
	because string
}

// Choose chooses among the providers that the Orchestration selects, see the package comment. The wish is
// the consumer's.
func Choose(
	o *Orchestration, consumer string, wish Wish, providers []Provider, previous Previous, now time.Time,
) Choice {
	if !o.ConsumersChoose {
		wish = Wish{}
	}
	c := &choosing{
		Orchestration: o, consumer: consumer, wish: wish, previous: previous, now: now,
		rejected: map[string]rejection{},
	}
	c.qualify(providers)
	c.keep()
	c.fill()
	c.replace()
	return c.result(providers)
}

// qualify ranks the providers that qualify.
func (c *choosing) qualify(providers []Provider) {
	var fit []*Provider
	for i := range providers {
		p := &providers[i]
		if r := c.unfit(p); r.because != "" {
			c.rejected[p.ID] = r
			continue
		}
		fit = append(fit, p)
	}
	for _, p := range fit {
		score, because := c.score(p, fit)
		c.ranked = append(c.ranked, &candidate{Provider: p, score: score, because: because})
	}
	slices.SortFunc(c.ranked, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.ID, b.ID))
	})
}

// unfit returns by whom and why a provider is rejected, the zero value if it qualifies.
func (c *choosing) unfit(p *Provider) rejection {
	switch {
	case has(c.Disabled, p.ID, c.consumer):
		return rejection{Admin, "it is disabled"}
	case c.disables(p.ID, c.consumer):
		return rejection{Admin, "it is not enabled"}
	case p.ID == c.consumer:
		return rejection{ByOrchestration, "it is the consumer itself"}
	case p.Unusable != "":
		return rejection{ByOrchestration, p.Unusable}
	}
	if why := c.unfulfilled(c.Require, p, "required"); why != "" {
		return rejection{ByOrchestration, why}
	}
	if !c.wishesFor(p.ID) {
		return rejection{ByConsumer, "the consumer has chosen others"}
	}
	if why := c.unfulfilled(c.wish.Require, p, "required by the consumer"); why != "" {
		return rejection{ByConsumer, why}
	}
	return rejection{}
}

// unfulfilled returns the first of these requirements that a provider does not fulfil as a reason, empty if
// it fulfils all.
func (c *choosing) unfulfilled(require []Requirement, p *Provider, required string) string {
	_, has := c.previous.Chosen[p.ID]
	for _, r := range require {
		if has && r.KPI == Remaining {
			continue // It is room for more. What runs there has its own, and would be drained because it runs.
		}
		v, measured := p.Values[r.Measure]
		switch {
		case !measured:
			return fmt.Sprintf("%s is %s, and is %s", r.Measure, required, p.shown(r.Measure))
		case r.KPI.MoreIsBetter() && v < r.Bound:
			return fmt.Sprintf("%s is %s, and at least %s is %s", r.Measure, p.shown(r.Measure), r.Text(r.Bound), required)
		case !r.KPI.MoreIsBetter() && v > r.Bound:
			return fmt.Sprintf("%s is %s, and at most %s is %s", r.Measure, p.shown(r.Measure), r.Text(r.Bound), required)
		}
	}
	return ""
}

// wishesFor reports whether the consumer leaves a provider among those to choose from.
func (c *choosing) wishesFor(id string) bool {
	_, listed := c.wish.Providers[id]
	return listed || c.wish.Providers == nil
}

// preferences returns those that rank the providers: the consumer's, if it has any.
func (c *choosing) preferences() []Preference {
	if len(c.wish.Prefer) > 0 {
		return c.wish.Prefer
	}
	return c.Prefer
}

// most returns the largest number of providers to choose, 0 for no limit.
func (c *choosing) most() int {
	if c.Count == 0 || c.wish.Count == 0 {
		return max(c.Count, c.wish.Count)
	}
	return min(c.Count, c.wish.Count)
}

// score returns the score of a provider among those that qualify, and its parts as text.
func (c *choosing) score(p *Provider, fit []*Provider) (score int64, because string) {
	prefer := c.preferences()
	if len(prefer) == 0 {
		return 1000, "it fulfils what is required"
	}
	var sum, weights int64
	var parts []string
	for _, f := range prefer {
		weights += f.Weight
		v, measured := p.Values[f.Measure]
		if !measured {
			parts = append(parts, fmt.Sprintf("%s %s (0)", f.Measure, p.shown(f.Measure)))
			continue
		}
		part := f.part(v, f.best(fit))
		sum += f.Weight * part
		parts = append(parts, fmt.Sprintf("%s %s (%d)", f.Measure, p.shown(f.Measure), part))
	}
	return sum / weights, strings.Join(parts, ", ")
}

// keep gives the providers of the previous choice their places, the best of them if there are too
// many.
func (c *choosing) keep() {
	for _, p := range c.ranked {
		since, chosen := c.previous.Chosen[p.ID]
		switch {
		case !chosen || !c.free():
		case since.IsZero():
			p.since = c.now
		default:
			p.since = since
		}
	}
}

// fill gives free places to the best. One that has just lost its place waits, unless nobody else is
// chosen.
func (c *choosing) fill() {
	for _, p := range c.ranked {
		if p.since.IsZero() && c.free() && !c.waits(p.ID) {
			p.since = c.now
		}
	}
	if c.count() > 0 {
		return
	}
	for _, p := range c.ranked {
		if c.free() {
			p.since = c.now
		}
	}
}

// replace replaces the worst of those that may lose their place by the best of the others, while that
// gains enough.
func (c *choosing) replace() {
	for {
		var best, worst *candidate
		for _, p := range c.ranked {
			switch {
			case p.since.IsZero():
				if best == nil && !c.waits(p.ID) {
					best = p
				}
			case !c.stays(p):
				worst = p
			}
		}
		if best == nil || worst == nil || !outgrows(best.score, worst.score, c.Stay.GainPercent) {
			return
		}
		best.since, worst.since = c.now, time.Time{}
	}
}

// count returns the number of chosen providers.
func (c *choosing) count() (n int) {
	for _, p := range c.ranked {
		if !p.since.IsZero() {
			n++
		}
	}
	return n
}

func (c *choosing) free() bool { return c.most() == 0 || c.count() < c.most() }

// stays reports whether a chosen provider keeps its place whatever the others score.
func (c *choosing) stays(p *candidate) bool { return c.now.Sub(p.since) < c.Stay.For }

// leftAt returns when a provider that is not chosen lost its place, zero if that is Stay.For ago or
// longer. A provider that an admin has disabled, or the consumer has not chosen, comes back as soon as that
// changes.
func (c *choosing) leftAt(id string) time.Time {
	left := c.previous.Left[id]
	if _, chosen := c.previous.Chosen[id]; chosen {
		left = c.now
	}
	if c.disables(id, c.consumer) || !c.wishesFor(id) || c.now.Sub(left) >= c.Stay.For {
		return time.Time{}
	}
	return left
}

// waits reports whether a provider that is not chosen lost its place within Stay.For.
func (c *choosing) waits(id string) bool { return !c.leftAt(id).IsZero() }

// result lists the chosen and the rejected providers.
func (c *choosing) result(providers []Provider) Choice {
	var out Choice
	for _, p := range c.ranked {
		if !p.since.IsZero() {
			out.Chosen = append(out.Chosen, Chosen{ID: p.ID, Score: p.score, Since: p.since, Because: p.because})
			continue
		}
		c.rejected[p.ID] = rejection{ByRank, c.outranked(p)}
	}
	for i := range providers {
		id := providers[i].ID
		if r, rejected := c.rejected[id]; rejected {
			out.Rejected = append(out.Rejected, Rejected{ID: id, By: r.by, Because: r.because, Left: c.leftAt(id)})
		}
	}
	slices.SortFunc(out.Rejected, func(a, b Rejected) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// outranked returns why a provider that qualifies is not chosen.
func (c *choosing) outranked(p *candidate) string {
	if c.waits(p.ID) {
		return fmt.Sprintf("it lost its place, and stays out until %s", timeText(c.leftAt(p.ID).Add(c.Stay.For)))
	}
	var worst *candidate
	for _, other := range c.ranked {
		if !other.since.IsZero() {
			worst = other
		}
	}
	switch {
	case worst == nil || p.score <= worst.score:
		return fmt.Sprintf("its score is %d, and count is %d: %s", p.score, c.most(), p.because)
	case !outgrows(p.score, worst.score, c.Stay.GainPercent):
		return fmt.Sprintf("its score is %d, less than %d %% better than %d of %s",
			p.score, c.Stay.GainPercent, worst.score, worst.ID)
	default:
		return fmt.Sprintf("its score is %d, and %s with %d keeps its place until %s",
			p.score, worst.ID, worst.score, timeText(worst.since.Add(c.Stay.For)))
	}
}

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339) }
