package v1alpha1_test

import (
	"strings"
)

const (
	priceMessage    = `write a decimal number in quotes, with at most nine digits on each side of the point, such as "0.021"`
	currencyMessage = "write the three capital letters of ISO 4217, such as EUR"
	urlMessage      = "write an address that begins with https:// or http://, without spaces, such as https://example.com/gpu"
	titleMessage    = "write one line of text, without control characters, and without a space first or last"
)

var catalogRules = []rule{
	{
		name:    "only a class is in the catalog",
		valid:   []string{cataloged("{}"), cataloged("{hidden: true}"), cataloged("{title: Nodes with A100, labels: {region: eu}}")},
		invalid: fixedOffer + "\ncatalog: {}",
		want:    `spec: Invalid value: catalog describes a class that ResourceSlices ask for: set class, or leave catalog out`,
	},
	{
		name:    "providers stand behind peers",
		valid:   []string{"class: gold\noffer: {peers: {}}\ncatalog: {showProviders: true}", cataloged("{showProviders: false}")},
		invalid: cataloged("{showProviders: true}"),
		want:    `spec: Invalid value: showProviders lists who stands behind offer.peers: set offer.peers, or leave showProviders out`,
	},
	{
		name:    "prices have a currency",
		valid:   []string{cataloged(`{prices: {cpu: "0.021", nvidia.com/gpu: "1.85"}, currency: EUR}`)},
		invalid: cataloged(`{prices: {cpu: "1"}}`),
		want:    `spec.catalog: Invalid value: prices have a currency: set both prices and currency, or neither`,
	},
	{
		name:    "a period is that of prices",
		valid:   []string{cataloged(`{prices: {cpu: "1"}, currency: EUR, period: Month}`)},
		invalid: cataloged(`{period: Hour}`),
		want:    `spec.catalog: Invalid value: period is the time that the prices are for: set prices, or leave period out`,
	},
	{
		name:    "a period is an hour or a month",
		invalid: cataloged(`{prices: {cpu: "1"}, currency: EUR, period: Day}`),
		want:    `spec.catalog.period: Unsupported value: "Day": supported values: "Hour", "Month"`,
	},
	{
		name:    "a price is a decimal number",
		valid:   []string{priced("0"), priced("0.000000001"), priced("999999999.999999999")},
		invalid: priced("-1"),
		want:    `spec.catalog.prices[cpu]: Invalid value: "-1": ` + priceMessage,
	},
	{
		name:    "a price has no exponent",
		invalid: priced("1e9"),
		want:    `spec.catalog.prices[cpu]: Invalid value: "1e9": ` + priceMessage,
	},
	{
		name:    "a price is not too long",
		invalid: priced(strings.Repeat("1", 21)),
		want:    `spec.catalog.prices.cpu: Too long: may not be more than 20 bytes`,
	},
	{
		name:    "there are prices",
		invalid: cataloged(`{prices: {}, currency: EUR}`),
		want:    `spec.catalog.prices: Invalid value: 0: spec.catalog.prices in body should have at least 1 properties`,
	},
	{
		name:    "at most 64 prices",
		invalid: cataloged(`{prices: {` + numberedPairs("example.com/r", 65, `"1"`) + `}, currency: EUR}`),
		want:    `spec.catalog.prices: Too many: 65: must have at most 64 items`,
	},
	{
		name:    "prices are of resources",
		invalid: cataloged(`{prices: {a b: "1"}, currency: EUR}`),
		want:    `spec.catalog.prices: Invalid value: a key is the name of a resource, such as cpu, memory, pods or nvidia.com/gpu`,
	},
	{
		name:    "prices are of resources that Kubernetes has",
		invalid: cataloged(`{prices: {gpu: "1"}, currency: EUR}`),
		want:    `spec.catalog.prices[gpu]: Invalid value: "gpu": write nvidia.com/gpu; a resource of your own has a domain, such as example.com/gpu`,
	},
	{
		name:    "a currency is a code",
		invalid: cataloged(`{prices: {cpu: "1"}, currency: eur}`),
		want:    `spec.catalog.currency: Invalid value: "eur": ` + currencyMessage,
	},
	{
		name:    "a currency is not longer",
		invalid: cataloged(`{prices: {cpu: "1"}, currency: EURO}`),
		want:    `spec.catalog.currency: Invalid value: "EURO": ` + currencyMessage,
	},
	{
		name:    "a URL is a web address",
		valid:   []string{cataloged(`{url: "https://example.com/gpu?a=b#c"}`), cataloged(`{url: "http://10.0.0.1:8080"}`)},
		invalid: cataloged(`{url: "javascript:alert(1)"}`),
		want:    `spec.catalog.url: Invalid value: "javascript:alert(1)": ` + urlMessage,
	},
	{
		name:    "a URL names its host and no user",
		invalid: cataloged(`{url: "https://user@example.com"}`),
		want:    `spec.catalog.url: Invalid value: "https://user@example.com": ` + urlMessage,
	},
	{
		name:    "a URL is not too long",
		invalid: cataloged(`{url: "https://example.com/` + strings.Repeat("a", 1005) + `"}`),
		want:    `spec.catalog.url: Too long: may not be more than 1024 bytes`,
	},
	{
		name:    "a title is one line",
		valid:   []string{cataloged(`{title: "Nœuds A100 — 80 Go"}`), cataloged(`{title: a}`)},
		invalid: cataloged(`{title: "a\nb"}`),
		want:    `spec.catalog.title: Invalid value: "a\nb": ` + titleMessage,
	},
	{
		name:    "a title has no characters that change the direction of the text",
		invalid: cataloged(`{title: "a\u202eb"}`),
		want:    `spec.catalog.title: Invalid value: "a\u202eb": ` + titleMessage,
	},
	{
		name:    "a title is not too long",
		invalid: cataloged(`{title: "` + strings.Repeat("t", 129) + `"}`),
		want:    `spec.catalog.title: Too long: may not be more than 128 bytes`,
	},
	{
		name:    "the message of a filter is one line",
		valid:   []string{inClass(`{filter: "request.age < duration('1h')", filterMessage: "Ask again — or write to us"}`), inClass(`{filterMessage: a}`)},
		invalid: inClass(`{filterMessage: "a\nb"}`),
		want:    `spec.slices.filterMessage: Invalid value: "a\nb": ` + titleMessage,
	},
	{
		name:    "the message of a filter is not too long",
		invalid: inClass(`{filterMessage: "` + strings.Repeat("t", 257) + `"}`),
		want:    `spec.slices.filterMessage: Too long: may not be more than 256 bytes`,
	},
	{
		name:    "a filter of slices is not too long",
		invalid: inClass(`{filter: "` + strings.Repeat("t", 1025) + `"}`),
		want:    `spec.slices.filter: Too long: may not be more than 1024 bytes`,
	},
	{
		name:    "labels of the catalog have keys of labels",
		invalid: cataloged("{labels: {a b: c}}"),
		want:    `spec.catalog.labels: Invalid value: a key is the key of a label, such as tier or example.com/tier`,
	},
}

func inClass(slices string) string { return "class: gold\n" + fixedOffer + "\nslices: " + slices }

func cataloged(catalog string) string { return "class: gold\n" + fixedOffer + "\ncatalog: " + catalog }

func priced(price string) string {
	return cataloged(`{prices: {cpu: "` + price + `"}, currency: EUR}`)
}
