package slices

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

func TestAReplicaThatWasDeletedIsAnsweredAgain(t *testing.T) {
	newPolicy(t, "again", `{class: gold, offer: {fixed: {cpu: "8", memory: 8Gi, pods: "20"}}}`)
	s := newSlice(t, rome, "again", "gold", amounts{"cpu": "2", "memory": "1Gi", "pods": "5"})
	want := granted("again", amounts{"cpu": "2", "memory": "1Gi", "pods": "5"})
	s.awaitGrant(t, want)
	before, err := s.replica(t.Context())
	lab.Must(t, err)
	lab.Must(t, provider.Client.Delete(t.Context(), before))
	lab.Eventually(t, "a new replica is answered", func(ctx context.Context) error {
		after, err := s.replica(ctx)
		if err != nil {
			return err
		}
		if after.UID == before.UID {
			return errors.New("it is the old one")
		}
		return differ("the answer", want, answerOf(after))
	})
	s.awaitGrant(t, want)
}

// TestAnswersOfAConsumerAreReverted uses the rights that Liqo gives a consumer on its provider,
// without the guards.
func TestAnswersOfAConsumerAreReverted(t *testing.T) {
	withoutGuards(t)
	newPolicy(t, "own", `{class: gold, offer: {fixed: {cpu: "8", memory: 8Gi, pods: "20"}}}`)
	s := newSlice(t, rome, "own", "gold", amounts{"cpu": "2", "memory": "1Gi", "pods": "5"})
	want := granted("own", amounts{"cpu": "2", "memory": "1Gi", "pods": "5"})
	s.awaitGrant(t, want)
	consumer, err := rome.At(t.Context(), provider)
	lab.Must(t, err)
	for name, tamper := range map[string]func(*authv1beta1.ResourceSlice){
		"more cpu": func(rs *authv1beta1.ResourceSlice) { rs.Status.Resources["cpu"] = resource.MustParse("999") },
		"an answer of its own": func(rs *authv1beta1.ResourceSlice) {
			i := slices.IndexFunc(rs.Status.Conditions, func(c authv1beta1.ResourceSliceCondition) bool {
				return c.Type == authv1beta1.ResourceSliceConditionTypeResources
			})
			rs.Status.Conditions[i].Reason, rs.Status.Conditions[i].Message = "Mine", "all of it"
			rs.Status.Resources["nvidia.com/gpu"] = resource.MustParse("8")
		},
		"no answer": func(rs *authv1beta1.ResourceSlice) {
			rs.Status.Conditions = slices.DeleteFunc(rs.Status.Conditions, func(c authv1beta1.ResourceSliceCondition) bool {
				return c.Type == authv1beta1.ResourceSliceConditionTypeResources
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			rs, err := s.replica(t.Context())
			lab.Must(t, err)
			tamper(rs)
			lab.Must(t, consumer.Status().Update(t.Context(), rs))
			began, tampered := time.Now(), rs.ResourceVersion
			lab.Eventually(t, "the answer is restored", func(ctx context.Context) error {
				rs, err := s.replica(ctx)
				if err != nil {
					return err
				}
				if rs.ResourceVersion == tampered {
					return errors.New("the status is still the consumer's")
				}
				return differ("the answer", want, answerOf(rs))
			})
			took := time.Since(began)
			t.Logf("restored after %v", took.Round(time.Millisecond))
			if took > 5*time.Second { // It takes some 50 ms, and longer on a machine that does other things.
				t.Errorf("restored after %v, want at most 5s", took)
			}
			s.awaitGrant(t, want)
		})
	}
	t.Run("an Event informs the provider's admin", func(t *testing.T) {
		lab.Eventually(t, "there is an Event", func(ctx context.Context) error {
			var events eventsv1.EventList
			if err := provider.Client.List(ctx, &events, client.InNamespace(lab.TenantNamespace(rome.ID))); err != nil {
				return err
			}
			restored := func(e eventsv1.Event) bool { return e.Reason == "Restored" && e.Regarding.Name == s.name }
			if !slices.ContainsFunc(events.Items, restored) {
				return fmt.Errorf("none of %d Events reports it", len(events.Items))
			}
			return nil
		})
	})
}
