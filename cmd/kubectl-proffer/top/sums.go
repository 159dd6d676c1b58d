package top

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/api/rest"
)

// sums are amounts by resource that are being added up.
type sums rest.Amounts

func (s sums) add(amounts rest.Amounts) {
	for name, amount := range amounts {
		s.addOne(name, amount)
	}
}

func (s sums) addOne(name string, amount resource.Quantity) {
	sum := s[name].DeepCopy()
	if sum.IsZero() {
		sum = amount.DeepCopy() // The format of the first amount stays, such as that of 4Gi.
	} else {
		sum.Add(amount)
	}
	s[name] = sum
}

// orZero returns the sum of a resource.
func (s sums) orZero(name string) *resource.Quantity { return rest.Amounts(s).OrZero(name) }

// share returns how much of the whole the part is, 0 without a whole.
func share(part, whole *resource.Quantity) float64 {
	if whole == nil || whole.Sign() <= 0 {
		return 0
	}
	return part.AsApproximateFloat64() / whole.AsApproximateFloat64()
}

// percent returns how much part is of whole, rounded down, nil without a whole.
func percent(part, whole *resource.Quantity) *int {
	if whole == nil || whole.Sign() <= 0 {
		return nil
	}
	return new(int(part.AsApproximateFloat64() * 100 / whole.AsApproximateFloat64()))
}

// maxPercent bounds a percentage in a table: pods that run by another offer may be any multiple of a small one.
const maxPercent = 999

// percentText writes a percentage as in 150%, or >999%, empty for none.
func percentText(percent *int) string {
	switch {
	case percent == nil:
		return ""
	case *percent > maxPercent:
		return fmt.Sprintf(">%d%%", maxPercent)
	}
	return strconv.Itoa(*percent) + "%"
}

// positive reports whether any of the sums has more than 0 of the resource.
func positive(name string, of ...sums) bool {
	return slices.ContainsFunc(of, func(s sums) bool { sum := s[name]; return sum.Sign() > 0 })
}

// resources returns the sorted names of the resources in any of the sums.
func resources(of ...sums) []string {
	all := map[string]struct{}{}
	for _, s := range of {
		for name := range s {
			all[name] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// perKey are sums by some key.
type perKey[K comparable] map[K]sums

// sumsFor returns the sums of a key, new ones for a new key.
func (p perKey[K]) sumsFor(key K) sums {
	s, ok := p[key]
	if !ok {
		s = sums{}
		p[key] = s
	}
	return s
}
