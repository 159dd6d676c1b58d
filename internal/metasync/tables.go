package metasync

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"proffer.dev/proffer/internal/metasync/db"
)

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
	t := &tables{}
	t.consumers = consumersSheet(sample)
	t.policies = policiesSheet(sample, func(name string) string { return asJSON(t.specs[name]) })
	t.offers = offersSheet(sample)
	t.grants = grantsSheet()
	t.usage = usageSheet(sample)
	t.pools = poolsSheet(sample)
	return t
}

// rowsOf puts the rows of a query into a map.
func rowsOf[R any, K, V comparable](all []R, err error, of func(R) (K, V, time.Time)) (map[K]row[V], error) {
	rows := make(map[K]row[V], len(all))
	for _, r := range all {
		key, value, from := of(r)
		rows[key] = row[V]{value, from}
	}
	return rows, err
}

func nullTime(t time.Time) sql.NullTime { return sql.NullTime{Time: t, Valid: true} }

func consumersSheet(sample time.Duration) sheet[string, string] {
	return sheet[string, string]{
		name: "consumer", sample: sample,
		list: func(ctx context.Context, p *pass) (map[string]row[string], error) {
			all, err := p.q.ListConsumers(ctx, p.cluster)
			return rowsOf(all, err, func(r db.ListConsumersRow) (string, string, time.Time) {
				return r.Consumer, r.Labels, r.ValidFrom
			})
		},
		begin: func(ctx context.Context, p *pass, id, labels string) error {
			return p.q.OpenConsumer(ctx, db.OpenConsumerParams{
				ClusterID: p.cluster, Consumer: id, Labels: labels, ValidFrom: p.at,
			})
		},
		end: func(ctx context.Context, p *pass, id string, to time.Time) (int64, error) {
			return p.q.CloseConsumer(ctx, db.CloseConsumerParams{ValidTo: nullTime(to), ClusterID: p.cluster, Consumer: id})
		},
	}
}

func policiesSheet(sample time.Duration, specOf func(name string) string) sheet[string, policyVersion] {
	return sheet[string, policyVersion]{
		name: "policy_version", sample: sample,
		list: func(ctx context.Context, p *pass) (map[string]row[policyVersion], error) {
			all, err := p.q.ListPolicies(ctx, p.cluster)
			return rowsOf(all, err, func(r db.ListPoliciesRow) (string, policyVersion, time.Time) {
				return r.Policy, policyVersion{r.UID, r.Generation}, r.ValidFrom
			})
		},
		begin: func(ctx context.Context, p *pass, name string, v policyVersion) error {
			return p.q.OpenPolicy(ctx, db.OpenPolicyParams{
				ClusterID: p.cluster, Policy: name, UID: v.uid, Generation: v.generation, Spec: specOf(name), ValidFrom: p.at,
			})
		},
		end: func(ctx context.Context, p *pass, name string, to time.Time) (int64, error) {
			return p.q.ClosePolicy(ctx, db.ClosePolicyParams{ValidTo: nullTime(to), ClusterID: p.cluster, Policy: name})
		},
	}
}

func offersSheet(sample time.Duration) sheet[offerKey, offered] {
	return sheet[offerKey, offered]{
		name: "offer_interval", sample: sample,
		list: func(ctx context.Context, p *pass) (map[offerKey]row[offered], error) {
			all, err := p.q.ListOffers(ctx, p.cluster)
			return rowsOf(all, err, func(r db.ListOffersRow) (offerKey, offered, time.Time) {
				return offerKey{r.Consumer, r.Class, r.Resource}, offered{r.Policy, r.Amount}, r.ValidFrom
			})
		},
		begin: func(ctx context.Context, p *pass, k offerKey, v offered) error {
			return p.q.OpenOffer(ctx, db.OpenOfferParams{
				ClusterID: p.cluster, Consumer: k.consumer, Class: k.class, Resource: k.resource,
				Policy: v.policy, Amount: v.amount, ValidFrom: p.at,
			})
		},
		end: func(ctx context.Context, p *pass, k offerKey, to time.Time) (int64, error) {
			return p.q.CloseOffer(ctx, db.CloseOfferParams{
				ValidTo: nullTime(to), ClusterID: p.cluster, Consumer: k.consumer, Class: k.class, Resource: k.resource,
			})
		},
	}
}

func grantsSheet() sheet[grantKey, granted] {
	return sheet[grantKey, granted]{
		name: "grant_interval", payer: func(v granted) string { return v.consumer },
		list: func(ctx context.Context, p *pass) (map[grantKey]row[granted], error) {
			all, err := p.q.ListGrants(ctx, p.cluster)
			return rowsOf(all, err, grantOf)
		},
		begin: func(ctx context.Context, p *pass, k grantKey, v granted) error {
			return p.q.OpenGrant(ctx, db.OpenGrantParams{
				ClusterID: p.cluster, UID: k.uid, Resource: k.resource, Namespace: v.namespace, Slice: v.slice,
				Consumer: v.consumer, Class: v.class, Policy: v.policy, Accepted: v.accepted,
				Asked: sql.NullInt64{Int64: v.asked, Valid: v.asked >= 0}, Granted: v.granted, Reason: v.reason,
				Price: v.price.decimal(), Currency: v.price.currency, Period: v.price.period, ValidFrom: p.at,
			})
		},
		end: func(ctx context.Context, p *pass, k grantKey, to time.Time) (int64, error) {
			return p.q.CloseGrant(ctx, db.CloseGrantParams{
				ValidTo: nullTime(to), ClusterID: p.cluster, UID: k.uid, Resource: k.resource,
			})
		},
	}
}

func grantOf(r db.ListGrantsRow) (grantKey, granted, time.Time) {
	v := granted{
		namespace: r.Namespace, slice: r.Slice, consumer: r.Consumer, class: r.Class, policy: r.Policy, accepted: r.Accepted,
		asked: -1, granted: r.Granted, reason: r.Reason,
	}
	if r.Asked.Valid {
		v.asked = r.Asked.Int64
	}
	if r.Price.Valid {
		v.price = price{billionthsOf(r.Price.String), r.Currency, r.Period}
	}
	return grantKey{r.UID, r.Resource}, v, r.ValidFrom
}

// decimal returns the price as the column has it, NULL for none.
func (p price) decimal() sql.NullString {
	if p == (price{}) {
		return sql.NullString{}
	}
	return sql.NullString{String: fmt.Sprintf("%d.%09d", p.billionths/1e9, p.billionths%1e9), Valid: true}
}

func usageSheet(sample time.Duration) sheet[offerKey, usage] {
	return sheet[offerKey, usage]{
		name: "usage_interval", sample: sample,
		list: func(ctx context.Context, p *pass) (map[offerKey]row[usage], error) {
			all, err := p.q.ListUsage(ctx, p.cluster)
			return rowsOf(all, err, func(r db.ListUsageRow) (offerKey, usage, time.Time) {
				return offerKey{r.Consumer, r.Class, r.Resource}, usage{r.Amount, r.Granted}, r.ValidFrom
			})
		},
		begin: func(ctx context.Context, p *pass, k offerKey, v usage) error {
			return p.q.OpenUsage(ctx, db.OpenUsageParams{
				ClusterID: p.cluster, Consumer: k.consumer, Class: k.class, Resource: k.resource,
				Amount: v.requested, Granted: v.granted, ValidFrom: p.at,
			})
		},
		end: func(ctx context.Context, p *pass, k offerKey, to time.Time) (int64, error) {
			return p.q.CloseUsage(ctx, db.CloseUsageParams{
				ValidTo: nullTime(to), ClusterID: p.cluster, Consumer: k.consumer, Class: k.class, Resource: k.resource,
			})
		},
	}
}

func poolsSheet(sample time.Duration) sheet[poolKey, pool] {
	return sheet[poolKey, pool]{
		name: "pool_interval", sample: sample,
		list: func(ctx context.Context, p *pass) (map[poolKey]row[pool], error) {
			all, err := p.q.ListPools(ctx, p.cluster)
			return rowsOf(all, err, func(r db.ListPoolsRow) (poolKey, pool, time.Time) {
				return poolKey{r.Policy, r.Resource}, pool{r.Class, r.Capacity, r.Committed, r.Remaining}, r.ValidFrom
			})
		},
		begin: func(ctx context.Context, p *pass, k poolKey, v pool) error {
			return p.q.OpenPool(ctx, db.OpenPoolParams{
				ClusterID: p.cluster, Policy: k.policy, Resource: k.resource, Class: v.class,
				Capacity: v.capacity, Committed: v.committed, Remaining: v.remaining, ValidFrom: p.at,
			})
		},
		end: func(ctx context.Context, p *pass, k poolKey, to time.Time) (int64, error) {
			return p.q.ClosePool(ctx, db.ClosePoolParams{
				ValidTo: nullTime(to), ClusterID: p.cluster, Policy: k.policy, Resource: k.resource,
			})
		},
	}
}
