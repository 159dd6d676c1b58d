package kube

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

func TestOnEventsSetsExistingObjectsAndRemovesDeletedOnes(t *testing.T) {
	pod := func(uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: uid}}
	}
	for _, tc := range []struct {
		name string
		do   func(toolscache.ResourceEventHandler)
		want []string
	}{
		{"added", func(h toolscache.ResourceEventHandler) { h.OnAdd(pod("a"), true) }, []string{"set a"}},
		{"updated", func(h toolscache.ResourceEventHandler) { h.OnUpdate(pod("a"), pod("a")) }, []string{"set a"}},
		{"replaced while the watch was interrupted", func(h toolscache.ResourceEventHandler) {
			h.OnUpdate(pod("a"), pod("b"))
		}, []string{"remove a", "set b"}},
		{"deleted", func(h toolscache.ResourceEventHandler) { h.OnDelete(pod("a")) }, []string{"remove a"}},
		{"deleted while the watch was interrupted", func(h toolscache.ResourceEventHandler) {
			h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "p", Obj: pod("a")})
		}, []string{"remove a"}},
		{"a tombstone without an object",
			func(h toolscache.ResourceEventHandler) { h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "p"}) }, nil},
		{"an object of another kind", func(h toolscache.ResourceEventHandler) {
			h.OnAdd(&corev1.Node{}, false)
			h.OnUpdate(&corev1.Node{}, &corev1.Node{})
			h.OnDelete(&corev1.Node{})
			h.OnDelete(nil)
		}, nil},
	} {
		var got []string
		tc.do(OnEvents(
			func(p *corev1.Pod) { got = append(got, "set "+string(p.UID)) },
			func(p *corev1.Pod) { got = append(got, "remove "+string(p.UID)) },
		))
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %s", tc.name, cmp.Diff(tc.want, got))
		}
	}
}
