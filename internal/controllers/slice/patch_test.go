package slice

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// patched applies a patch to an object in JSON.
func patched(t interface {
	Helper()
	Fatal(...any)
}, text, patch []byte) *unstructured.Unstructured {
	t.Helper()
	ops, err := jsonpatch.DecodePatch(patch)
	test.Must(t, err)
	after, err := ops.Apply(text)
	test.Must(t, err)
	u := &unstructured.Unstructured{}
	test.Must(t, utiljson.Unmarshal(after, &u.Object))
	return u
}

func TestAPatchComesToTheWholeSliceWithTheAnswer(t *testing.T) {
	u := kubetest.Unstructured(t, kubetest.Slice("s"))
	rapid.Check(t, func(rt *rapid.T) {
		u := u.DeepCopy()
		for _, field := range []string{"conditions", "resources", "storageClasses", "ingressClasses", "loadBalancerClasses", "nodeLabels", "nodeSelector"} {
			if rapid.Bool().Draw(rt, "has "+field) {
				_ = unstructured.SetNestedField(u.Object, anyValue(2).Draw(rt, field), "status", field)
			}
		}
		if rapid.Bool().Draw(rt, "an answer") {
			anAnswer(rt, "earlier").copyTo(u)
		}
		if rapid.IntRange(0, 9).Draw(rt, "another status") == 0 {
			u.Object["status"] = anyValue(2).Draw(rt, "status")
		}
		text, err := json.Marshal(u.Object)
		if err != nil {
			rt.Fatal(err)
		}
		whole := &unstructured.Unstructured{}
		test.Must(rt, utiljson.Unmarshal(text, &whole.Object))
		k := decodedFrom(t, text)
		if keptOf(k).conditionsCut {
			rt.Skip("a condition is cut")
		}
		a := anAnswer(rt, "answer")
		patch, err := a.patch(k, atNoon)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(a.writeTo(whole, atNoon).Object, patched(rt, text, patch).Object); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func TestOfStuffedConditionsTheAnswerLeavesAuthentication(t *testing.T) {
	u := hostile(t, "conditions")
	status := u.Object["status"].(map[string]any)
	liqos := map[string]any{"type": "Authentication", "status": "Accepted", "message": "of Liqo", "lastTransitionTime": "2023-11-14T22:13:21Z"}
	status["conditions"] = append(status["conditions"].([]any), liqos)
	text, err := json.Marshal(u.Object)
	test.Must(t, err)
	patch, err := sliceAnswer{verdict: denied}.patch(decodedFrom(t, text), atNoon)
	test.Must(t, err)
	out := patched(t, text, patch)
	ours := map[string]any{"type": "Resources", "status": "Denied", "lastTransitionTime": "2023-11-14T22:15:00Z"}
	if diff := cmp.Diff([]any{liqos, ours}, conditionsOf(out)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(status["authParams"], out.Object["status"].(map[string]any)["authParams"]); diff != "" {
		t.Error(diff)
	}
}

func TestAnAnswerIsNotWrittenToASliceOfNoVersion(t *testing.T) {
	if patch, err := (sliceAnswer{verdict: denied}).patch(&unstructured.Unstructured{}, atNoon); err == nil {
		t.Errorf("got a patch without a version: %s", patch)
	}
}

// A late write must be a conflict, whatever the slice has become meanwhile. Any other refusal would
// count as another kind of failure.
func TestAnAnswerToAnOlderVersionIsAConflict(t *testing.T) {
	kubetest.Keep(t, controlplane.LiqoCRD(t, sliceCRD))
	c := newTestClients(t)
	full := sliceAnswer{
		verdict: accepted, reason: "Granted", message: "all", resources: capacity.Amounts{"cpu": 4000}, storageClasses: []namedClass{{"fast", true}},
		ingressClasses: []namedClass{{"nginx", false}}, loadBalancerClasses: []namedClass{{"lb", true}},
		nodeLabels: map[string]string{"tier": "gold"}, nodeSelector: map[string]string{"dedicated": "liqo"},
	}
	for i, was := range []sliceAnswer{{}, full, {verdict: denied}} {
		for j, is := range []sliceAnswer{{}, full, {verdict: denied}} {
			for k, late := range []sliceAnswer{{}, full, {verdict: denied, reason: "late"}} {
				u := kubetest.CreateSlice(t, kubetest.Slice(fmt.Sprintf("s%d%d%d", i, j, k)))
				kubetest.Edit(t, u, func(o client.Object) { was.copyTo(o.(*unstructured.Unstructured)) }, kubetest.WriteStatus)
				read := u.DeepCopy()
				kubetest.Edit(t, u, func(o client.Object) {
					is.copyTo(o.(*unstructured.Unstructured))
					kubetest.SetField(o, "https://moved", "status", "authParams", "apiServer")
				}, kubetest.WriteStatus)
				patch, err := late.patch(stripped(t, read), atNoon)
				test.Must(t, err)
				if _, err := c.slices.patchStatus(t.Context(), read.GetNamespace(), read.GetName(), patch); !apierrors.IsConflict(err) {
					t.Errorf("from %d to %d, late %d: %v, want a conflict", i, j, k, err)
				}
				if got := answerOf(t, u); !equal(is, got) {
					t.Errorf("from %d to %d: the answer changed to %+v", i, j, got)
				}
				kubetest.Remove(t, u)
			}
		}
	}
}

// A consumer can fill a slice so far that an answer with a message no longer fits into the object.
func TestAnAnswerThatDoesNotFitIsWrittenWithoutItsMessage(t *testing.T) {
	kubetest.Keep(t, controlplane.LiqoCRD(t, sliceCRD))
	c := newTestClients(t)
	u := kubetest.CreateSlice(t, kubetest.Slice("s"))
	write := func(a sliceAnswer, patch func(sliceAnswer, *unstructured.Unstructured, time.Time) ([]byte, error)) error {
		t.Helper()
		text, err := patch(a, stripped(t, u), time.Now())
		test.Must(t, err)
		_, err = c.slices.patchStatus(t.Context(), u.GetNamespace(), u.GetName(), text)
		if getErr := kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(u), u); getErr != nil {
			t.Fatal(getErr)
		}
		return err
	}
	granted := sliceAnswer{verdict: accepted, reason: "Granted", message: strings.Repeat("m", 300), resources: capacity.Amounts{"cpu": 4000}}
	test.Must(t, write(granted, sliceAnswer.patch))
	// The consumer pads its part of the object up to the limit of the API server.
	for step := 1 << 20; step > 128; step /= 2 {
		for {
			padded := u.DeepCopy()
			kubetest.SetField(padded, kube.Text(u, "spec", "class")+strings.Repeat("x", step), "spec", "class")
			if err := kubetest.API(t).Update(t.Context(), padded); err != nil {
				if !kube.TooLarge(err) {
					t.Fatalf("a padded slice: %v (%s)", err, apierrors.ReasonForError(err))
				}
				break
			}
			u = padded
		}
	}
	lowered := sliceAnswer{verdict: accepted, reason: "Reclaimed", message: strings.Repeat("m", 1000), resources: capacity.Amounts{"cpu": 1000}}
	if err := write(lowered, sliceAnswer.patch); !kube.TooLarge(err) {
		t.Fatalf("writing an answer that does not fit: %v, want an error about the size", err)
	}
	test.Must(t, write(lowered.minimal(), sliceAnswer.patchAlone))
	if got := readAnswer(u); !equal(got, sliceAnswer{verdict: accepted, reason: "Reclaimed", resources: capacity.Amounts{"cpu": 1000}}) {
		t.Errorf("the answer is %+v", got)
	}
	liqos := kubetest.Slice("s").Status
	var status authv1beta1.ResourceSlice
	test.Must(t, kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(u), u))
	text, _ := json.Marshal(u.Object)
	test.Must(t, json.Unmarshal(text, &status))
	if diff := cmp.Diff(liqos.AuthParams, status.Status.AuthParams); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(liqos.Conditions, status.Status.Conditions[:1]); diff != "" {
		t.Error(diff)
	}
}
