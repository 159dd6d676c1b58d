package page

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/internal/trends"
)

// classOf are the pools of one class.
type classOf struct {
	Name  string
	Pools []pool
}

// pool is the pool of one policy.
type pool struct {
	rest.Policy
	// Resources is empty for fixed amounts, which have no pool.
	Resources []level
}

// HasMonth reports whether something is known of the last 30 days.
func (p pool) HasMonth() bool {
	return slices.ContainsFunc(p.Resources, func(l level) bool { return l.Month != nil })
}

// level shows the committed and the used part of one resource of a pool.
type level struct {
	Resource                             string
	Capacity, Committed, Used, Remaining string
	Bar                                  bar
	// Lines are of the last 24 hours, and Month of the last 30 days, nil while they are not known.
	Lines, Month *lines
}

// bar is a level as parts of 100. The whole is the capacity or, if that is more, what is committed or
// used.
type bar struct{ Capacity, Committed, Used float64 }

// overviewData is what the overview shows of the evaluation.
type overviewData struct {
	Classes []*classOf
	// Due is nil if nothing is due, or if that is not known.
	Due *dues
}

// dues are amounts of money that are due for a month, up to a time.
type dues struct {
	Month, To string
	Amounts   []trends.Due
	// ByClass is set if the amounts are of classes.
	ByClass bool
}

// duesOf returns nil if nothing is due.
func duesOf(m *trends.Month, amounts []trends.Due, byClass bool) *dues {
	if len(amounts) == 0 {
		return nil
	}
	return &dues{
		Month: m.Began().Format("January 2006"), To: m.To.Format("2006-01-02 15:04 MST"), Amounts: amounts,
		ByClass: byClass,
	}
}

// overviewPage shows what needs somebody, which each document has, and the pools of each class.
func overviewPage(view View, _ *http.Request) (document, error) {
	used, classes := view.Used(), map[string]*classOf{}
	for _, p := range view.Policies() {
		if p.Source == "" {
			continue // It is invalid, so it has no class.
		}
		class := classes[p.Class]
		if class == nil {
			class = &classOf{Name: p.Class}
			classes[p.Class] = class
		}
		class.Pools = append(class.Pools, pool{Policy: p, Resources: levelsOf(view, p, used[p.Name])})
	}
	all := make([]*classOf, 0, len(classes))
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		all = append(all, classes[name])
	}
	month := view.Month()
	data := overviewData{Classes: all, Due: duesOf(month, month.Total(), false)}
	return document{Title: "Overview", Section: "overview", Body: "overview", Data: data}, nil
}

func levelsOf(view View, p rest.Policy, used rest.Amounts) []level {
	var all []level
	for _, name := range resourcesOf(p.Capacity) {
		subject := trends.Subject{Policy: p.Name, Resource: name}
		amounts := quantity.Human(name,
			p.Capacity.Of(name), p.Committed.Of(name), used.OrZero(name), p.Remaining.Of(name))
		all = append(all, level{
			Resource: name, Capacity: cmp.Or(amounts[0], none), Committed: cmp.Or(amounts[1], none), Used: amounts[2],
			Remaining: cmp.Or(amounts[3], none), Bar: barOf(p.Capacity, p.Committed, used, name),
			Lines: linesOf(view, subject), Month: monthOf(view, subject),
		})
	}
	return all
}

func barOf(capacity, committed, used rest.Amounts, name string) bar {
	part := func(amounts rest.Amounts) float64 {
		q := amounts[name]
		return max(0, q.AsApproximateFloat64())
	}
	c, m, u := part(capacity), part(committed), part(used)
	whole := max(c, m, u)
	if whole == 0 {
		return bar{}
	}
	return bar{Capacity: 100 * c / whole, Committed: 100 * m / whole, Used: 100 * u / whole}
}

// consumer is a consumer with the lines of what it had.
type consumer struct {
	rest.Consumer
	view View
}

// Lines returns nil for lines that are not known.
func (c consumer) Lines(class, resource string) *lines {
	return linesOf(c.view, trends.Subject{Consumer: c.ClusterID, Class: class, Resource: resource})
}

// Month returns the lines of the last 30 days, nil for lines that are not known.
func (c consumer) Month(class, resource string) *lines {
	return monthOf(c.view, trends.Subject{Consumer: c.ClusterID, Class: class, Resource: resource})
}

// HasMonth reports whether something is known of the last 30 days.
func (c consumer) HasMonth() bool { return c.view.Month() != nil }

// Due returns nil if nothing is due, or if that is not known.
func (c consumer) Due() *dues {
	month := c.view.Month()
	return duesOf(month, month.Due(c.ClusterID), true)
}

// consumerPage explains everything about one consumer.
func consumerPage(view View, r *http.Request) (document, error) {
	c := consumer{view.Details(r.PathValue("clusterID")), view}
	return document{Title: "Consumer " + c.ClusterID, Section: "consumers", Body: "consumer", Data: c}, nil
}

// policiesPage shows all policies with their conditions.
func policiesPage(view View, _ *http.Request) (document, error) {
	return document{Title: "Policies", Section: "policies", Body: "policies", Data: view.Policies()}, nil
}
