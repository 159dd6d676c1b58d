package metasync

import "time"

// tables holds all tables of the books.
type tables struct {
	consumers sheet[string, string]
	policies  sheet[string, policyVersion]
	offers    sheet[offerKey, offered]
	grants    sheet[grantKey, granted]
	usage     sheet[offerKey, usage]
	pools     sheet[poolKey, pool]
	// specs holds the specs of the policies in wanted.
	specs map[string]any
}

// all returns the tables in the order in which they are written. If there is no time for all of them, grants
// come first. Policies come last: their authors decide how large their rows are.
func (t *tables) all() []anySheet {
	return []anySheet{&t.grants, &t.usage, &t.consumers, &t.offers, &t.pools, &t.policies}
}

// want sets the rows that should be open. used is nil while nothing new is known of the use.
func (t *tables) want(p *published, used map[offerKey]usage) {
	t.consumers.wanted, t.policies.wanted, t.offers.wanted = p.consumers, p.policies, p.offers
	t.grants.wanted, t.pools.wanted, t.specs = p.grants, p.pools, p.specs
	if used == nil {
		return
	}
	for key, is := range used {
		_, offered := p.offers[key]
		// No row says that nothing was ever used. One that ends says so for a while, which bounds how often
		// a consumer can open another.
		if _, open := t.usage.open[key]; !offered || is == (usage{}) && !open {
			delete(used, key)
		}
	}
	t.usage.wanted = used
}

// priceOf returns the price of the open row of a grant.
func (t *tables) priceOf(key grantKey) price { return t.grants.open[key].value.price }

// newTables returns the tables. Rows stay for sample at the least, except the rows of grants, which have a
// budget.
func newTables(sample time.Duration) *tables {
	ofOffer := columns[offerKey]{
		"consumer, class, resource", func(k *offerKey) []any { return []any{&k.consumer, &k.class, &k.resource} },
	}
	t := &tables{
		consumers: sheet[string, string]{
			name: "consumer", sample: sample, keys: column[string]("consumer"), values: column[string]("labels"),
		},
		policies: sheet[string, policyVersion]{
			name: "policy_version", sample: sample, keys: column[string]("policy"),
			values: columns[policyVersion]{
				"uid, generation", func(v *policyVersion) []any { return []any{&v.uid, &v.generation} },
			},
		},
		offers: sheet[offerKey, offered]{
			name: "offer_interval", sample: sample, keys: ofOffer,
			values: columns[offered]{"policy, amount", func(v *offered) []any { return []any{&v.policy, &v.amount} }},
		},
		grants: sheet[grantKey, granted]{
			name: "grant_interval", payer: func(v granted) string { return v.consumer },
			keys: columns[grantKey]{"uid, resource", func(k *grantKey) []any { return []any{&k.uid, &k.resource} }},
			values: columns[granted]{
				"namespace, slice, consumer, class, policy, accepted, asked, granted, reason, price, currency, period",
				(*granted).fields,
			},
		},
		usage: sheet[offerKey, usage]{
			name: "usage_interval", sample: sample, keys: ofOffer,
			values: columns[usage]{"amount, granted", func(v *usage) []any { return []any{&v.requested, &v.granted} }},
		},
		pools: sheet[poolKey, pool]{
			name: "pool_interval", sample: sample,
			keys: columns[poolKey]{"policy, resource", func(k *poolKey) []any { return []any{&k.policy, &k.resource} }},
			values: columns[pool]{
				"class, capacity, committed, remaining",
				func(v *pool) []any { return []any{&v.class, &v.capacity, &v.committed, &v.remaining} },
			},
		},
	}
	t.policies.spec = func(name string) string { return asJSON(t.specs[name]) }
	return t
}

func (v *granted) fields() []any {
	return []any{
		&v.namespace, &v.slice, &v.consumer, &v.class, &v.policy, &v.accepted, &v.asked, &v.granted, &v.reason,
		&v.price.decimal, &v.price.currency, &v.price.period,
	}
}
