package policy

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
)

// amountFields are the names of the fields that hold amounts, wherever they are in a spec.
var amountFields = []string{"fixed", "max", "reserve", "defaults"}

// maxWritten bounds the amounts that CheckWritten names.
const maxWritten = 20

// CheckWritten refuses amounts of a policy that was decoded from YAML or JSON into maps, which the API server
// refuses without a word on what to write, or of which the type of an amount does not keep how it was written.
func CheckWritten(object map[string]any) error {
	var errs []error
	checkWritten(object["spec"], field.NewPath("spec"), &errs)
	return errors.Join(errs...)
}

func checkWritten(value any, at *field.Path, errs *[]error) {
	if len(*errs) >= maxWritten {
		return
	}
	switch v := value.(type) {
	case []any:
		for i := range v {
			checkWritten(v[i], at.Index(i), errs)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			amounts, are := v[key].(map[string]any)
			if !are || !slices.Contains(amountFields, key) {
				checkWritten(v[key], at.Child(key), errs)
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(amounts)) {
				if len(*errs) >= maxWritten {
					return
				}
				if problem := writtenProblem(name, amounts[name]); problem != "" {
					shown := kube.Shorten(fmt.Sprint(amounts[name]), kube.MaxShown)
					*errs = append(*errs, field.Invalid(at.Child(key).Key(name), shown, problem))
				}
			}
		}
	}
}

// writtenProblem returns what to write instead of an amount, empty for one that is valid.
func writtenProblem(name string, value any) string {
	switch v := value.(type) {
	case float64:
		if v == math.Trunc(v) {
			return "" // Such as 1e3, which JSON has as 1000.
		}
		problem := "an amount with a decimal point is a text: quote it"
		if milli := v * 1000; name == string(corev1.ResourceCPU) && v > 0 && milli == math.Trunc(milli) {
			problem += ", or write " + strconv.FormatInt(int64(milli), 10) + "m"
		}
		return problem
	case string:
		amount := v1alpha1.ParseQuantity(v)
		return amount.Problem(corev1.ResourceName(name))
	}
	return ""
}
