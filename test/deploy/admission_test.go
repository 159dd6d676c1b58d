package deploy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
)

const cordonTenant = "liqo.io/cordon-tenant"

// refusal is the answer of an admission policy that rejects a request.
type refusal struct {
	reason  metav1.StatusReason
	message string
}

// of returns an error unless err is this refusal.
func (r refusal) of(err error) error {
	if err == nil {
		return errors.New("the request was accepted")
	}
	if got := apierrors.ReasonForError(err); got != r.reason || !strings.Contains(err.Error(), r.message) {
		return fmt.Errorf("rejected with reason %s: %w; want %s, %q", got, err, r.reason, r.message)
	}
	return nil
}

func accept(s *authv1beta1.ResourceSlice) {
	s.Status.Conditions = []authv1beta1.ResourceSliceCondition{{
		Type: authv1beta1.ResourceSliceConditionTypeResources, Status: authv1beta1.ResourceSliceConditionAccepted,
	}}
	s.Status.Resources = corev1.ResourceList{"cpu": resource.MustParse("999")}
}

func requestCPU(cpu string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) { s.Spec.Resources["cpu"] = resource.MustParse(cpu) }
}

func setClass(class string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) { s.Spec.Class = authv1beta1.ResourceSliceClass(class) }
}

func setCordonMark(value string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) {
		if value == "" {
			delete(s.Annotations, cordonTenant)
		} else {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, cordonTenant, value)
		}
	}
}

func TestAConsumerCannotWriteItsAnswerOrEndACordon(t *testing.T) {
	p := newPeering(t)
	test.Must(t, createSlice(t, p.rome, aSlice("s", "gold")))
	withoutGuards(t, p, func() { // Only the guard prevents this.
		test.Must(t, editStatus(t, p.rome, "s", accept))
		test.Must(t, edit(t, p.admin, "s", setCordonMark("true")))
		test.Must(t, edit(t, p.rome, "s", setCordonMark("")))
	})

	answering := refusal{
		metav1.StatusReasonForbidden,
		"only the provider writes the status of a ResourceSlice, which is its answer: " +
			"request resources in spec.resources, and wait",
	}
	test.Check(t, answering.of(editStatus(t, p.rome, "s", accept)))
	for name, patch := range map[string]client.Patch{
		"merge patch": client.RawPatch(types.MergePatchType, []byte(`{"status":{"resources":{"cpu":"999"}}}`)),
		"json patch": client.RawPatch(types.JSONPatchType,
			[]byte(`[{"op":"replace","path":"/status/resources/cpu","value":"7"}]`)),
		"apply": client.RawPatch(types.ApplyPatchType,
			[]byte(`{"apiVersion":"authentication.liqo.io/v1beta1","kind":"ResourceSlice","metadata":{"name":"s"},`+
				`"status":{"resources":{"cpu":"7"}}}`)),
	} {
		options := []client.SubResourcePatchOption{}
		if name == "apply" {
			options = append(options, client.FieldOwner("rome"), client.ForceOwnership)
		}
		if err := answering.of(p.rome.Status().Patch(t.Context(), aSlice("s", "gold"), patch, options...)); err != nil {
			t.Errorf("%s of the status: %v", name, err)
		}
	}

	t.Run("the cordon annotation", func(t *testing.T) {
		ending := refusal{
			metav1.StatusReasonForbidden,
			"the provider cordons a consumer with the annotation liqo.io/cordon-tenant: leave it as it is",
		}
		if err := ending.of(edit(t, p.rome, "s", setCordonMark("true"))); err != nil {
			t.Errorf("set: %v", err)
		}
		test.Must(t, edit(t, p.manager, "s", setCordonMark("true")))
		for value, what := range map[string]string{"": "removed", "false": "changed"} {
			if err := ending.of(edit(t, p.rome, "s", setCordonMark(value))); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
	t.Run("writes of crd-replicator are allowed", func(t *testing.T) {
		test.Must(t, createSlice(t, p.rome, aSlice("another", "gold")))
		// crd-replicator copies annotations, also that of a cordon in the other direction.
		marked := aSlice("marked", "gold")
		setCordonMark("true")(marked)
		test.Must(t, createSlice(t, p.rome, marked))
		test.Must(t, edit(t, p.rome, "s", requestCPU("4")))
		test.Must(t, edit(t, p.rome, "another", setClass("silver")))

		// crd-replicator writes an older version. If the annotation was set since, the write is a
		// conflict, after which it reads again.
		var stale authv1beta1.ResourceSlice
		test.Must(t, p.rome.Get(t.Context(), client.ObjectKeyFromObject(aSlice("another", "")), &stale))
		test.Must(t, edit(t, p.manager, "another", setCordonMark("true")))
		requestCPU("2")(&stale)
		if err := p.rome.Update(t.Context(), &stale); !apierrors.IsConflict(err) {
			t.Errorf("a write of an older version: %v, want a conflict", err)
		}
		test.Must(t, p.rome.Delete(t.Context(), aSlice("another", "")))
	})
	t.Run("other writers are not restricted", func(t *testing.T) {
		for name, by := range map[string]client.Client{"Liqo": p.manager, "the operator": p.operator, "an admin": p.admin} {
			err := errors.Join(
				editStatus(t, by, "s", accept), edit(t, by, "s", setCordonMark("")), edit(t, by, "s", setCordonMark("true")))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// awaitServedClasses waits until the list of served classes has exactly these entries.
func awaitServedClasses(t *testing.T, want map[string]string) *v1alpha1.AdmissionParams {
	t.Helper()
	var list v1alpha1.AdmissionParams
	test.Eventually(t, func() error {
		key := client.ObjectKey{Namespace: namespace, Name: "proffer-served-classes"}
		if err := cluster.client.Get(t.Context(), key, &list); err != nil {
			return err
		}
		if diff := cmp.Diff(want, list.Data, cmpopts.EquateEmpty()); diff != "" {
			return fmt.Errorf("the list differs (-want +got):\n%s", diff)
		}
		return nil
	})
	return &list
}

// withoutList is the answer of an admission policy whose params do not exist.
var withoutList = refusal{
	metav1.StatusReasonInvalid, "no params found for policy binding with `Deny` parameterNotFoundAction",
}

// removeParams deletes a list of the operator at the end of the test.
func removeParams(t *testing.T, name string) {
	t.Helper()
	remove(t, &v1alpha1.AdmissionParams{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
}

// deleteParams deletes a list of the operator, which must exist.
func deleteParams(t *testing.T, name string) {
	t.Helper()
	list := &v1alpha1.AdmissionParams{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	test.Must(t, cluster.client.Delete(t.Context(), list))
}

func notServed(class string) refusal {
	return refusal{
		metav1.StatusReasonInvalid, "this cluster does not serve class " + class +
			": set spec.class to a class that it serves, and ask its admin which these are",
	}
}

func TestConsumersCanOnlyRequestServedClasses(t *testing.T) {
	p := newPeering(t)
	// Only the component prevents this.
	test.Must(t, createSlice(t, p.rome, aSlice("old", "default")))
	applyComponent(t, "served-classes")
	// The operator creates the list.
	test.Eventually(t, func() error { return withoutList.of(tryCreate(t, p.rome, aSlice("s", "gold"))) })
	args := container(t, deployment(t, render(t, "served-classes"))).Args
	o := start(t, args)
	o.AwaitReady(t)
	removeParams(t, "proffer-served-classes")
	awaitServedClasses(t, nil)
	test.Eventually(t, func() error { return notServed("gold").of(tryCreate(t, p.rome, aSlice("s", "gold"))) })
	policy := func(class string) (withdraw func()) {
		applyPolicy(t, class, fmt.Sprintf("{class: %s, offer: {fixed: {cpu: 4, memory: 4Gi, pods: 10}}}", class))
		return func() {
			test.Check(t, cluster.client.Delete(t.Context(), named(class)))
		}
	}
	withdrawGold := policy("gold")
	gold := map[string]string{"gold": "proffer"}
	awaitServedClasses(t, gold)
	test.Eventually(t, func() error { return createSlice(t, p.rome, aSlice("s", "gold")) })

	t.Run("classes that are not served", func(t *testing.T) {
		names := map[string]string{"default": "default", "": "default", "platinum": "platinum", "Gold": "Gold"}
		for class, named := range names {
			if err := notServed(named).of(tryCreate(t, p.rome, aSlice("another", class))); err != nil {
				t.Errorf("a new slice of class %q: %v", class, err)
			}
			if err := notServed(named).of(edit(t, p.rome, "s", setClass(class))); err != nil {
				t.Errorf("a slice that moves to class %q: %v", class, err)
			}
		}
		unprintable := refusal{metav1.StatusReasonInvalid, "this cluster does not serve the class: set spec.class"}
		test.Check(t, unprintable.of(tryCreate(t, p.rome, aSlice("another", "a\nb"))))
		bare := aSlice("another", "")
		bare.Spec = authv1beta1.ResourceSliceSpec{}
		test.Check(t, notServed("default").of(tryCreate(t, p.rome, bare)))
	})
	t.Run("a class of a new policy", func(t *testing.T) {
		withdraw := policy("silver")
		test.Eventually(t, func() error { return edit(t, p.rome, "s", setClass("silver")) })
		withdraw()
		awaitServedClasses(t, gold)
		test.Eventually(t, func() error { return notServed("silver").of(tryCreate(t, p.rome, aSlice("another", "silver"))) })
	})
	t.Run("a slice that keeps an unserved class", func(t *testing.T) {
		// Neither class is served: that of s is not served any longer, that of old never was.
		for _, name := range []string{"s", "old"} {
			test.Must(t, edit(t, p.rome, name, requestCPU("2")))
			test.Must(t, edit(t, p.rome, name, setLabels(20)))
			test.Must(t, edit(t, p.rome, name, setAnnotations(bulk(10, 10))))
		}
		test.Must(t, edit(t, p.rome, "old", setClass(""))) // The empty class is the same to Liqo.
		test.Must(t, edit(t, p.rome, "s", setClass("gold")))
		test.Must(t, p.rome.Delete(t.Context(), aSlice("s", "")))
	})
	t.Run("other writers are not restricted", func(t *testing.T) {
		test.Must(t, createSlice(t, p.admin, aSlice("own", "default")))
		test.Must(t, edit(t, p.admin, "own", setClass("platinum")))
		test.Must(t, edit(t, p.manager, "own", setClass("default")))
	})
	t.Run("a class that an admin adds", func(t *testing.T) {
		mustKubectl(t, "-n", "proffer-system", "patch", "admissionparams", "proffer-served-classes", "--type=merge",
			`--patch={"data":{"default":"liqo"}}`)
		test.Eventually(t, func() error { return createSlice(t, p.rome, aSlice("default", "default")) })
		test.Must(t, createSlice(t, p.rome, aSlice("classless", "")))
		withdrawGold()
		awaitServedClasses(t, map[string]string{"default": "liqo"})
		policy("gold")
		awaitServedClasses(t, map[string]string{"default": "liqo", "gold": "proffer"})
	})
	t.Run("applying again keeps the list", func(t *testing.T) {
		dir, right := overlay(t, "served-classes"), map[string]string{"default": "liqo", "gold": "proffer"}
		applyAgain(t, dir, len(render(t, "served-classes")))
		defer mustKubectl(t, "apply", "-k", dir) // Other tests apply all of config/default without --server-side.
		mustKubectl(t, "apply", "--server-side", "--force-conflicts", "-k", dir)
		awaitServedClasses(t, right)
	})
	t.Run("a deleted list blocks all writers until the operator writes it again", func(t *testing.T) {
		test.Must(t, createSlice(t, p.rome, aSlice("s", "gold")))
		test.Must(t, o.Stop(gracefulStop))
		deleteParams(t, "proffer-served-classes")
		for name, by := range map[string]client.Client{"rome": p.rome, "Liqo": p.manager, "an admin": p.admin} {
			test.Eventually(t, func() error {
				if err := withoutList.of(edit(t, by, "s", requestCPU("3"))); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				return nil
			})
		}
		again := start(t, args)
		again.AwaitReady(t)
		awaitServedClasses(t, gold)
		test.Eventually(t, func() error { return edit(t, p.rome, "s", requestCPU("3")) })
		again.requireAllowed(t)
	})
	o.requireAllowed(t)
}

// As with the pod guard, the API server follows the list of a policy that was deleted and created again.
func TestServedClassesFollowTheirListAfterTheyWereRemovedAndInstalledAgain(t *testing.T) {
	p := newPeering(t)
	applyComponent(t, "served-classes")
	removeParams(t, "proffer-served-classes")
	answers := func(served, other string) {
		t.Helper()
		writeParams(t, "proffer-served-classes", map[string]string{served: "proffer"})
		test.Eventually(t, func() error {
			return errors.Join(tryCreate(t, p.rome, aSlice("s", served)), notServed(other).of(tryCreate(t, p.rome, aSlice("s", other))))
		})
	}
	answers("gold", "silver")
	// As docs/how-to/hold-consumers-to-their-part.md says: the policy first, the list last.
	mustKubectl(t, "delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "proffer-served-classes")
	test.Eventually(t, func() error { return tryCreate(t, p.rome, aSlice("s", "silver")) })
	deleteParams(t, "proffer-served-classes")

	mustKubectl(t, "apply", "-k", overlay(t, "served-classes"))
	test.Eventually(t, func() error { return withoutList.of(tryCreate(t, p.rome, aSlice("s", "gold"))) })
	answers("silver", "gold")
	answers("gold", "silver")
}
