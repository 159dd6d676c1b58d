package v1alpha1

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// What is wrong with an amount, and what to write: the words of the rules on Quantity and Quantities, whoever applies them.
const (
	AmountNotAQuantity   = "write an amount as Kubernetes does, such as 2, 500m, 16Gi or 1e3, with an exponent of at most two digits"
	AmountNegative       = "an amount is not negative: write 0 or more"
	AmountTooLarge       = "an amount is at most 9223372036854775807: write less"
	AmountTooLargeBinary = "an amount is at most 9223372036854775807, which is less than 8Ei: write less"
	AmountTooLargeCPU    = "cpu is at most 9223372036854775807m: write less"
	AmountTooFineCPU     = "cpu is counted down to 1m: write cores or thousandths of a core, such as 2, 0.5 or 500m"
	AmountNotWhole       = "only cpu can be less than a whole unit (m is milli, a thousandth): write a whole number, such as 100M or 100Mi for memory, 10 for pods"
)

// maxAmount is how long the text of a Quantity is at most.
const maxAmount = 32

var (
	amountText = regexp.MustCompile(`^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$`)
	tooFineCPU = regexp.MustCompile(`([nu]|[.][0-9]{4,}|[.][0-9]*m|[eE]-[0-9]+)$`)
	notWhole   = regexp.MustCompile(`([num]|[.][0-9]*|[eE]-[0-9]+)$`)

	maxCPU = *resource.NewMilliQuantity(math.MaxInt64, resource.DecimalSI)
)

// amountRules are the rules on Quantity and Quantities as the API server has them, in Go: what was stored under older rules is not checked when
// it is read. Each says what breaks it; those before it hold.
var amountRules = []struct {
	message string
	broken  func(q *Quantity, text string, cpu bool) bool
}{
	{AmountNotAQuantity, func(_ *Quantity, text string, _ bool) bool {
		return len(text) > maxAmount || !amountText.MatchString(text)
	}},
	{AmountNegative, func(_ *Quantity, text string, _ bool) bool { return strings.HasPrefix(text, "-") }},
	{AmountTooLargeBinary, func(q *Quantity, text string, _ bool) bool {
		return strings.HasSuffix(text, "i") && q.CmpInt64(math.MaxInt64) >= 0 // Where it would be more, it has been cut to that.
	}},
	{AmountTooLarge, func(q *Quantity, _ string, _ bool) bool { return q.CmpInt64(math.MaxInt64) > 0 }},
	{AmountTooLargeCPU, func(q *Quantity, _ string, cpu bool) bool { return cpu && q.Cmp(maxCPU) > 0 }},
	{AmountTooFineCPU, func(_ *Quantity, text string, cpu bool) bool { return cpu && tooFineCPU.MatchString(text) }},
	{AmountNotWhole, func(_ *Quantity, text string, cpu bool) bool { return !cpu && notWhole.MatchString(text) }},
}

// Problem says what is wrong with an amount of a resource, in the words of the API server; empty if nothing is.
func (q *Quantity) Problem(name corev1.ResourceName) string {
	return q.problem(q.Text(), name == corev1.ResourceCPU)
}

func (q *Quantity) problem(text string, cpu bool) string {
	for _, rule := range amountRules {
		if rule.broken(q, text, cpu) {
			return rule.message
		}
	}
	return ""
}

// Text is the amount as it was written, as far as that matters, and else as Kubernetes writes it.
func (q *Quantity) Text() string {
	if q.Written != "" {
		return q.Written
	}
	return q.String()
}

// UnmarshalJSON implements json.Unmarshaler. A text that is no quantity, such as 1e2.5, is no error: it would keep a client from reading
// all the other policies of a list. Problem says what is wrong with it.
func (q *Quantity) UnmarshalJSON(value []byte) error {
	var text string
	if json.Unmarshal(value, &text) != nil {
		text = string(value) // A number.
	}
	q.Written = ""
	if err := q.Quantity.UnmarshalJSON(value); err != nil {
		q.Quantity, q.Written = resource.Quantity{}, text
		return nil //nolint:nilerr // Problem reports it.
	}
	if !amountText.MatchString(text) { // The amount of such a text may take minutes to write.
		q.Written = text
		return nil
	}
	for _, cpu := range []bool{true, false} {
		if q.problem(text, cpu) != q.problem(q.String(), cpu) {
			q.Written = text
		}
	}
	return nil
}

// MarshalJSON implements json.Marshaler: what may be written is what is sent back.
func (q Quantity) MarshalJSON() ([]byte, error) {
	if q.Written != "" {
		return json.Marshal(q.Written)
	}
	return q.Quantity.MarshalJSON()
}
