package grant

import (
	"strings"
	"testing"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// pooled returns a policy of all virtual nodes.
func pooled() offer.Policy {
	return gold(func(p *offer.Policy) { p.Nodes.Selection.Peers = &capacity.Peers{Depth: 1} })
}

func TestWhatAPeerGivesIsNotGrantedToIt(t *testing.T) {
	w := newWorld(pooled()).node("own", "a", cpu(50)).node("from-rome", "a", cpu(6), "rome").node("from-milan", "a", cpu(4), "milan")
	w.slice(asking("rome", "rome", 1, 20))
	answers := w.settle(t)
	w.want(t, "rome cpu=4")
	if text := answers[0].Explain(""); !strings.Contains(text, "gives this cluster at most 4m: the rest of the pool is what this cluster itself gives to the provider") {
		t.Errorf("the answer is explained as %q", text)
	}

	// Others may have all of it, also after Rome.
	w.slice(asking("oslo", "oslo", 2, 20))
	w.settle(t)
	w.want(t, "rome cpu=4; oslo cpu=6")
}

// What others were granted may be used on the nodes of Milan, so that it cannot be granted to Rome too.
func TestAGiverIsGrantedWhatIsLeftOfTheNodesOfOthers(t *testing.T) {
	w := newWorld(pooled()).node("from-rome", "a", cpu(6), "rome").node("from-milan", "a", cpu(4), "milan")
	w.slice(asking("oslo", "oslo", 1, 3)).slice(asking("rome", "rome", 2, 20))
	w.settle(t)
	w.want(t, "oslo cpu=3; rome cpu=1")

	// Once the pods of Oslo run on Rome's nodes, those of Milan are free.
	w.pod("pod", "from-rome", "oslo", cpu(3))
	w.slices[0].Used = cpu(3)
	w.settle(t)
	w.want(t, "oslo cpu=3; rome cpu=4")
}

func TestAGiverKeepsNoMoreThanOthersGive(t *testing.T) {
	w := newWorld(pooled()).node("from-rome", "a", cpu(6), "rome").node("from-milan", "a", cpu(4), "milan")
	w.slice(asking("rome", "rome", 1, 20))
	w.settle(t)
	w.node("from-milan", "a", cpu(1), "milan")
	w.settle(t)
	w.want(t, "rome cpu=1")
}

func TestAGiverKeepsNoMoreThanOthersGiveInSeveralClasses(t *testing.T) {
	silver := pooled()
	silver.Name, silver.Class = "silver", "silver"
	w := newWorld(pooled(), silver).node("from-rome", "a", cpu(6), "rome").node("from-milan", "a", cpu(4), "milan")
	second := asking("second", "rome", 2, 2)
	second.Class = "silver"
	w.slice(asking("first", "rome", 1, 2)).slice(second)
	w.settle(t)
	w.want(t, "first cpu=2; second cpu=2")
	w.node("from-milan", "a", cpu(1), "milan")
	w.settle(t)
	w.want(t, "first cpu=1; second cpu=0")
}
