package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/internal/controllers/podsecurity"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// contest is an object that another client writes as soon as the operator has restored it.
type contest struct {
	kind     string
	object   client.Object
	restored func() bool
	change   func()
	status   bool
	// least and most bound how often the other client gets to write in fightTime.
	least, most int
}

const fightTime = 6 * time.Second

// fight writes at full speed for some time, and returns how often the object was restored in between, plus one.
func (c *contest) fight(ctx context.Context, api client.Client) (writes int, err error) {
	for began := time.Now(); time.Since(began) < fightTime; {
		if err := api.Get(ctx, client.ObjectKeyFromObject(c.object), c.object); err != nil {
			return writes, err
		}
		if !c.restored() {
			continue
		}
		c.change()
		if c.status {
			err = api.Status().Update(ctx, c.object)
		} else {
			err = api.Update(ctx, c.object)
		}
		switch {
		case err == nil:
			writes++
		case !apierrors.IsConflict(err):
			return writes, err
		}
	}
	return writes, nil
}

// Each bound is that of "Other writers" in docs/install.md. A longer fight is that of the Pacer's own tests.
func TestOtherWritersAreFoughtWithinTheDocumentedBounds(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "8", "memory", "16Gi", "pods", "10")
	list, listing := newPlacements(t)
	policy := kubetest.Create(t, classGold(enforcing))
	const enforce = "pod-security.kubernetes.io/enforce"
	namespace := kubetest.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "contested-", Labels: map[string]string{"liqo.io/remote-cluster-id": "rome"},
		Annotations: map[string]string{"liqo.io/managed-by-namespace-map": "liqo-tenant-rome/milan"},
	}})
	rome := newTenancy(t, "rome")
	slice := rome.ask("s", nodestest.List("cpu", "2", "memory", "1Gi", "pods", "5"))

	var mu sync.Mutex
	lines := map[string]int{}
	log := funcr.New(func(_, text string) {
		mu.Lock()
		defer mu.Unlock()
		if _, about, is := strings.Cut(text, "Another client changed "); is {
			_, kind, _ := strings.Cut(about, `"kind"="`)
			kind, _, _ = strings.Cut(kind, `"`)
			lines[cmp.Or(kind, "ResourceSlice")]++ // The line about answers has no kind.
		}
	}, funcr.Options{})
	metrics := prometheus.NewPedanticRegistry()
	launchLoggingOperator(t, kubetest.Cluster(t).Config, log, listing, func(p *parts) {
		p.metrics, p.OffloadedPodSecurity = metrics, podsecurity.Level("baseline")
	})
	answered := "Accepted Granted cpu=2,memory=1Gi,pods=5"
	awaitAnswer(t, slice, answered)
	placed := map[string]string{creatorOf("s", "rome"): "pool=gold"}
	awaitPlacements(t, list, placed)
	api := kubetest.API(t)
	wrong := map[string]any{"cpu": "999"}

	contests := []*contest{
		{
			kind: "Namespace", object: namespace, least: 5, most: 9,
			restored: func() bool { return namespace.Labels[enforce] == "baseline" },
			change:   func() { namespace.Labels[enforce] = "privileged" },
		},
		{
			kind: "AdmissionParams", object: list, least: 5, most: 9,
			restored: func() bool {
				return len(list.Data) == 2 && list.Data[".complete"] == fmt.Sprintf("%s/%d", list.UID, list.Generation)
			},
			change: func() { list.Data = nil },
		},
		{
			kind: "ResourcePolicy", object: policy, status: true, least: 1, most: 2,
			restored: func() bool { return policy.Status.Class == "gold" }, change: func() { policy.Status.Class = "other" },
		},
		{ // Its pauses do not grow: five at once, then one in each second.
			kind: "ResourceSlice", object: slice, status: true, least: 4 + int(fightTime/time.Second), most: 7 + int(fightTime/time.Second),
			restored: func() bool { return !strings.Contains(fmt.Sprint(slice.Object["status"]), "999") },
			change:   func() { kubetest.SetField(slice, wrong, "status", "resources") },
		},
	}
	errs := make([]error, len(contests))
	writes := make([]int, len(contests))
	var all sync.WaitGroup
	for i, c := range contests {
		all.Go(func() { writes[i], errs[i] = c.fight(t.Context(), api) })
	}
	all.Wait()
	test.Must(t, errors.Join(errs...))
	mu.Lock()
	defer mu.Unlock()
	for i, c := range contests {
		restores := restoresOf(t, metrics, c.kind)
		if writes[i] < c.least || writes[i] > c.most {
			t.Errorf("%s: another client wrote %d times in %v, want %d to %d", c.kind, writes[i], fightTime, c.least, c.most)
		}
		if restores < writes[i]-1 || restores > writes[i] {
			t.Errorf("%s: %d restores counted, %d writes of another client", c.kind, restores, writes[i])
		}
		if lines[c.kind] > 1 || restores > 0 && lines[c.kind] == 0 {
			t.Errorf("%s: %d lines in the log about %d restores, want one", c.kind, lines[c.kind], restores)
		}
	}
}
