package providers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"proffer.dev/proffer/api/v1alpha1"
)

// term is how a KPI is written.
type term struct {
	word string
	kpi  v1alpha1.KPI
	// ofResource is set if the KPI is of a resource, which follows after a point. min is set if a requirement is the
	// least that is good.
	ofResource, min bool
}

var terms = []term{
	{word: "uptime", kpi: v1alpha1.KPIUptime, min: true},
	{word: "latency", kpi: v1alpha1.KPILatency},
	{word: "price", kpi: v1alpha1.KPIPrice, ofResource: true},
	{word: "remaining", kpi: v1alpha1.KPIRemaining, ofResource: true, min: true},
}

// kpiOf parses the name of a KPI, such as uptime or price.cpu.
func kpiOf(name string) (t term, resource v1alpha1.ResourceName, err error) {
	word, of, dotted := strings.Cut(name, ".")
	i := slices.IndexFunc(terms, func(t term) bool { return t.word == word })
	if i < 0 || dotted != terms[i].ofResource || dotted && of == "" {
		return t, "", fmt.Errorf("%q is not a KPI: "+
			"write uptime, latency, price.RESOURCE or remaining.RESOURCE, such as price.cpu", name)
	}
	return terms[i], v1alpha1.ResourceName(of), nil
}

// nameOf writes a KPI as kpiOf reads it.
func nameOf(kpi v1alpha1.KPI, resource v1alpha1.ResourceName) string {
	name := string(kpi)
	for _, t := range terms {
		if t.kpi == kpi {
			name = t.word
		}
	}
	if resource != "" {
		name += "." + string(resource)
	}
	return name
}

// parseRequire parses requirements, such as uptime=99.5,price.cpu=0.03. The broker checks their bounds.
func parseRequire(args []string) (any, error) {
	var all []v1alpha1.Requirement
	for item := range strings.SplitSeq(strings.Join(args, ","), ",") {
		at := strings.IndexAny(item, "<>=")
		if at < 0 {
			return nil, fmt.Errorf("%q has no bound: write KPI=BOUND, such as uptime=99.5", item)
		}
		t, resource, err := kpiOf(item[:at])
		if err != nil {
			return nil, err
		}
		bound, sign := strings.TrimLeft(item[at:], "<>="), "<="
		if t.min {
			sign = ">="
		}
		if written := item[at : len(item)-len(bound)]; written != "=" && written != sign || bound == "" {
			return nil, fmt.Errorf("%q is no requirement: write %s=BOUND, which means %[2]s %s BOUND", item, item[:at], sign)
		}
		r := v1alpha1.Requirement{KPI: t.kpi, Resource: resource, Max: v1alpha1.Decimal(bound)}
		if t.min {
			r.Min, r.Max = r.Max, ""
		}
		all = append(all, r)
	}
	return all, nil
}

func requireText(all []v1alpha1.Requirement) string {
	var texts []string
	for _, r := range all {
		texts = append(texts, nameOf(r.KPI, r.Resource)+"="+string(cmp.Or(r.Min, r.Max)))
	}
	return strings.Join(texts, ",")
}

// parsePrefer parses preferences with their weights, such as price.cpu=2,uptime.
func parsePrefer(args []string) (any, error) {
	var all []v1alpha1.Preference
	for item := range strings.SplitSeq(strings.Join(args, ","), ",") {
		name, weight, weighted := strings.Cut(item, "=")
		t, resource, err := kpiOf(name)
		if err != nil {
			return nil, err
		}
		p := v1alpha1.Preference{KPI: t.kpi, Resource: resource, Weight: 1}
		if weighted {
			if p.Weight, err = parseCount(weight); err != nil {
				return nil, fmt.Errorf("%q has no weight: write a number, as in %s=2", item, name)
			}
		}
		all = append(all, p)
	}
	return all, nil
}

func preferText(all []v1alpha1.Preference) string {
	var texts []string
	for _, p := range all {
		texts = append(texts, fmt.Sprintf("%s=%d", nameOf(p.KPI, p.Resource), p.Weight))
	}
	return strings.Join(texts, ",")
}

func parseCount(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number of providers: write one such as 2", text)
	}
	return int32(n), nil
}

// parseProviders checks only that there are some: the broker says which ones it has.
func parseProviders(args []string) (any, error) {
	if slices.Contains(args, "") {
		return nil, errors.New("the ID of a provider is empty")
	}
	return args, nil
}

// wish is a spec as the commands that write it, without their beginning.
func wish(s *v1alpha1.ProviderChoiceSpec) string {
	var commands []string
	if len(s.Providers) > 0 {
		ids := make([]string, len(s.Providers))
		for i, id := range s.Providers {
			ids[i] = string(id)
		}
		commands = append(commands, "choose "+strings.Join(ids, " "))
	}
	if len(s.Require) > 0 {
		commands = append(commands, "require "+requireText(s.Require))
	}
	if len(s.Prefer) > 0 {
		commands = append(commands, "prefer "+preferText(s.Prefer))
	}
	if s.Count != nil {
		commands = append(commands, fmt.Sprintf("count %d", *s.Count))
	}
	return cmp.Or(strings.Join(commands, "; "), "all that the broker allows")
}
