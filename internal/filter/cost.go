package filter

import (
	"math"
	"math/bits"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/library"
)

// pricing accounts for calls as Kubernetes does, and for what takes longer than Kubernetes says by what it
// takes: to compare lists and maps, to look for something in a list or text, and to read numbers.
type pricing struct {
	library.CostEstimator
	// instructions counts the instructions of each regular expression of the program.
	instructions map[string]int
}

// CallCost implements interpreter.ActualCostEstimator.
func (p *pricing) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	known, least := p.CostEstimator.CallCost(function, overload, args, result), p.leastCost(function, args)
	if least == 0 || known != nil && *known >= least {
		return known
	}
	return &least
}

// leastCost returns what a call costs at least, 0 for what Kubernetes says.
func (p *pricing) leastCost(function string, args []ref.Val) uint64 {
	if len(args) == 0 {
		return 0
	}
	switch function {
	case operators.Equals, operators.NotEquals:
		if isCollection(args[0]) && sizeOf(args[0]) == sizeOf(args[1]) { // Others differ at once.
			return comparisons(args[0])
		}
	case operators.In:
		if isCollection(args[0]) {
			return comparisons(args[1])
		}
	case "indexOf", "lastIndexOf":
		if text, ok := args[0].(types.String); ok && len(args) > 1 {
			return traversal(sizeOf(text)) * traversal(sizeOf(args[1]))
		}
		return comparisons(args[0])
	case "includes":
		return comparisons(args[0])
	case "isSorted", "sum", "min", "max", "slice", "reverse", "charAt", "int", "uint", "double", "duration", "timestamp":
		if isCollection(args[0]) {
			return sizeOf(args[0])
		}
		return traversal(sizeOf(args[0]))
	case "sort":
		size := sizeOf(args[0])
		return size * uint64(bits.Len64(size))
	case "matches", "find":
		if pattern, ok := args[len(args)-1].(types.String); ok {
			return traversal(1+sizeOf(args[0])) * uint64(p.instructions[string(pattern)]) / instructionsPerUnit
		}
	}
	return 0
}

// instructionsPerUnit is how many instructions of a regular expression ten characters may take for a unit.
const instructionsPerUnit = 8

// traversal returns what it costs to read a text of this size.
func traversal(size uint64) uint64 {
	return uint64(math.Ceil(float64(size) * common.StringTraversalCostFactor))
}

func isCollection(v ref.Val) bool {
	switch v := v.(type) {
	case traits.Lister, traits.Mapper:
		return true
	case *types.Optional:
		return v.HasValue() && isCollection(v.GetValue())
	}
	return false
}

// sizeOf returns the number of elements of a list or map, or of characters of a text, 1 of anything else.
func sizeOf(v ref.Val) uint64 {
	switch v := v.(type) {
	case traits.Sizer:
		if size, ok := v.Size().(types.Int); ok {
			return uint64(size)
		}
	case *types.Optional:
		if v.HasValue() {
			return sizeOf(v.GetValue())
		}
	}
	return 1
}

// comparisons returns how many values of a list or map, and of those in it, are compared at most when it is
// compared with another. It stops to count at CostLimit.
func comparisons(v ref.Val) (n uint64) {
	switch v := v.(type) {
	case *ordered: // Its values are no collections.
		return 1 + sizeOf(v)
	case traits.Mapper:
		for it := v.Iterator(); n <= CostLimit && it.HasNext() == types.True; {
			n += comparisons(v.Get(it.Next()))
		}
	case traits.Lister:
		for it := v.Iterator(); n <= CostLimit && it.HasNext() == types.True; {
			n += comparisons(it.Next())
		}
	case *types.Optional:
		if v.HasValue() {
			return comparisons(v.GetValue())
		}
	}
	return 1 + n
}
