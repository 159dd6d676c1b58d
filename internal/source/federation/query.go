package federation

import (
	"cmp"
	"fmt"
	"math/big"
	"net/url"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
)

// The parameters of a query.
const (
	ClassParam, RegionParam, FitsParam = "class", "region", "fits"
	MaxPriceParam, CurrencyParam       = "maxPrice", "currency"
)

// maxParam bounds a parameter, in bytes.
const maxParam = 1024

// monthHours are the hours for which a price of a month is compared with one of an hour: a twelfth of the hours of
// a year.
const monthHours = 730

// regions are the labels that name a region, the first that is there.
var regions = []string{"region", corev1.LabelTopologyRegion}

// price matches the prices that the CRD allows. Others take a long time to parse.
var price = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})([.][0-9]{1,9})?$`)

// Query selects Offers. Empty fields select all.
type Query struct {
	Class, Region string
	Fits          v1alpha1.Quantities
	// MaxPrices are for one unit and an hour, in Currency, which they need.
	MaxPrices map[corev1.ResourceName]*big.Rat
	Currency  v1alpha1.Currency
}

// ParseQuery parses the parameters of a request. Others than those of a query are left to the caller.
func ParseQuery(values url.Values) (q Query, err error) {
	for _, name := range []string{ClassParam, RegionParam, FitsParam, MaxPriceParam, CurrencyParam} {
		if len(values.Get(name)) > maxParam {
			return q, fmt.Errorf("%s has more than %d bytes", name, maxParam)
		}
	}
	q.Class, q.Region = values.Get(ClassParam), values.Get(RegionParam)
	q.Currency = v1alpha1.Currency(values.Get(CurrencyParam))
	if q.Currency != "" && !currency.MatchString(string(q.Currency)) {
		return q, fmt.Errorf("%s=%.16q: write the three capital letters of ISO 4217, such as EUR", CurrencyParam, q.Currency)
	}
	if q.Fits, err = ParseAmounts(values.Get(FitsParam)); err != nil {
		return q, fmt.Errorf("%s=%s: %w", FitsParam, values.Get(FitsParam), err)
	}
	if q.MaxPrices, err = parsePrices(values.Get(MaxPriceParam)); err != nil {
		return q, err
	}
	if len(q.MaxPrices) > 0 && q.Currency == "" {
		return q, fmt.Errorf("%s needs %s, such as EUR: prices are not converted", MaxPriceParam, CurrencyParam)
	}
	return q, nil
}

// parsePrices parses prices as in cpu=0.03,memory=0.01. An empty text has none.
func parsePrices(text string) (map[corev1.ResourceName]*big.Rat, error) {
	if text == "" {
		return nil, nil
	}
	all := map[corev1.ResourceName]*big.Rat{}
	for item := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(item, "=")
		most := rat(v1alpha1.Price(value))
		_, twice := all[corev1.ResourceName(name)]
		if len(validation.IsQualifiedName(name)) > 0 || most == nil || twice {
			return nil, fmt.Errorf("%s=%s: write RESOURCE=PRICE[,RESOURCE=PRICE...], such as cpu=0.03", MaxPriceParam, text)
		}
		all[corev1.ResourceName(name)] = most
	}
	return all, nil
}

func rat(p v1alpha1.Price) *big.Rat {
	if !price.MatchString(string(p)) {
		return nil
	}
	value, _ := new(big.Rat).SetString(string(p))
	return value
}

// hourPrice returns the price of one unit of a resource for an hour, nil if the Offer has none.
func hourPrice(o *rest.FederationOffer, name corev1.ResourceName) *big.Rat {
	value := rat(o.Prices[name])
	if value != nil && o.Period == v1alpha1.PeriodMonth {
		value.Quo(value, big.NewRat(monthHours, 1))
	}
	return value
}

// nano is the number of units of NanoPrice in one of a currency.
const nano = 1_000_000_000

// NanoPrice returns the price of one unit of a resource for an hour in 10^-9 of the currency of an Offer, rounded
// up, and whether the Offer has one.
func NanoPrice(o *rest.FederationOffer, name corev1.ResourceName) (price int64, priced bool) {
	value := hourPrice(o, name)
	if value == nil {
		return 0, false
	}
	value.Mul(value, big.NewRat(nano, 1))
	whole, rest := new(big.Int).QuoRem(value.Num(), value.Denom(), new(big.Int))
	return whole.Int64() + int64(rest.Sign()), true // The bounds of a price leave room for that.
}

// regionOf returns the region that the labels of an Offer name, empty for none.
func regionOf(o *rest.FederationOffer) string {
	for _, name := range regions {
		if region := o.Labels[name]; region != "" {
			return string(region)
		}
	}
	return ""
}

// Select keeps the Offers that the query selects, and sets their commands. A provider without any stays: what is
// wrong with it may be the reason.
func (q *Query) Select(providers []rest.FederationProvider) {
	for i := range providers {
		p := &providers[i]
		p.Offers = slices.DeleteFunc(p.Offers, func(o rest.FederationOffer) bool { return !q.matches(&o) })
	}
	Fit(providers, q.Fits, 0, Liqoctl{})
}

// matches reports whether the query selects an Offer, apart from what fits.
func (q *Query) matches(o *rest.FederationOffer) bool {
	if q.Class != "" && q.Class != o.Class || q.Region != "" && q.Region != regionOf(o) ||
		q.Currency != "" && q.Currency != o.Currency {
		return false
	}
	for name, most := range q.MaxPrices {
		if value := hourPrice(o, name); value == nil || value.Cmp(most) > 0 {
			return false
		}
	}
	return true
}

// Row is an Offer and whose it is.
type Row struct {
	Provider *rest.FederationProvider
	*rest.FederationOffer
}

// The orders of rows.
const (
	ByProvider, ByPrice, ByAvailable = "", "price", "available"
)

// Orders are all orders of rows.
var Orders = []string{ByProvider, ByPrice, ByAvailable}

// Rows returns the Offers of all providers in an order: by provider and class; by the price of a resource for an hour,
// with the currencies one after the other; or by what is available of it, the most first. Offers without one come last.
func Rows(providers []rest.FederationProvider, order string, of corev1.ResourceName) (all []Row) {
	for i := range providers {
		for j := range providers[i].Offers {
			all = append(all, Row{&providers[i], &providers[i].Offers[j]})
		}
	}
	switch order {
	case ByPrice:
		slices.SortStableFunc(all, func(a, b Row) int {
			x, y := hourPrice(a.FederationOffer, of), hourPrice(b.FederationOffer, of)
			if x == nil || y == nil {
				return compareBool(x == nil, y == nil)
			}
			return cmp.Or(cmp.Compare(a.Currency, b.Currency), x.Cmp(y))
		})
	case ByAvailable:
		slices.SortStableFunc(all, func(a, b Row) int {
			x, y := a.Available[of], b.Available[of]
			return cmp.Or(compareBool(a.Expired, b.Expired), y.Cmp(x.Quantity))
		})
	}
	return all
}

// compareBool compares false as less than true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
