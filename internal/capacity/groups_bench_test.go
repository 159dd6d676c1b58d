package capacity

import (
	"fmt"
	"testing"
)

// An event of a pod costs the same with many other pods on the virtual nodes of its group.
func BenchmarkPodOnGroup(b *testing.B) {
	for _, of := range []struct {
		name       string
		selections []Selection
	}{{"reselling", []Selection{{Peers: &Peers{Depth: 1}}}}, {"not reselling", []Selection{{}}}} {
		for _, pods := range []int{10, 10_000} {
			b.Run(fmt.Sprintf("%s, %d pods", of.name, pods), func(b *testing.B) {
				l := NewLedger()
				for _, name := range []string{"n1", "n2"} {
					l.SetNode(Node{Name: name, State: Ready, Virtual: true, Peer: "milan", Allocatable: Amounts{CPU: 1 << 40, Memory: 1 << 40, Pods: 1 << 20}})
				}
				l.SetGroups([]NodeGroup{{Key: "a/s", Nodes: []string{"n1", "n2"}, Peer: "milan", Given: Amounts{CPU: 1 << 40, Memory: 1 << 40, Pods: 1 << 20}}})
				l.View(of.selections)
				for i := range pods {
					l.SetPod(Pod{Key: fmt.Sprint(i), Node: []string{"n1", "n2"}[i%2], Consumer: "rome", Requests: Amounts{CPU: 100, Memory: 1 << 20}})
				}
				b.ResetTimer()
				for i := range b.N {
					l.SetPod(Pod{Key: "changing", Node: "n1", Consumer: "rome", Requests: Amounts{CPU: 100 + int64(i%2), Memory: 1 << 20}})
				}
			})
		}
	}
}
