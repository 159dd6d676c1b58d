package providers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// term is how a KPI is written.
type term struct {
	word string
	kpi  v1alpha1.KPI
	// of is what the KPI is of, which follows after a point: a resource, or the name of a measurement. It is empty
	// for a KPI of the provider. sign is the one of a requirement, empty for either.
	of, sign string
}

const (
	ofResource, ofName = "RESOURCE", "NAME"
	atMost, atLeast    = "<=", ">="
)

var terms = []term{
	{word: "uptime", kpi: v1alpha1.KPIUptime, sign: atLeast},
	{word: "latency", kpi: v1alpha1.KPILatency, sign: atMost},
	{word: "price", kpi: v1alpha1.KPIPrice, of: ofResource, sign: atMost},
	{word: "remaining", kpi: v1alpha1.KPIRemaining, of: ofResource, sign: atLeast},
	{word: "measured", kpi: v1alpha1.KPIMeasured, of: ofName},
}

// higher follows the name of a measurement in a preference for large values.
const higher = ".higher"

// kpi is a KPI of a requirement or of a preference.
type kpi struct {
	term
	resource v1alpha1.ResourceName
	name     v1alpha1.MeasureName
}

// kpiOf parses the name of a KPI, such as uptime or price.cpu.
func kpiOf(text string) (k kpi, err error) {
	word, of, dotted := strings.Cut(text, ".")
	i := slices.IndexFunc(terms, func(t term) bool { return t.word == word })
	if i < 0 || dotted != (terms[i].of != "") || dotted && of == "" {
		return k, fmt.Errorf("%q is not a KPI: "+
			"write uptime, latency, price.RESOURCE, remaining.RESOURCE or measured.NAME, such as price.cpu", text)
	}
	switch k.term = terms[i]; k.of {
	case ofResource:
		k.resource = v1alpha1.ResourceName(of)
	case ofName:
		k.name = v1alpha1.MeasureName(of)
	}
	return k, nil
}

// nameOf writes a KPI as kpiOf reads it.
func nameOf(kpi v1alpha1.KPI, resource v1alpha1.ResourceName, measure v1alpha1.MeasureName) string {
	name := string(kpi)
	for _, t := range terms {
		if t.kpi == kpi {
			name = t.word
		}
	}
	if of := cmp.Or(string(resource), string(measure)); of != "" {
		name += "." + of
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
		k, err := kpiOf(item[:at])
		if err != nil {
			return nil, err
		}
		bound := strings.TrimLeft(item[at:], "<>=")
		sign, err := k.signOf(item[:at], item[at:len(item)-len(bound)], bound)
		if err != nil {
			return nil, err
		}
		r := v1alpha1.Requirement{KPI: k.kpi, Resource: k.resource, Name: k.name, Max: v1alpha1.Decimal(bound)}
		if sign == atLeast {
			r.Min, r.Max = r.Max, ""
		}
		all = append(all, r)
	}
	return all, nil
}

// signOf returns whether a bound is the least or the most, given what is written before it.
func (k *kpi) signOf(name, written, bound string) (string, error) {
	switch {
	case bound != "" && (written == k.sign || written == "=" && k.sign != ""):
		return k.sign, nil
	case bound != "" && k.sign == "" && (written == atMost || written == atLeast):
		return written, nil
	case k.sign == "":
		return "", fmt.Errorf("%q is no requirement: write %s<=BOUND or %[2]s>=BOUND", name+written+bound, name)
	}
	return "", fmt.Errorf("%q is no requirement: write %s=BOUND, which means %[2]s %s BOUND",
		name+written+bound, name, k.sign)
}

func requireText(all []v1alpha1.Requirement) string {
	var texts []string
	for _, r := range all {
		sign := "="
		if r.KPI == v1alpha1.KPIMeasured {
			if sign = atMost; r.Min != "" {
				sign = atLeast
			}
		}
		texts = append(texts, nameOf(r.KPI, r.Resource, r.Name)+sign+string(cmp.Or(r.Min, r.Max)))
	}
	return strings.Join(texts, ",")
}

// parsePrefer parses preferences with their weights, such as price.cpu=2,uptime,measured.score.higher.
func parsePrefer(args []string) (any, error) {
	var all []v1alpha1.Preference
	for item := range strings.SplitSeq(strings.Join(args, ","), ",") {
		name, weight, weighted := strings.Cut(item, "=")
		k, err := kpiOf(name)
		if err != nil {
			return nil, err
		}
		p := v1alpha1.Preference{KPI: k.kpi, Resource: k.resource, Name: k.name, Weight: 1}
		if before, more := strings.CutSuffix(string(k.name), higher); more {
			p.Name, p.Better = v1alpha1.MeasureName(before), v1alpha1.BetterHigher
		}
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
		name := nameOf(p.KPI, p.Resource, p.Name)
		if p.Better == v1alpha1.BetterHigher {
			name += higher
		}
		texts = append(texts, fmt.Sprintf("%s=%d", name, p.Weight))
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

// parseProviders parses IDs, which may have commas between them like all other terms. The broker says which ones it
// has.
func parseProviders(args []string) (any, error) {
	ids := strings.Split(strings.Join(args, ","), ",")
	if slices.Contains(ids, "") {
		return nil, errors.New("the ID of a provider is empty: write the IDs with a space or a comma between them")
	}
	return ids, nil
}

// joined returns IDs in one text.
func joined(ids []v1alpha1.ClusterID, separator string) string {
	return strings.Join(output.Texts(ids, func(id v1alpha1.ClusterID) string { return string(id) }), separator)
}

// wish is a spec as the commands that write it, without their beginning.
func wish(s *v1alpha1.ProviderChoiceSpec) string {
	var commands []string
	if len(s.Providers) > 0 {
		commands = append(commands, "choose "+joined(s.Providers, " "))
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
