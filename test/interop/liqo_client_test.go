package interop

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// liqoConnects is the connection timeout of Liqo's controller-manager, after which it exits.
const liqoConnects = 3 * time.Second

func TestLiqoConnectsToAnOperatorThatIsStillStarting(t *testing.T) {
	apply(t, fixed("standard", "gold", `cpu: "2", memory: 2G, pods: "10"`))
	operator := startOperator(t)
	c := connect(t, operator.grpc, liqoConnects)
	c.Register(t.Context(), c.notified)
	// The early read waits for the first evaluation and gets a complete answer.
	c.offered(t, "rome", offers{"gold": {"cpu": "2", "memory": "2G", "pods": "10"}})
	c.expect(t, "")
}

func TestLiqoReadsEachClassAsAPool(t *testing.T) {
	apply(t, fixed("gold", "gold", `cpu: 1500m, memory: 1Gi, nvidia.com/gpu: "3"`))
	apply(t, fixed("silver", "silver", `cpu: "1", memory: 1e3, storage: 10G`))
	apply(t, policy("plain", `{offer: {fixed: {cpu: "4", pods: 110}}, `+
		`overrides: [{consumers: {clusterIDs: [oslo]}, offer: {fixed: {cpu: "8"}}}]}`))
	c := subscribe(t, readyOperator(t).grpc)
	others := func(plain map[string]string) offers {
		return offers{
			"":       plain,
			"gold":   {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "3"},
			"silver": {"cpu": "1", "memory": "1k", "storage": "10G"},
		}
	}
	c.offered(t, "rome", others(map[string]string{"cpu": "4", "pods": "110"}))
	c.offered(t, "oslo", others(map[string]string{"cpu": "8", "pods": "110"}))
	c.offered(t, "32f0b45b-5c06-4cc4-84b6-03a323ffc93d", others(map[string]string{"cpu": "4", "pods": "110"}))

	lists, err := c.ReadResources(t.Context(), "rome")
	must(t, err)
	for _, list := range lists {
		if list.PoolPrefix == "gold" && list.Resources["memory"].Cmp(resource.MustParse("1073741824")) != 0 {
			t.Errorf("memory is %v, want 1Gi", list.Resources["memory"])
		}
	}
}

func TestAnEditOfAPolicyReachesLiqoAndTheNextReadHasIt(t *testing.T) {
	apply(t, fixed("standard", "gold", `cpu: "2", memory: 2G, pods: "10"`))
	c := subscribe(t, readyOperator(t).grpc)
	c.offered(t, "rome", offers{"gold": {"cpu": "2", "memory": "2G", "pods": "10"}})
	for cpu := range 5 {
		edit(t, fixed("standard", "gold", fmt.Sprintf(`cpu: "%d", memory: 3G, pods: "10"`, 10+cpu)))
		c.expect(t, "rome")
		c.offered(t, "rome", offers{"gold": {"cpu": fmt.Sprint(10 + cpu), "memory": "3G", "pods": "10"}})
	}
}

func TestAnEditForOneConsumerDoesNotNotifyTheOthers(t *testing.T) {
	forOne := func(id, cpu string) string {
		const spec = `{class: gold, consumers: {clusterIDs: [%s]}, offer: {fixed: {cpu: "%s", memory: 1G, pods: "5"}}}`
		return policy(id, fmt.Sprintf(spec, id, cpu))
	}
	for _, id := range []string{"rome", "oslo", "unread"} {
		apply(t, forOne(id, "1"))
	}
	c := subscribe(t, readyOperator(t).grpc)
	c.offered(t, "rome", offers{"gold": {"cpu": "1", "memory": "1G", "pods": "5"}})
	c.offered(t, "oslo", offers{"gold": {"cpu": "1", "memory": "1G", "pods": "5"}})
	// A notification of another consumer would arrive before the expected one.
	edit(t, forOne("rome", "2"))
	c.expect(t, "rome")
	edit(t, forOne("unread", "2"))
	edit(t, forOne("oslo", "2"))
	c.expect(t, "oslo")
	edit(t, forOne("rome", "3"))
	c.expect(t, "rome")
	c.offered(t, "oslo", offers{"gold": {"cpu": "2", "memory": "1G", "pods": "5"}})
}

func TestANewSubscriberDoesNotNotifyTheOthers(t *testing.T) {
	apply(t, fixed("standard", "gold", `cpu: "2", memory: 2G, pods: "10"`))
	operator := readyOperator(t)
	first := subscribe(t, operator.grpc)
	first.offered(t, "rome", offers{"gold": {"cpu": "2", "memory": "2G", "pods": "10"}})
	for range 3 {
		subscribe(t, operator.grpc)
	}
	edit(t, fixed("standard", "gold", `cpu: "3", memory: 2G, pods: "10"`))
	first.expect(t, "rome")
}

func TestRemovingAConsumerIsHarmless(t *testing.T) {
	apply(t, fixed("standard", "gold", `cpu: "2", memory: 2G, pods: "10"`))
	c := subscribe(t, readyOperator(t).grpc)
	want := offers{"gold": {"cpu": "2", "memory": "2G", "pods": "10"}}
	c.offered(t, "rome", want)
	c.offered(t, "oslo", want)
	for _, id := range []string{"rome", "rome", "nobody", ""} {
		if err := c.RemoveClusterID(t.Context(), id); err != nil {
			t.Errorf("remove %q: %v", id, err)
		}
	}
	// A removed consumer that reads again gets the same offer. One that was not removed is still
	// notified of changes.
	c.offered(t, "rome", want)
	apply(t, policy("oslo", `{class: gold, priority: 1, consumers: {clusterIDs: [oslo]}, `+
		`offer: {fixed: {cpu: "1", memory: 1G, pods: "5"}}}`))
	c.expect(t, "oslo")
}

func TestAResourceThatIsDroppedIsOfferedAsZero(t *testing.T) {
	apply(t, fixed("standard", "gold", `cpu: "2", memory: 2G, pods: "10", nvidia.com/gpu: "1"`))
	operator := readyOperator(t)
	c := subscribe(t, operator.grpc)
	c.offered(t, "rome", offers{"gold": {"cpu": "2", "memory": "2G", "pods": "10", "nvidia.com/gpu": "1"}})
	edit(t, fixed("standard", "gold", `cpu: "2", memory: 2G, pods: "10"`))
	c.expect(t, "rome")
	c.offered(t, "rome", offers{"gold": {"cpu": "2", "memory": "2G", "pods": "10", "nvidia.com/gpu": "0"}})
}

func TestAPolicyThatIsDeletedLeavesItsPoolWithZeros(t *testing.T) {
	gold := fixed("gold", "gold", `cpu: "2", memory: 2G, pods: "10"`)
	apply(t, gold)
	apply(t, fixed("silver", "silver", `cpu: "1", memory: 1G, pods: "10"`))
	c := subscribe(t, readyOperator(t).grpc)
	silver := map[string]string{"cpu": "1", "memory": "1G", "pods": "10"}
	c.offered(t, "rome", offers{"gold": {"cpu": "2", "memory": "2G", "pods": "10"}, "silver": silver})
	remove(t, gold)
	c.expect(t, "rome")
	c.offered(t, "rome", offers{"gold": {"cpu": "0", "memory": "0", "pods": "0"}, "silver": silver})
}

func TestAConsumersOwnPodsDoNotShrinkItsOffer(t *testing.T) {
	newNode(t, "worker-1", `cpu: "8", memory: 16Gi, pods: "110"`)
	newNode(t, "worker-2", `cpu: "8", memory: 16Gi, pods: "110"`)
	newPod(t, "local", "worker-1", "", `cpu: "2", memory: 2Gi`)
	apply(t, policy("half", `{class: gold, `+
		`offer: {nodes: {}, percent: 50, resources: [cpu, memory, pods]}, updateThresholdPercent: 0}`))
	c := subscribe(t, readyOperator(t).grpc)
	// The local pod leaves 14 of 16 cpu, 30 of 32 Gi and 219 of 220 pods; half of each is offered.
	all := offers{"gold": {"cpu": "7", "memory": "15Gi", "pods": "109"}}
	c.offered(t, "rome", all)
	c.offered(t, "oslo", all)
	newPod(t, "from-rome", "worker-1", "rome", `cpu: "3", memory: 4Gi`)
	// Rome is offered what it uses and what remains, the same as before, so it is not notified.
	c.expect(t, "oslo")
	c.offered(t, "rome", all)
	c.offered(t, "oslo", offers{"gold": {"cpu": "4", "memory": "11Gi", "pods": "108"}})
	newPod(t, "from-oslo", "worker-2", "oslo", `cpu: "1", memory: 1Gi`)
	c.expect(t, "rome")
	c.offered(t, "rome", offers{"gold": {"cpu": "6", "memory": "14Gi", "pods": "108"}})
	c.offered(t, "oslo", offers{"gold": {"cpu": "4", "memory": "11Gi", "pods": "108"}})
}

func TestTenLiqosSeeTheLastEdit(t *testing.T) {
	apply(t, fixed("standard", "gold", `cpu: "1", memory: 2G, pods: "10"`))
	operator := readyOperator(t)
	const last = 8
	amounts := func(cpu int) map[string]string {
		return map[string]string{"cpu": fmt.Sprint(cpu), "memory": "2G", "pods": "10"}
	}
	clients := make([]*client, 10)
	for i := range clients {
		clients[i] = subscribe(t, operator.grpc)
		clients[i].offered(t, fmt.Sprintf("consumer-%d", i), offers{"gold": amounts(1)})
	}
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			// Each reads after a notification, as Liqo does, until it has seen the last edit. A
			// missing notification ends in a timeout.
			id := fmt.Sprintf("consumer-%d", i)
			ctx := t.Context()
			for {
				select {
				case named := <-c.notified:
					if named == "" {
						t.Errorf("%s: notified of all consumers without a new stream", id)
					}
				case <-time.After(stepTimeout):
					t.Errorf("%s: not notified of the last edit", id)
					return
				}
				got, err := c.read(ctx, id)
				if err != nil {
					t.Errorf("%s: %v", id, err)
					return
				}
				if got["gold"]["cpu"] == fmt.Sprint(last) {
					return
				}
			}
		})
	}
	for cpu := 2; cpu <= last; cpu++ {
		edit(t, fixed("standard", "gold", fmt.Sprintf(`cpu: "%d", memory: 2G, pods: "10"`, cpu)))
	}
	wg.Wait()
}
