package metasync

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// The keys and values of the tables. The key of a consumer is its ID, that of a policy its name. The
// value of a consumer is its labels as JSON.
type (
	policyVersion struct {
		uid        string
		generation int64
	}
	// offerKey is the key of offers and of use.
	offerKey struct{ consumer, class, resource string }
	offered  struct {
		policy string
		amount int64
	}
	// usage holds the requests of the pods of a consumer, and the sum of the grants of its slices. The sum
	// is known even if a consumer changes its slices so often that their own rows are held back.
	usage struct{ requested, granted int64 }
	// grantKey is a resource of a ResourceSlice, by the UID of the slice.
	grantKey struct{ uid, resource string }
	granted  struct {
		namespace, slice, consumer, class, policy string
		accepted                                  bool
		// asked is NULL for a resource that the slice did not ask for.
		asked   sql.NullInt64
		granted int64
		reason  string
		price   price
	}
	poolKey struct{ policy, resource string }
	pool    struct {
		class                          string
		capacity, committed, remaining int64
	}
)

// price is the price of one unit of a resource for a period. The zero price is none.
type price struct {
	// decimal has nine digits after the point, as its column does.
	decimal          sql.NullString
	currency, period string
}

// Longest texts that the columns take, in characters.
const (
	maxID       = 253
	maxClass    = 63
	maxResource = 317
)

// published holds the rows that should be open.
type published struct {
	consumers map[string]string
	policies  map[string]policyVersion
	offers    map[offerKey]offered
	grants    map[grantKey]granted
	pools     map[poolKey]pool
	// specs holds the specs of the policies, and terms the valid policies, both by name.
	specs map[string]any
	terms map[string]*offer.Policy
	// leftOut counts the texts that the columns do not take. odd is the last of them.
	leftOut int
	odd     string
}

// publishedIn returns the rows of a snapshot, apart from use. A grant under a policy that is gone or
// invalid keeps the price that last returns.
func publishedIn(s *table.Snapshot, last func(grantKey) price) *published {
	p := &published{
		consumers: map[string]string{}, policies: map[string]policyVersion{}, offers: map[offerKey]offered{},
		grants: map[grantKey]granted{}, pools: map[poolKey]pool{}, specs: map[string]any{},
		terms: map[string]*offer.Policy{},
	}
	for _, c := range s.Input.Consumers {
		if p.takes(maxID, c.ID) {
			p.consumers[c.ID] = asJSON(c.Labels)
		}
	}
	for i := range s.Policies {
		p.addPolicy(s, &s.Policies[i])
	}
	for id, entry := range s.Entries.All {
		if !p.takes(maxID, id) {
			continue
		}
		for _, o := range entry.Offers {
			p.addOffer(id, o)
		}
	}
	if s.Slices != nil {
		for d := range s.Slices.All {
			if !d.Pinned { // A pinned part belongs to a slice that is listed too, or to one that is gone.
				p.addSlice(&d, last)
			}
		}
	}
	return p
}

func (p *published) addPolicy(s *table.Snapshot, t *table.Policy) {
	if t.Parsed == nil {
		return
	}
	p.policies[t.Name] = policyVersion{t.UID, t.Generation}
	p.specs[t.Name] = &t.Object.Spec
	p.terms[t.Name] = t.Parsed
	r := s.Reports[t.Name]
	if r == nil || t.Parsed.DryRun || t.Parsed.Nodes == nil {
		return
	}
	for resource, capacity := range r.Capacity {
		if p.takes(maxResource, resource) {
			p.pools[poolKey{t.Name, resource}] = pool{t.Parsed.Class, capacity, r.Committed[resource], r.Remaining[resource]}
		}
	}
}

func (p *published) addOffer(id string, o *offer.Offer) {
	if !p.takes(maxClass, o.Class) {
		return
	}
	for _, a := range o.Amounts {
		if p.takes(maxResource, a.Resource) {
			p.offers[offerKey{id, o.Class, a.Resource}] = offered{o.Policy, a.Value}
		}
	}
}

// addSlice adds the resources that the answer to a slice lists. Other resources of the request are not in
// the books: a consumer may ask for anything.
func (p *published) addSlice(d *table.DecidedSlice, last func(grantKey) price) {
	if d.Answer == nil && len(d.Slice.Granted) == 0 {
		return // No policy serves the class, in which a consumer may write anything.
	}
	if !p.takes(maxID, d.Consumer) || !p.takes(maxClass, d.Class) {
		return
	}
	row := granted{
		namespace: d.Namespace, slice: d.Name, consumer: d.Consumer, class: d.Class,
		policy: d.Policy(), accepted: d.Accepted(),
	}
	if by := offer.Granters(d.GrantedBy); row.policy == "" && len(by) > 0 {
		row.policy = offer.PolicyOf(by[0])
	}
	terms := p.terms[row.policy]
	add := func(resource string, asked, amount int64, reason string) {
		key := grantKey{d.UID, resource}
		if !p.takes(maxResource, resource) {
			return
		}
		row.asked = sql.NullInt64{Int64: max(0, asked), Valid: asked >= 0}
		row.granted, row.reason = amount, reason
		if terms != nil {
			row.price = priceOf(&terms.Catalog, resource)
		} else {
			row.price = last(key)
		}
		p.grants[key] = row
	}
	if d.Answer == nil {
		for resource, amount := range d.Slice.Granted {
			asked, listed := d.Request[resource]
			if !listed {
				asked = -1
			}
			add(resource, asked, amount, "Kept")
		}
		return
	}
	for i := range d.Answer.Lines {
		if l := &d.Answer.Lines[i]; l.Listed {
			amount := l.Granted
			if !row.accepted {
				amount = 0
			}
			add(l.Resource, l.Asked, amount, reasonOf(d.Answer, l))
		}
	}
}

// reasonOf returns in a word why a resource was not granted in full.
func reasonOf(a *grant.Answer, l *grant.Line) string {
	switch {
	case a.Invalid:
		return "InvalidRequest"
	case l.Bound == grant.Unbound:
		return "InFull"
	}
	return reasons[l.Bound]
}

var reasons = map[grant.Bound]string{
	grant.ByPool: "PoolExhausted", grant.ByMax: "MaxReached", grant.ByFixed: "FixedAmountReached",
	grant.ByOverride: "OverrideReached", grant.NotOffered: "NotOffered", grant.Withheld: "AllOrNothing",
	grant.Useless: "NothingOfAnother", grant.ByFreeze: "Cordoned", grant.ByPause: "Paused",
	grant.ByStop: "Stopped", grant.Withdrawn: "NoPolicy", grant.Awaited: "BeingReclaimed",
	grant.ByPin: "Kept", grant.ByGiver: "GivenByItself", grant.ByFilter: "Filtered",
	grant.BySeat: "SeatExhausted", grant.ByCordon: "SeatCordoned",
}

// usedIn returns the use of each offered resource by its consumer.
func usedIn(s *table.Snapshot) map[offerKey]usage {
	used := map[offerKey]usage{}
	explainer := s.Explainer()
	for id := range s.Entries.All {
		for _, x := range explainer.Of(id) {
			for _, a := range x.Amounts {
				used[offerKey{id, x.Class, a.Resource}] = usage{x.Used[a.Resource], x.Granted[a.Resource]}
			}
		}
	}
	return used
}

func priceOf(c *offer.Catalog, resource string) price {
	decimal, listed := c.Prices[resource]
	if !listed {
		return price{}
	}
	return price{sql.NullString{String: nineDecimals(decimal), Valid: true}, c.Currency, c.Period}
}

// nineDecimals writes a decimal number with at most nine digits after the point, such as a v1alpha1.Price, as
// columns of prices have it.
func nineDecimals(decimal string) string {
	whole, fraction, _ := strings.Cut(decimal, ".")
	return cmp.Or(strings.TrimLeft(whole, "0"), "0") + "." + (fraction + "000000000")[:9]
}

// fitsColumn reports whether a column of this many characters takes a text as it is. MySQL ignores spaces at
// the end of a text in comparisons, and PostgreSQL takes no zero byte.
func fitsColumn(most int, text string) bool {
	return utf8.ValidString(text) && utf8.RuneCountInString(text) <= most && strings.TrimSpace(text) == text &&
		!strings.ContainsFunc(text, unicode.IsControl)
}

// takes reports whether a column takes a text as it is, and counts the texts that it does not take.
func (p *published) takes(most int, text string) bool {
	ok := fitsColumn(most, text)
	if !ok {
		p.leftOut++
		p.odd = text
	}
	return ok
}

// asJSON returns a value as JSON, with the keys of maps in order. The values here cannot fail.
func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "null"
	}
	return string(text)
}
