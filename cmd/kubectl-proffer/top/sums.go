package top

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/api/rest"
)

// add adds amounts to sums. A sum has the format of its first amount, such as that of 4Gi.
func add(sums, amounts rest.Amounts) {
	for name, amount := range amounts {
		sum := sums[name].DeepCopy()
		sum.Add(amount)
		sums[name] = sum
	}
}

// positive reports whether there is an amount of more than 0.
func positive(amount *resource.Quantity) bool { return amount != nil && amount.Sign() > 0 }

// percent returns how much part is of whole, rounded down, nil without a whole.
func percent(part, whole *resource.Quantity) *int {
	if !positive(whole) {
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

// resources returns the sorted names of the resources in any of the sums.
func resources(of ...rest.Amounts) []string {
	all := rest.Amounts{}
	for _, sums := range of {
		maps.Copy(all, sums)
	}
	return slices.Sorted(maps.Keys(all))
}

// perKey are sums by some key.
type perKey[K comparable] map[K]rest.Amounts

// sumsFor returns the sums of a key, new ones for a new key.
func (p perKey[K]) sumsFor(key K) rest.Amounts {
	if p[key] == nil {
		p[key] = rest.Amounts{}
	}
	return p[key]
}
