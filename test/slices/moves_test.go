package slices

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

const (
	// movers is how many slices move, each of a cpu: more than there are.
	movers = 50
	// moveKills is how often the operator is killed meanwhile, unless moveKillsEnv says more.
	moveKills    = 4
	moveKillsEnv = "PROFFER_LAB_KILLS"
	// movesBetween is how many moves there are between one kill and the next.
	movesBetween = 25
)

// TestSlicesThatMoveAmongKillsArePromisedNothingTwice has slices move between two classes of nodes apart, while the operator is killed: what is
// accepted in a class is never more than its nodes have, also of slices that have left it and are not answered anew yet.
func TestSlicesThatMoveAmongKillsArePromisedNothingTwice(t *testing.T) {
	kills := moveKills
	if text := os.Getenv(moveKillsEnv); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s=%q is no number", moveKillsEnv, text)
		}
	}
	has := map[string]int64{"gold": 16, "silver": 8}
	for class, cpu := range has {
		newNode(t, class, amounts{"cpu": fmt.Sprint(cpu), "memory": "64Gi", "pods": "200"})
		newPolicy(t, class, fmt.Sprintf("{class: %s, offer: {nodes: {selector: {matchLabels: {pool: %s}}}}}", class, class))
	}
	promises := account(t, has)
	all := make([]slice, movers)
	var asking errgroup.Group
	asking.SetLimit(8)
	t.Cleanup(func() {
		var leaving errgroup.Group
		for _, s := range all {
			leaving.Go(func() error { s.remove(t); return nil })
		}
		_ = leaving.Wait()
	})
	classOf := make([]string, movers)
	for i := range all {
		all[i], classOf[i] = slice{[]*lab.Cluster{rome, oslo, bern}[i%3], fmt.Sprint("mover-", i)}, []string{"gold", "silver"}[i%2]
		asking.Go(func() error {
			return all[i].create(t.Context(), classOf[i], amounts{"cpu": "1", "memory": "1Gi", "pods": "1"})
		})
	}
	if err := asking.Wait(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all that there is is granted", promises.full)

	for range kills {
		var killing errgroup.Group
		killing.Go(func() error { return killOperator(t.Context()) })
		for range movesBetween {
			i := rand.IntN(movers)
			classOf[i] = map[string]string{"gold": "silver", "silver": "gold"}[classOf[i]]
			all[i].move(t, classOf[i])
		}
		if err := killing.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	asked := map[string]int64{}
	for _, class := range classOf {
		asked[class]++
	}
	promises.want(asked)
	eventually(t, "all that there is is granted again", promises.full)
	promises.mu.Lock()
	defer promises.mu.Unlock()
	t.Logf("%d kills, %d answers", kills, promises.answers)
}

// killOperator ends the operator as a crash does, in the middle of whatever it writes, and has another one take over at once: the dead one's Lease
// is deleted.
func killOperator(ctx context.Context) error {
	if err := operator.Kill(); err != nil {
		return err
	}
	if err := faultsOfOperator(); err != nil {
		return err
	}
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = lab.OperatorNamespace, "proffer.dev"
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return errors.Join(provider.Client.Delete(ctx, lease), startOperator(ctx))
}

// promises are what the operator has accepted in each class, by the history of the provider's API server.
type promises struct {
	mu sync.Mutex
	// has is how many cpu there are of each class, asked how many are asked for.
	has, asked map[string]int64
	slices     map[types.UID]promise
	answers    int
}

// promise is what was accepted for one slice, in the class that it was of then.
type promise struct {
	class string
	answer
}

// account keeps the promises of classes that have so many cpu, until the end of the test. It fails the test where there are ever more.
func account(t *testing.T, has map[string]int64) *promises {
	t.Helper()
	p := &promises{has: has, asked: has, slices: map[types.UID]promise{}}
	watchSlices(context.WithoutCancel(t.Context()), t, func(event watch.EventType, rs *authv1beta1.ResourceSlice) error {
		if over := p.news(rs, event == watch.Deleted); over != "" {
			t.Error(over)
		}
		return nil
	})
	return p
}

// news takes an event. An answer is of the class that the slice has when it is written, and stays in it until the next one.
func (p *promises) news(rs *authv1beta1.ResourceSlice, gone bool) (over string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.slices[rs.UID]
	switch is := answerOf(rs); {
	case gone:
		delete(p.slices, rs.UID)
	case differ("", was.answer, is) != nil:
		p.slices[rs.UID] = promise{string(rs.Spec.Class), is}
		p.answers++
	}
	for class, sum := range p.sums() {
		if sum.CmpInt64(p.has[class]) > 0 {
			return fmt.Sprintf("%s cpu of %s are accepted of %d, with the answer to %s", &sum, class, p.has[class], client.ObjectKeyFromObject(rs))
		}
	}
	return ""
}

func (p *promises) sums() map[string]resource.Quantity {
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

// want says what is asked for in the end.
func (p *promises) want(asked map[string]int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = asked
}

// full returns an error while something else is accepted than what there is and is asked for.
func (p *promises) full(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	sums := p.sums()
	for class, has := range p.has {
		if sum := sums[class]; sum.CmpInt64(min(has, p.asked[class])) != 0 {
			return fmt.Errorf("%s cpu of %s are accepted, of %d that %d are asked of", &sum, class, has, p.asked[class])
		}
	}
	return nil
}
