package external

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/quantity"
	wire "proffer.dev/proffer/proto/resourcereader"
)

const (
	// MaxResources bounds the names in an answer, and those in all answers of a monitor at any time.
	MaxResources = 64
	// maxShownPools bounds the pools that an error names, maxShownText the characters of each text of a
	// monitor in an error.
	maxShownPools, maxShownText = 5, 64
	// maxAmount bounds the text of an amount.
	maxAmount = 32
)

// amountText matches what may be parsed: parsing 1e-999999999 takes hours.
var amountText = regexp.MustCompile(`^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$`)

// choose returns the pool of an answer that counts for a class: the only one, or else the one whose
// prefix or name is the class. For the unnamed class that is the one with neither.
func choose(pools []*wire.ResourceList, class string) (*wire.ResourceList, error) {
	switch len(pools) {
	case 0:
		return nil, errors.New("it answers no pools")
	case 1:
		return pools[0], nil
	}
	var fit []*wire.ResourceList
	for _, p := range pools {
		prefix, name := p.GetPoolPrefix(), p.GetPoolName()
		if prefix == class && (name == "" || class != "") || name == class && class != "" {
			fit = append(fit, p)
		}
	}
	if len(fit) == 1 {
		return fit[0], nil
	}
	want := fmt.Sprintf("%d of them have the class %s as pool_prefix or pool_name", len(fit), class)
	if class == "" {
		want = fmt.Sprintf("%d of them have no name", len(fit))
	}
	return nil, fmt.Errorf("it answers %d pools (%s), and %s: exactly one must", len(pools), poolNames(pools), want)
}

// poolNames lists the first pools of an answer.
func poolNames(pools []*wire.ResourceList) string {
	var names []string
	for _, p := range pools[:min(len(pools), maxShownPools)] {
		name := p.GetPoolPrefix()
		if name == "" {
			name = p.GetPoolName()
		}
		names = append(names, shown(name))
	}
	if len(pools) > maxShownPools {
		names = append(names, "...")
	}
	return strings.Join(names, ", ")
}

// shown returns a text of a monitor as it stands in an error.
func shown(text string) string { return fmt.Sprintf("%.*q", maxShownText, text) }

// parse returns the amounts of an answer. An answer with anything that cannot be used is an error: a
// part of it could take from a consumer what the monitor never withdrew.
func parse(resources map[string]*wire.Quantity) (capacity.Amounts, error) {
	switch {
	case len(resources) == 0:
		return nil, errors.New("it answers no resources")
	case len(resources) > MaxResources:
		return nil, fmt.Errorf("it answers %d resources: at most %d can be used", len(resources), MaxResources)
	}
	amounts := make(capacity.Amounts, len(resources))
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		if len(validation.IsQualifiedName(name)) > 0 {
			return nil, fmt.Errorf("it answers %s, which is not the name of a resource", shown(name))
		}
		if resources[name] == nil || resources[name].String_ == nil {
			return nil, fmt.Errorf("it answers %s without an amount", name)
		}
		text := resources[name].GetString_()
		if len(text) > maxAmount || !amountText.MatchString(text) {
			return nil, fmt.Errorf("it answers %s of %s, which is not an amount", shown(text), name)
		}
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("it answers %s of %s, which is not an amount: %w", shown(text), name, err)
		}
		if q.Sign() < 0 {
			return nil, fmt.Errorf("it answers %s of %s, which is negative", text, name)
		}
		amounts[strings.Clone(name)] = quantity.AmountOf(name, q, quantity.Down)
	}
	return amounts, nil
}
