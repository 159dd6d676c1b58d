package check

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/manifests"
	"proffer.dev/proffer/config"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// everyGuard has all admission policies of the manifests, those of the components too.
func everyGuard(t *testing.T) []guard {
	t.Helper()
	all, err := ownGuards(flags{servedClasses: "classes", placements: "placements", orchestrate: true})
	test.Must(t, err)
	return all
}

func namesOf(guards []guard) (names []string) {
	for _, g := range guards {
		names = append(names, g.name)
	}
	return names
}

func TestEachGuardIsTried(t *testing.T) {
	want := namesOf(everyGuard(t))
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(attempts(stage{})))); diff != "" {
		t.Errorf("the attempts differ from the guards (-guards +attempts):\n%s", diff)
	}
}

// A refusal by another validation shows nothing of the one that is tried.
func TestEachTrialExpectsTheMessageOfOneValidation(t *testing.T) {
	all := attempts(stage{})
	for _, g := range everyGuard(t) {
		files, err := fs.Glob(config.Files, g.dir+"/*.yaml")
		test.Must(t, err)
		says, found := all[g.name].says, 0
		for _, file := range files {
			objects, err := manifests.Read(file)
			test.Must(t, err)
			for _, o := range objects {
				var policy admissionregistrationv1.ValidatingAdmissionPolicy
				test.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &policy))
				if policy.Kind != "ValidatingAdmissionPolicy" || policy.Name != g.name {
					continue
				}
				for _, v := range policy.Spec.Validations {
					if strings.Contains(v.Message, says) || strings.Contains(v.MessageExpression, says) {
						found++
					}
				}
			}
		}
		if says == "" || found != 1 {
			t.Errorf("%s: %d validations say %q, want one", g.name, found, says)
		}
	}
}

// The answers are those of a real API server, and of Liqo's webhooks.
func TestOnlyARefusalByTheGuardItselfShowsThatItHolds(t *testing.T) {
	resource := schema.GroupResource{Group: "authentication.liqo.io", Resource: "resourceslices"}
	forbidden := func(text string) error { return apierrors.NewForbidden(resource, attemptName, errors.New(text)) }
	const policy = "ValidatingAdmissionPolicy 'proffer-csr-guard' with binding 'proffer-csr-guard' denied request: "
	const again = "kubectl delete validatingadmissionpolicybinding,validatingadmissionpolicy proffer-csr-guard, and apply config/guards again"
	doesNotHold := is{Wrong, []string{"proffer-csr-guard does not hold: a consumer can do harm.", again}}
	cases := map[string]struct {
		answer error
		want   is
	}{
		"the guard":           {forbidden(policy + "spec.csr is not one PEM block"), is{OK, []string{"Refusals confirmed by dry runs: 1."}}},
		"the guard, for more": {apierrors.NewBadRequest(policy + "spec.csr has more than 8192 characters"), is{Skipped, []string{"Not tried: proffer-csr-guard. Cannot create slices: ", "more than 8192 characters"}}},
		"nobody":              {nil, doesNotHold},
		"Liqo's webhook":      {forbidden(`admission webhook "shadowpod.validate.liqo.io" denied the request: failed getting quota`), doesNotHold},
		"Liqo's, not reached": {apierrors.NewInternalError(errors.New(`failed calling webhook "resourceslice.validate.liqo.io"`)), doesNotHold},
		"a quota":             {forbidden("exceeded quota: slices, requested: count/resourceslices=1, used: 5, limited: 5"), doesNotHold},
		"the name":            {apierrors.NewAlreadyExists(resource, attemptName), doesNotHold},
		"the guard, always":   {forbidden(policy + "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"), is{Warning, []string{"proffer-csr-guard refuses every request: the operator has not written its list."}}},
		"another policy":      {apierrors.NewBadRequest("ValidatingAdmissionPolicy 'proffer-csr-guard-2' denied request: no"), is{Skipped, []string{"Not tried: proffer-csr-guard. Cannot create slices: ", "'proffer-csr-guard-2' denied"}}},
		"a webhook before it": {apierrors.NewBadRequest(`admission webhook "other.example.com" denied the request`), is{Skipped, []string{"other.example.com"}}},
		"RBAC":                {forbidden(`User "rome" cannot create resource "resourceslices"`), is{Skipped, []string{"Not tried: proffer-csr-guard. You may not create slices.", "Ask for this right"}}},
		"the kind":            {absentError("ResourceSlice"), is{OK, []string{"Not tried, because there is no ResourceSlice: proffer-csr-guard."}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := findTrials([]trial{{guard{"proffer-csr-guard", "guards"}, "a consumer can do harm", expected{says: "spec.csr is not one PEM block"}, obstacle{"create slices", c.answer}}})
			if len(got) != 1 {
				t.Fatalf("findings %+v, want one", got)
			}
			if diff := c.want.diff(got[0]); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := findTrials(nil); len(got) > 0 {
		t.Errorf("findings %+v without a trial", got)
	}
}

func TestFindingsOnTrialsAreGrouped(t *testing.T) {
	right := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	var trials []trial
	for name, answer := range map[string]error{"a": right, "b": right, "c": absentError("Pod"), "d": absentError("Pod")} {
		trials = append(trials, trial{guard{name, "guards"}, "", expected{}, obstacle{"list pods", answer}})
	}
	slices.SortFunc(trials, func(a, b trial) int { return strings.Compare(a.guard.name, b.guard.name) })
	want := []Finding{
		{checkGuards, OK, "Not tried, because there is no Pod: c, d.", ""},
		{checkGuards, Skipped, "Not tried: a, b. You may not list pods.", "Ask for this right, or let a cluster admin run the check."},
	}
	if diff := cmp.Diff(want, findTrials(trials)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAConsumerWithASliceIsPreferred(t *testing.T) {
	namespace := func(name string, annotations map[string]string, labels ...string) corev1.Namespace {
		n := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations, Labels: map[string]string{}}}
		for _, label := range labels {
			key, value, _ := strings.Cut(label, "=")
			n.Labels[key] = value
		}
		return n
	}
	const tenant = "liqo.io/tenant-namespace=true"
	sent := map[string]string{"liqo.io/managed-by-namespace-map": "liqo-tenant-x/x"}
	ending := namespace("ending", nil, tenant, "liqo.io/remote-cluster-id=bern")
	ending.DeletionTimestamp = new(metav1.Now())
	all := []corev1.Namespace{
		ending, namespace("nobody", nil, tenant, "liqo.io/remote-cluster-id="),
		namespace("liqo-tenant-oslo", nil, tenant, "liqo.io/remote-cluster-id=oslo"),
		namespace("liqo-tenant-rome", nil, tenant, "liqo.io/remote-cluster-id=rome"),
		namespace("team-rome", sent, "liqo.io/remote-cluster-id=rome"),
	}
	for preferred, want := range map[string][]string{
		"":                 {"oslo", "liqo-tenant-oslo", "liqo-tenant-oslo"},
		"liqo-tenant-rome": {"rome", "liqo-tenant-rome", "team-rome"},
		"ending":           {"oslo", "liqo-tenant-oslo", "liqo-tenant-oslo"},
	} {
		consumer, tenant, sent := placesOf(all, preferred)
		if got := []string{consumer, tenant.namespace, sent.namespace}; !slices.Equal(got, want) || tenant.err != nil || sent.err != nil {
			t.Errorf("preferring %q: %v, want %v", preferred, got, want)
		}
	}
	if _, tenant, sent := placesOf(all[:2], ""); tenant.err != absentError("consumer") || sent.err != tenant.err { //nolint:errorlint // It is not wrapped.
		t.Errorf("without a consumer: %v, %v", tenant.err, sent.err)
	}
}

// liqoV1 are the CRDs of Liqo v1 that the guards are about, and those by which it is recognised.
var liqoV1 = []string{
	"core.liqo.io_foreignclusters.yaml", "authentication.liqo.io_tenants.yaml", "authentication.liqo.io_resourceslices.yaml",
	"offloading.liqo.io_shadowpods.yaml", "offloading.liqo.io_virtualnodes.yaml", "offloading.liqo.io_namespacemaps.yaml",
}

// writeLists writes the lists, with the mark that the operator writes.
func writeLists(t *testing.T, file string) {
	t.Helper()
	kubectl(t, file, "apply", "-f", "testdata/lists.yaml")
	markLists(t)
}

func markLists(t *testing.T) {
	t.Helper()
	for _, name := range []string{"proffer-placements", "earlier-placements"} {
		list := &v1alpha1.AdmissionParams{ObjectMeta: metav1.ObjectMeta{Namespace: "proffer-system", Name: name}}
		kubetest.Edit(t, list, func(o client.Object) {
			o.(*v1alpha1.AdmissionParams).Data[".complete"] = fmt.Sprintf("%s/%d", o.GetUID(), o.GetGeneration()+1)
		}, kubetest.WriteSpec)
	}
}

// installGuards installs all guards, with a consumer of Liqo v1, and returns what installs them again.
func installGuards(t *testing.T, file string) (again func()) {
	t.Helper()
	var crds []string
	for _, name := range liqoV1 {
		crds = append(crds, "-f", controlplane.LiqoCRD(t, name))
	}
	kubectl(t, file, append([]string{"delete", "--ignore-not-found"}, crds...)...) // Of another test.
	kubectl(t, file, append([]string{"apply", "--server-side"}, crds...)...)
	kubectl(t, file, append([]string{"wait", "--for=condition=Established"}, crds...)...)
	kubectl(t, file, "apply", "-f", "testdata/peering.yaml")

	dir, err := filepath.EvalSymlinks(t.TempDir())
	test.Must(t, err)
	config, err := filepath.Abs("../../../config")
	test.Must(t, err)
	up, err := filepath.Rel(dir, config)
	test.Must(t, err)
	overlay := fmt.Sprintf(`resources: [%[1]s/default]
components: [%[1]s/components/served-classes, %[1]s/components/slice-pod-guard, %[1]s/components/provider-guard]
patches:
- target: {kind: Deployment, name: proffer}
  patch: '[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--orchestrate"}]'
`, up)
	test.Must(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay), 0o600))
	again = func() {
		kubectl(t, file, "apply", "--server-side", "--force-conflicts", "-k", dir)
		writeLists(t, file)
	}
	t.Cleanup(func() {
		components := namesOf(everyGuard(t))[5:]
		kubectl(t, file, append([]string{"delete", "--ignore-not-found", "validatingadmissionpolicybinding,validatingadmissionpolicy"}, components...)...)
		kubectl(t, file, "delete", "--ignore-not-found", "-f", "testdata/accounts.yaml", "-f", "testdata/lists.yaml")
		kubectl(t, file, "-n", "proffer-system", "delete", "rolebinding,role", "proffer-served-classes", "proffer-placements")
		kubectl(t, file, "delete", "clusterrolebinding,clusterrole", "proffer-slice-pod-guard")
		// No controller deletes namespaces here.
		kubectl(t, file, "label", "namespace", "liqo-tenant-rome", "lab-rome", "liqo.io/remote-cluster-id-")
		kubectl(t, file, "delete", "runtimeclass", "check-test-large")
		kubectl(t, file, append([]string{"delete", "--wait=false"}, crds...)...)
	})
	again()
	return again
}

// awaitGuards waits until the report of the user has these findings on the guards.
func awaitGuards(t *testing.T, file, user string, want ...Finding) {
	t.Helper()
	test.Eventually(t, func() string { return cmp.Diff(want, guardsIn(t, file, user)) })
}

func guardsIn(t *testing.T, file, user string) (got []Finding) {
	for _, f := range reportOf(t, file, user).Findings {
		if f.Check == checkGuards {
			got = append(got, f)
		}
	}
	return got
}

func TestTheGuardsAreTriedByDryRuns(t *testing.T) {
	file := kubeconfig(t)
	again := installGuards(t, file)
	all := everyGuard(t)
	names := namesOf(all)
	installed := Finding{checkGuards, OK, fmt.Sprintf("All admission policies (%d) are installed and bound.", len(all)), ""}
	// Besides one refusal of each guard, those of two classes and of a pod, and the acceptance of two classes and of the pod.
	hold := Finding{checkGuards, OK, fmt.Sprintf("Refusals confirmed by dry runs: %d. Accepted as the lists say: 3.", len(all)+3), ""}
	awaitGuards(t, file, "", installed, hold)

	var fail []Finding
	harms := attempts(stage{})
	for _, g := range all {
		fail = append(fail, Finding{
			checkGuards, Wrong, g.name + " does not hold: " + harms[g.name].harm + ".",
			"kubectl delete validatingadmissionpolicybinding,validatingadmissionpolicy " + g.name + ", and apply config/" + g.dir + " again: see docs/how-to/hold-consumers-to-their-part.md.",
		})
	}
	unbound := Finding{
		checkGuards, Warning, "Without a binding that denies: " + strings.Join(names, ", ") + ".",
		"Apply config/guards and config/admission and config/components/served-classes and config/components/slice-pod-guard and " +
			"config/components/provider-guard: see docs/how-to/hold-consumers-to-their-part.md.",
	}
	api := kubetest.API(t)
	patch := func(body string) func(client.Object) error {
		return func(o client.Object) error {
			return api.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(body)))
		}
	}
	for _, way := range []struct {
		name, kind string
		change     func(client.Object) error
		first      Finding
	}{
		{"no bindings", "ValidatingAdmissionPolicyBinding", func(o client.Object) error { return api.Delete(t.Context(), o) }, unbound},
		{"bindings that only audit", "ValidatingAdmissionPolicyBinding", patch(`{"spec":{"validationActions":["Audit"]}}`), unbound},
		{"policies that match nothing", "ValidatingAdmissionPolicy", patch(`{"spec":{"matchConditions":[{"name":"never","expression":"false"}]}}`), installed},
	} {
		t.Run(way.name, func(t *testing.T) {
			for _, name := range names {
				o := &unstructured.Unstructured{}
				o.SetAPIVersion("admissionregistration.k8s.io/v1")
				o.SetKind(way.kind)
				o.SetName(name)
				test.Must(t, way.change(o))
			}
			awaitGuards(t, file, "", append([]Finding{way.first}, fail...)...)
			kubectl(t, file, append([]string{"delete", "--ignore-not-found", "validatingadmissionpolicybinding,validatingadmissionpolicy"}, names...)...)
			again()
			awaitGuards(t, file, "", installed, hold)
		})
	}
	t.Run("lists that the operator has not written", func(t *testing.T) { testListsNotWritten(t, file, installed, hold) })
	t.Run("lists with marks", func(t *testing.T) { testMarks(t, file, installed, hold) })
	t.Run("lists of earlier days", func(t *testing.T) { testEarlierLists(t, file, installed, hold) })
	t.Run("accounts with too few rights", func(t *testing.T) { testFewRights(t, file) })
}

func testListsNotWritten(t *testing.T, file string, installed, hold Finding) {
	waiting := func(name string) Finding {
		return Finding{
			checkGuards, Warning, name + " refuses every request: the operator has not written its list.",
			"The leader writes it: look at the checks rights and leader, and at the logs of the operator.",
		}
	}
	others := Finding{checkGuards, OK, "Refusals confirmed by dry runs: 12. Accepted as the lists say: 2.", ""}
	kubectl(t, file, "-n", "proffer-system", "patch", "admissionparams", "proffer-placements", "--type=merge", `-p={"data":null}`)
	awaitGuards(t, file, "", installed, others, waiting("proffer-slice-pod-guard"))
	kubectl(t, file, "-n", "proffer-system", "delete", "admissionparams", "proffer-placements")
	awaitGuards(t, file, "", installed, others, waiting("proffer-slice-pod-guard"))
	writeLists(t, file)
	awaitGuards(t, file, "", installed, hold)
}

// A list of marks says what is refused too, and a consumer that is marked itself hides the first refusal.
func testMarks(t *testing.T, file string, installed, hold Finding) {
	ok := func(refusals, accepted int) Finding {
		return Finding{checkGuards, OK, fmt.Sprintf("Refusals confirmed by dry runs: %d. Accepted as the lists say: %d.", refusals, accepted), ""}
	}
	hidden := func(refusal string) is {
		return is{Skipped, []string{"Not tried: proffer-slice-pod-guard. Cannot create shadowpods.offloading.liqo.io in lab-rome as rome: ", refusal}}
	}
	for _, c := range []struct {
		entry  string
		ok     Finding
		hidden *is
	}{
		{"!mine-a8a4c692b93b", ok(14, 2), nil},
		{"!_rome", ok(14, 2), new(hidden("the pods of your ResourceSlice request more than it was granted"))},
		{"_rome", ok(14, 2), new(hidden("your cluster has more ResourceSlices than this cluster keeps the placement of"))},
	} {
		kubectl(t, file, "-n", "proffer-system", "patch", "admissionparams", "proffer-placements", "--type=merge", `-p={"data":{"mine-a8a4c692b93b":null,"`+c.entry+`":""}}`)
		markLists(t)
		test.Eventually(t, func() string {
			got := guardsIn(t, file, "")
			want := []Finding{installed, c.ok}
			if c.hidden != nil && len(got) == 3 {
				if diff := c.hidden.diff(got[2]); diff != "" {
					return diff
				}
				got = got[:2]
			}
			return cmp.Diff(want, got)
		})
		kubectl(t, file, "-n", "proffer-system", "patch", "admissionparams", "proffer-placements", "--type=merge", `-p={"data":{"`+c.entry+`":null}}`)
	}
	writeLists(t, file)
	awaitGuards(t, file, "", installed, hold)
}

// The API server judges by lists that the operator has not written: their kind, or their name, is another one.
func testEarlierLists(t *testing.T, file string, installed, hold Finding) {
	judgeBy := func(policy, list string) {
		kubectl(t, file, "patch", "validatingadmissionpolicybinding", policy, "--type=merge", `-p={"spec":{"paramRef":{"name":"`+list+`"}}}`)
	}
	earlier := func(policy, why, dir string) Finding {
		return Finding{
			checkGuards, Wrong, policy + " does not judge by its list as it is, tried with " + why + ".",
			"Look at spec.paramRef of its binding. If it names the list of the operator, kubectl delete " +
				"validatingadmissionpolicybinding,validatingadmissionpolicy " + policy + ", and apply config/components/" + dir + " again: see docs/how-to/hold-consumers-to-their-part.md.",
		}
	}
	classes := earlier("proffer-served-classes", "class default, class silver", "served-classes")
	others := Finding{checkGuards, OK, "Refusals confirmed by dry runs: 12. Accepted as the lists say: 1.", ""}
	pods := func(why string) Finding { return earlier("proffer-slice-pod-guard", why, "slice-pod-guard") }
	judgeBy("proffer-served-classes", "earlier-classes")
	judgeBy("proffer-slice-pod-guard", "earlier-placements")
	awaitGuards(t, file, "", installed, others, classes,
		pods("a pod of mine-a8a4c692b93b without its labels, a pod of mine-a8a4c692b93b with its labels"))
	// Then the user is on one list only.
	kubectl(t, file, "-n", "proffer-system", "patch", "admissionparams", "proffer-placements", "--type=merge", `-p={"data":{"mine-a8a4c692b93b":null}}`)
	awaitGuards(t, file, "", installed, others, classes,
		pods("a pod of mine-a8a4c692b93b without labels"))
	kubectl(t, file, "-n", "proffer-system", "delete", "admissionparams", "proffer-placements")
	awaitGuards(t, file, "", installed, others, classes, pods("any request, because the list is gone"))
	judgeBy("proffer-served-classes", "proffer-served-classes")
	judgeBy("proffer-slice-pod-guard", "proffer-placements")
	writeLists(t, file)
	awaitGuards(t, file, "", installed, hold)
}

// Without the right to read the Deployment, the components are not known.
func testFewRights(t *testing.T, file string) {
	kubectl(t, file, "apply", "-f", "testdata/accounts.yaml")
	installed := Finding{checkGuards, OK, "All admission policies (5) are installed and bound.", ""}
	skipped := func(names, right string) Finding {
		return Finding{
			checkGuards, Skipped, "Not tried: " + names + ". You may not " + right + ".", "Ask for this right, or let a cluster admin run the check.",
		}
	}
	policies := skipped("proffer-resourcepolicy", "create resourcepolicies.proffer.dev")
	awaitGuards(t, file, "check-test-reader", installed, policies,
		skipped("proffer-csr-guard", "impersonate users rome, impersonate groups liqo.io, impersonate groups rome"),
		skipped("proffer-slice-deletion-guard, proffer-slice-guard, proffer-slice-status-guard", "list resourceslices.authentication.liqo.io"))
	awaitGuards(t, file, "check-test-consumer", installed,
		Finding{checkGuards, OK, "Refusals confirmed by dry runs: 3.", ""}, policies,
		skipped("proffer-csr-guard", "create resourceslices.authentication.liqo.io in liqo-tenant-rome as rome"))
}
