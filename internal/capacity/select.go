package capacity

import (
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Matches reports whether the node is in the selection: usable, with matching labels, and with no taint that keeps pods away
// and is not tolerated.
func (s Selection) Matches(n *Node) bool {
	if !n.Usable || n.Virtual {
		return false
	}
	if s.Selector != nil && !s.Selector.Matches(labels.Set(n.Labels)) {
		return false
	}
	return !slices.ContainsFunc(n.Taints, func(t corev1.Taint) bool { return !s.tolerates(&t) })
}

func (s Selection) tolerates(taint *corev1.Taint) bool {
	return slices.ContainsFunc(s.Tolerations, func(t corev1.Toleration) bool {
		return t.ToleratesTaint(logr.Discard(), taint, true)
	})
}

// Key is equal for selections that are written alike, so that their pool is added up once.
func (s Selection) Key() string {
	var b strings.Builder
	if s.Selector != nil {
		b.WriteString(s.Selector.String())
		if _, selectable := s.Selector.Requirements(); !selectable {
			// A selector of nothing is written like one of everything.
			b.WriteString("!")
		}
	}
	for _, t := range s.Tolerations {
		for _, part := range []string{t.Key, string(t.Operator), t.Value, string(t.Effect)} {
			b.WriteByte(0)
			b.WriteString(part)
		}
	}
	return b.String()
}
