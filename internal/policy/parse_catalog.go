package policy

import (
	"maps"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/offer"
)

// The rules on texts are the same as in the CRD.
var (
	titleRule    = regexp.MustCompile(`^[^\pC\pZ]([^\pC\p{Zl}\p{Zp}]*[^\pC\pZ])?$`)
	priceRule    = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})([.][0-9]{1,9})?$`)
	currencyRule = regexp.MustCompile(`^[A-Z]{3}$`)
	urlRule      = regexp.MustCompile(`^https?://[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:[0-9]{1,5})?([/?#][!-~]*)?$`)
)

// catalog returns how the class of a policy is described, also for a policy without spec.catalog.
func (p *parser) catalog(spec *v1alpha1.ResourcePolicySpec, path *field.Path) offer.Catalog {
	c := spec.Catalog
	if c == nil {
		return offer.Catalog{}
	}
	if spec.Class == "" {
		p.errs = append(p.errs, field.Forbidden(path,
			"catalog describes a class that ResourceSlices ask for: set class, or leave catalog out"))
	}
	if c.ShowProviders && spec.Offer.Peers == nil {
		p.errs = append(p.errs, field.Forbidden(path.Child("showProviders"),
			"showProviders lists who stands behind offer.peers: set offer.peers, or leave showProviders out"))
	}
	out := offer.Catalog{
		Hidden: c.Hidden, ShowProviders: c.ShowProviders,
		Title:  p.text(string(c.Title), titleRule, path.Child("title"), "write one line of text"),
		URL:    p.text(string(c.URL), urlRule, path.Child("url"), "write an address such as https://example.com/gpu"),
		Labels: p.labels(c.Labels, path.Child("labels")),
		Prices: p.prices(c.Prices, path.Child("prices")),
		Currency: p.text(string(c.Currency), currencyRule, path.Child("currency"),
			"write three capital letters, such as EUR"),
		Period: string(c.Period),
	}
	if (len(c.Prices) > 0) != (c.Currency != "") {
		p.errs = append(p.errs, field.Required(path.Child("currency"), "set both prices and currency, or neither"))
	}
	switch c.Period {
	case "":
		if len(out.Prices) > 0 {
			out.Period = string(v1alpha1.PeriodHour)
		}
	case v1alpha1.PeriodHour, v1alpha1.PeriodMonth:
		if len(c.Prices) == 0 {
			p.errs = append(p.errs, field.Forbidden(path.Child("period"), "set prices, or leave period out"))
		}
	default:
		p.invalid(path.Child("period"), c.Period, "write Hour or Month")
	}
	return out
}

func (p *parser) text(text string, rule *regexp.Regexp, path *field.Path, write string) string {
	if text != "" && !rule.MatchString(text) {
		p.invalid(path, kube.Shorten(text, kube.MaxShown), write)
	}
	return text
}

func (p *parser) prices(prices v1alpha1.Prices, path *field.Path) map[string]string {
	if len(prices) == 0 {
		return nil
	}
	out := make(map[string]string, len(prices))
	for _, key := range slices.Sorted(maps.Keys(prices)) {
		at := path.Key(string(key))
		p.resource(string(key), at)
		price := string(prices[key])
		if !priceRule.MatchString(price) {
			p.invalid(at, kube.Shorten(price, kube.MaxShown), "write a decimal number in quotes, such as 0.021")
		}
		out[string(key)] = price
	}
	return out
}
