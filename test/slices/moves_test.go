package slices

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

const (
	// movers is the number of slices that move. Each requests 1 cpu, together more than the nodes
	// have.
	movers = 50
	// moveKills is how often the operator is killed, unless moveKillsEnv says otherwise.
	moveKills    = 4
	moveKillsEnv = "PROFFER_LAB_KILLS"
	// movesBetween is the number of moves between two kills.
	movesBetween = 25
)

// Slices move between two classes with separate nodes while the operator is killed again and again.
// What is accepted in a class never exceeds its nodes, including slices that have left the class
// and have no new answer yet.
func TestSlicesThatMoveDuringKillsAreNeverGrantedTwice(t *testing.T) {
	kills := moveKills
	if text := os.Getenv(moveKillsEnv); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s=%q is not a number", moveKillsEnv, text)
		}
	}
	capacity := map[string]int64{"gold": 16, "silver": 8}
	for class, cpu := range capacity {
		newNode(t, class, amounts{"cpu": fmt.Sprint(cpu), "memory": "64Gi", "pods": "200"})
		newPolicy(t, class, fmt.Sprintf("{class: %s, offer: {nodes: {selector: {matchLabels: {pool: %s}}}}}", class, class))
	}
	committed := watchCommitments(t, capacity)
	all := make([]slice, movers)
	var creating errgroup.Group
	creating.SetLimit(8)
	t.Cleanup(func() {
		var leaving errgroup.Group
		for _, s := range all {
			leaving.Go(func() error { s.remove(t); return nil })
		}
		_ = leaving.Wait()
	})
	classOf := make([]string, movers)
	for i := range all {
		all[i] = slice{[]*lab.Cluster{rome, oslo, bern}[i%3], fmt.Sprint("mover-", i)}
		classOf[i] = []string{"gold", "silver"}[i%2]
		creating.Go(func() error {
			return all[i].create(t.Context(), classOf[i], amounts{"cpu": "1", "memory": "1Gi", "pods": "1"})
		})
	}
	lab.Must(t, creating.Wait())
	lab.Eventually(t, "the pools are granted completely", committed.full)

	for range kills {
		var killing errgroup.Group
		killing.Go(func() error { return killOperator(t.Context()) })
		for range movesBetween {
			i := rand.IntN(movers)
			classOf[i] = map[string]string{"gold": "silver", "silver": "gold"}[classOf[i]]
			all[i].move(t, classOf[i])
		}
		lab.Must(t, killing.Wait())
	}
	requested := map[string]int64{}
	for _, class := range classOf {
		requested[class]++
	}
	committed.expect(requested)
	lab.Eventually(t, "the pools are granted completely again", committed.full)
	committed.mu.Lock()
	defer committed.mu.Unlock()
	t.Logf("%d kills, %d answers", kills, committed.answers)
}

// killOperator ends the operator as a crash does, possibly in the middle of a write. The next one
// takes over at once.
func killOperator(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if err := provider.KillOperator(ctx); err != nil {
		return err
	}
	return provider.StartOperator(ctx)
}

// commitments is what the operator has accepted in each class, according to the history of the
// provider's API server.
type commitments struct {
	mu sync.Mutex
	// capacity is the cpu of each class, requested the cpu that is requested of it in the end.
	capacity, requested map[string]int64
	slices              map[types.UID]commitment
	answers             int
}

// commitment is the last answer to a slice, and the class of the slice at that time.
type commitment struct {
	class string
	answer
}

// watchCommitments follows the commitments until the end of the test, and fails the test if a class
// ever exceeds its cpu.
func watchCommitments(t *testing.T, capacity map[string]int64) *commitments {
	t.Helper()
	p := &commitments{capacity: capacity, requested: capacity, slices: map[types.UID]commitment{}}
	watchSlices(context.WithoutCancel(t.Context()), t, func(event watch.EventType, rs *authv1beta1.ResourceSlice) error {
		if over := p.record(rs, event == watch.Deleted); over != "" {
			t.Error(over)
		}
		return nil
	})
	return p
}

// record takes an event. An answer belongs to the class that the slice had when it was written,
// until the next answer. The result is not empty if a class exceeds its cpu.
func (p *commitments) record(rs *authv1beta1.ResourceSlice, deleted bool) (over string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.slices[rs.UID]
	switch is := answerOf(rs); {
	case deleted:
		delete(p.slices, rs.UID)
	case differ("", was.answer, is) != nil:
		p.slices[rs.UID] = commitment{string(rs.Spec.Class), is}
		p.answers++
	}
	for class, sum := range p.sums() {
		if sum.CmpInt64(p.capacity[class]) > 0 {
			return fmt.Sprintf("%s cpu of class %s are accepted, but it has %d, with the answer to %s",
				&sum, class, p.capacity[class], client.ObjectKeyFromObject(rs))
		}
	}
	return ""
}

func (p *commitments) sums() map[string]resource.Quantity {
	sums := map[string]resource.Quantity{}
	for _, s := range p.slices {
		if s.Status != authv1beta1.ResourceSliceConditionAccepted {
			continue
		}
		sum := sums[s.class]
		sum.Add(resource.MustParse(s.Granted["cpu"]))
		sums[s.class] = sum
	}
	return sums
}

// expect sets the cpu that is requested of each class in the end.
func (p *commitments) expect(requested map[string]int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requested = requested
}

// full returns an error unless each class has accepted as much as it has and is requested of it.
func (p *commitments) full(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	sums := p.sums()
	for class, cpu := range p.capacity {
		if sum := sums[class]; sum.CmpInt64(min(cpu, p.requested[class])) != 0 {
			return fmt.Errorf("%s cpu of class %s are accepted; it has %d, and %d are requested",
				&sum, class, cpu, p.requested[class])
		}
	}
	return nil
}
