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

// Rejected is a provider that was not chosen.
type Rejected struct {
	ID string
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
	previous Previous
	now      time.Time
	rejected map[string]string
	// ranked are the candidates, the best first.
	ranked []*candidate
}

// Choose chooses among the providers that the Orchestration selects, see the package comment.
func Choose(o *Orchestration, consumer string, providers []Provider, previous Previous, now time.Time) Choice {
	c := &choosing{Orchestration: o, consumer: consumer, previous: previous, now: now, rejected: map[string]string{}}
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
		if reason := c.unfit(p); reason != "" {
			c.rejected[p.ID] = reason
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

// unfit returns why a provider does not qualify, empty if it does.
func (c *choosing) unfit(p *Provider) string {
	switch {
	case p.ID == c.consumer:
		return "it is the consumer itself"
	case c.disabled(p.ID):
		return "it is disabled"
	case p.Unusable != "":
		return p.Unusable
	}
	for _, r := range c.Require {
		if _, has := c.previous.Chosen[p.ID]; has && r.KPI == Remaining {
			continue // It is room for more. What runs there has its own, and would be drained because it runs.
		}
		v, measured := p.Values[r.Measure]
		switch {
		case !measured:
			return fmt.Sprintf("%s is required, and is not measured", r.Measure)
		case r.KPI.moreIsBetter() && v < r.Bound:
			return fmt.Sprintf("%s is %s, and at least %s is required", r.Measure, r.Text(v), r.Text(r.Bound))
		case !r.KPI.moreIsBetter() && v > r.Bound:
			return fmt.Sprintf("%s is %s, and at most %s is required", r.Measure, r.Text(v), r.Text(r.Bound))
		}
	}
	return ""
}

// disabled reports whether a provider is disabled, for the consumer or for all.
func (c *choosing) disabled(id string) bool {
	_, all := c.Disabled[Disabled{Provider: id}]
	_, one := c.Disabled[Disabled{id, c.consumer}]
	return all || one
}

// score returns the score of a provider among those that qualify, and its parts as text.
func (c *choosing) score(p *Provider, fit []*Provider) (score int64, because string) {
	if len(c.Prefer) == 0 {
		return 1000, "it fulfils what is required"
	}
	var sum, weights int64
	var parts []string
	for _, f := range c.Prefer {
		weights += f.Weight
		v, measured := p.Values[f.Measure]
		if !measured {
			parts = append(parts, fmt.Sprintf("%s not measured (0)", f.Measure))
			continue
		}
		part := f.part(v, f.best(fit))
		sum += f.Weight * part
		parts = append(parts, fmt.Sprintf("%s %s (%d)", f.Measure, f.Text(v), part))
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

func (c *choosing) free() bool { return c.Count == 0 || c.count() < c.Count }

// stays reports whether a chosen provider keeps its place whatever the others score.
func (c *choosing) stays(p *candidate) bool { return c.now.Sub(p.since) < c.Stay.For }

// leftAt returns when a provider that is not chosen lost its place, zero if that is Stay.For ago or
// longer. A provider that an admin has disabled comes back as soon as it is enabled.
func (c *choosing) leftAt(id string) time.Time {
	left := c.previous.Left[id]
	if _, chosen := c.previous.Chosen[id]; chosen {
		left = c.now
	}
	if c.disabled(id) || c.now.Sub(left) >= c.Stay.For {
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
		c.rejected[p.ID] = c.outranked(p)
	}
	for i := range providers {
		id := providers[i].ID
		if because, rejected := c.rejected[id]; rejected {
			out.Rejected = append(out.Rejected, Rejected{ID: id, Because: because, Left: c.leftAt(id)})
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
		return fmt.Sprintf("its score is %d, and count is %d: %s", p.score, c.Count, p.because)
	case !outgrows(p.score, worst.score, c.Stay.GainPercent):
		return fmt.Sprintf("its score is %d, less than %d %% better than %d of %s",
			p.score, c.Stay.GainPercent, worst.score, worst.ID)
	default:
		return fmt.Sprintf("its score is %d, and %s with %d keeps its place until %s",
			p.score, worst.ID, worst.score, timeText(worst.since.Add(c.Stay.For)))
	}
}

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339) }
