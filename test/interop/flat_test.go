package interop

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// flatOffer reads like Liqo v0.6 to v0.8 and compares the offer.
func flatOffer(t *testing.T, w wire, id string, want map[string]string) {
	t.Helper()
	response, err := w.call(t.Context(), readMethod, identity(id))
	must(t, err)
	got, err := flatList(response)
	if err != nil {
		t.Fatalf("% x: %v", response, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("offered to %q (-want +got):\n%s", id, diff)
	}
	if err := canonical(got); err != nil {
		t.Error(err)
	}
}

// follow opens a stream. The returned function reads the next notification and compares it.
func follow(t *testing.T, w wire) (notified func(want string)) {
	t.Helper()
	stream, err := w.subscribe(t.Context())
	must(t, err)
	return func(want string) {
		t.Helper()
		got, err := next(stream)
		if err != nil || got != want {
			t.Fatalf("notified of %q, %v, want %q", got, err, want)
		}
	}
}

func TestTheFlatFormServesClientsWithoutPools(t *testing.T) {
	servesFlat(t, readyOperator(t, "--grpc-form=flat").grpc)
}

func TestBothFormsAreServedOnTwoAddresses(t *testing.T) {
	operator := newOperator(t)
	operator.args = append(operator.args, "--grpc-flat-bind-address", operator.flat)
	operator.start(t)
	operator.awaitReady(t)
	servesFlat(t, operator.flat)
	// The pools are served at the same time.
	subscribe(t, operator.grpc).offered(t, "rome", offers{
		"":       {"cpu": "2", "memory": "1Gi", "pods": "30"},
		"gold":   {"cpu": "1500m", "memory": "2G", "pods": "20", "nvidia.com/gpu": "1"},
		"silver": {"cpu": "7"},
	})
}

// servesFlat tests the protocol of Liqo v0.6 to v0.8 with an operator that has no policies yet.
func servesFlat(t *testing.T, address string) {
	t.Helper()
	w := dial(t, address)
	notified := follow(t, w)
	notified("")
	flatOffer(t, w, "rome", map[string]string{})

	// The only class is used, whatever its name.
	only := fixed("only", "gold", `cpu: "1500m", memory: 2G, pods: "20", nvidia.com/gpu: 1`)
	apply(t, only)
	notified("rome")
	flatOffer(t, w, "rome", map[string]string{"cpu": "1500m", "memory": "2G", "pods": "20", "nvidia.com/gpu": "1"})

	// With a second class neither is the obvious one, so the client gets an error.
	silver := fixed("silver", "silver", `cpu: 7`)
	apply(t, silver)
	notified("rome")
	_, err := w.call(t.Context(), readMethod, identity("rome"))
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("two classes and none unnamed: %v, want the code %v", err, codes.FailedPrecondition)
	}

	// The unnamed class is for clients without classes.
	plain := policy("plain", `{offer: {fixed: {cpu: 2, memory: 1Gi, pods: 30}}}`)
	apply(t, plain)
	notified("rome")
	flatOffer(t, w, "rome", map[string]string{"cpu": "2", "memory": "1Gi", "pods": "30"})

	if answer, err := w.call(t.Context(), removeMethod, identity("oslo")); err != nil || len(answer) > 0 {
		t.Errorf("remove answers % x, %v, want an empty message", answer, err)
	}
}

func TestAFlatClientFollowsAChangeOfTheClass(t *testing.T) {
	apply(t, fixed("only", "gold", `cpu: 2, memory: 2G, pods: 20, nvidia.com/gpu: 1`))
	w := dial(t, readyOperator(t, "--grpc-form=flat").grpc)
	notified := follow(t, w)
	notified("")
	flatOffer(t, w, "rome", map[string]string{"cpu": "2", "memory": "2G", "pods": "20", "nvidia.com/gpu": "1"})

	// The withdrawn zeros of gold are not read. Resources that silver lacks are withdrawn.
	edit(t, fixed("only", "silver", `cpu: 7, memory: 1G, pods: 10`))
	notified("rome")
	flatOffer(t, w, "rome", map[string]string{"cpu": "7", "memory": "1G", "pods": "10", "nvidia.com/gpu": "0"})

	edit(t, policy("only", `{offer: {fixed: {cpu: 3, memory: 3G, pods: 30}}}`))
	notified("rome")
	flatOffer(t, w, "rome", map[string]string{"cpu": "3", "memory": "3G", "pods": "30", "nvidia.com/gpu": "0"})

	edit(t, fixed("only", "gold", `cpu: 4, memory: 4G, pods: 40`))
	notified("rome")
	flatOffer(t, w, "rome", map[string]string{"cpu": "4", "memory": "4G", "pods": "40", "nvidia.com/gpu": "0"})
}

func TestPoolsDecodedAsFlatAreWrongWithoutAnError(t *testing.T) {
	apply(t, fixed("standard", "gold", `cpu: "2", memory: 2G, pods: "10"`))
	operator := readyOperator(t)
	response, err := dial(t, operator.grpc).call(t.Context(), readMethod, identity("rome"))
	must(t, err)
	junk, err := flatList(response)
	if err != nil {
		t.Fatalf("the decoder of the flat form failed: %v", err)
	}
	// Neither side can detect the mismatch, so the form must be a setting of the server.
	for _, name := range []string{"cpu", "memory", "pods"} {
		if _, ok := junk[name]; ok {
			t.Errorf("the wrong form decoded %s", name)
		}
	}
	if len(junk) != 1 {
		t.Errorf("the wrong form decoded %d resources, want one with a wrong name: %q", len(junk), junk)
	}
}
