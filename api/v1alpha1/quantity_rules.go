package v1alpha1

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// These are the messages of the rules on Quantity and Quantities, both in config/admission and in
// the operator.
const (
	AmountNotAQuantity = "write an amount as Kubernetes does, such as 2, 500m, 16Gi or 1e3, " +
		"with an exponent of at most two digits"
	AmountNegative       = "an amount cannot be negative: write 0 or more"
	AmountTooLarge       = "an amount is at most 9223372036854775807: write a smaller amount"
	AmountTooLargeBinary = "an amount is at most 9223372036854775807, which is less than 8Ei: write a smaller amount"
	AmountTooLargeCPU    = "cpu is at most 9223372036854775807m: write a smaller amount"
	AmountTooFineCPU     = "the smallest amount of cpu is 1m: write cores or thousandths of a core, such as 2, 0.5 or 500m"
	AmountNotWhole       = "only cpu can be a fraction (m means milli, a thousandth): write a whole number, " +
		"such as 100M or 100Mi for memory, or 10 for pods"
)

// maxAmount is the maximum length of the text of a Quantity.
const maxAmount = 32

var (
	amountText = regexp.MustCompile(`^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$`)
	tooFineCPU = regexp.MustCompile(`([nu]|[.][0-9]{4,}|[.][0-9]*m|[eE]-[0-9]+)$`)
	notWhole   = regexp.MustCompile(`([num]|[.][0-9]*|[eE]-[0-9]+)$`)

	maxCPU = *resource.NewMilliQuantity(math.MaxInt64, resource.DecimalSI)
)

// amountRules are the rules of config/admission on Quantity and Quantities, in Go. The operator
// needs them because the API server does not check objects that were stored under older rules. A
// rule is evaluated only if the rules before it hold; broken reports whether an amount violates the
// rule.
var amountRules = []struct {
	message string
	broken  func(q *Quantity, text string, cpu bool) bool
}{
	{AmountNotAQuantity, func(_ *Quantity, text string, _ bool) bool {
		return len(text) > maxAmount || !amountText.MatchString(text)
	}},
	{AmountNegative, func(_ *Quantity, text string, _ bool) bool { return strings.HasPrefix(text, "-") }},
	{AmountTooLargeBinary, func(q *Quantity, text string, _ bool) bool {
		// Parsing caps larger amounts at MaxInt64.
		return strings.HasSuffix(text, "i") && q.CmpInt64(math.MaxInt64) >= 0
	}},
	{AmountTooLarge, func(q *Quantity, _ string, _ bool) bool { return q.CmpInt64(math.MaxInt64) > 0 }},
	{AmountTooLargeCPU, func(q *Quantity, _ string, cpu bool) bool { return cpu && q.Cmp(maxCPU) > 0 }},
	{AmountTooFineCPU, func(_ *Quantity, text string, cpu bool) bool { return cpu && tooFineCPU.MatchString(text) }},
	{AmountNotWhole, func(_ *Quantity, text string, cpu bool) bool { return !cpu && notWhole.MatchString(text) }},
}

// Problem returns the message of the rule that an amount of the resource violates, and "" if it
// violates none.
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

// Text returns the decoded text if Written has it, and otherwise the text that Kubernetes makes of
// the amount.
func (q *Quantity) Text() string {
	if q.Written != "" {
		return q.Written
	}
	return q.String()
}

// ParseQuantity reads an amount as it is written in an object. A text that is not one is no error:
// Problem reports it.
func ParseQuantity(text string) Quantity {
	// Parsing 1e-999999999 takes hours, and formatting 1e999999999 minutes.
	if len(text) > maxAmount || !amountText.MatchString(text) {
		return Quantity{Written: text}
	}
	parsed, err := resource.ParseQuantity(text)
	if err != nil {
		return Quantity{Written: text}
	}
	q := Quantity{Quantity: parsed}
	for _, cpu := range []bool{true, false} {
		if q.problem(text, cpu) != q.problem(q.String(), cpu) {
			q.Written = text
		}
	}
	return q
}

// UnmarshalJSON implements json.Unmarshaler. It returns no error for a text that is not a quantity,
// such as 1e2.5, because an error would prevent a client from reading all policies of a list.
func (q *Quantity) UnmarshalJSON(value []byte) error {
	var text string
	if json.Unmarshal(value, &text) != nil {
		text = string(value) // A number.
	}
	*q = ParseQuantity(text)
	return nil
}

// MarshalJSON implements json.Marshaler. It writes the decoded text if Written has it, so that an
// object that is read and written back stays valid.
func (q Quantity) MarshalJSON() ([]byte, error) {
	if q.Written != "" {
		return json.Marshal(q.Written)
	}
	return q.Quantity.MarshalJSON()
}
