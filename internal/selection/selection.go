// Package selection adapts Kubernetes label selectors, taints and tolerations to the values of
// package capacity, which knows no Kubernetes type. Kubernetes' own functions decide what matches.
package selection

import (
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"proffer.dev/proffer/internal/capacity"
)

// Of adapts a label selector, nil for nil.
func Of(s labels.Selector) capacity.Selector {
	if s == nil {
		return nil
	}
	return selector{s}
}

type selector struct{ labels.Selector }

// Matches implements capacity.Selector.
func (s selector) Matches(l map[string]string) bool { return s.Selector.Matches(labels.Set(l)) }

// Keys implements capacity.Selector.
func (s selector) Keys() []string {
	requirements, _ := s.Requirements()
	keys := make([]string, len(requirements))
	for i := range requirements {
		keys[i] = requirements[i].Key()
	}
	return keys
}

// String implements capacity.Selector. Kubernetes writes the selector that matches nothing like the one
// that matches everything.
func (s selector) String() string {
	if _, selectable := s.Requirements(); !selectable {
		return "<nothing>"
	}
	return s.Selector.String()
}

// Tolerations adapts tolerations, nil for none.
func Tolerations(all []corev1.Toleration) []capacity.Toleration {
	var out []capacity.Toleration
	for _, t := range all {
		out = append(out, toleration{t})
	}
	return out
}

type toleration struct{ corev1.Toleration }

// Tolerates implements capacity.Toleration.
func (t toleration) Tolerates(taint capacity.Taint) bool {
	converted := corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: corev1.TaintEffect(taint.Effect)}
	return t.ToleratesTaint(logr.Discard(), &converted, true)
}

// String implements capacity.Toleration. How long a taint is tolerated does not matter.
func (t toleration) String() string {
	return strings.Join([]string{t.Key, string(t.Operator), t.Value, string(t.Effect)}, "\x00")
}

// Taints converts taints, nil for none. The time they were added is lost.
func Taints(all []corev1.Taint) []capacity.Taint {
	var out []capacity.Taint
	for _, t := range all {
		out = append(out, capacity.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	return out
}
