package toggle

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// lab is an API server with Orchestrations, and a Toggler with the rights of the component.
type lab struct {
	t *testing.T
	*Toggler
	// beforeApply, if set, is called before each apply, with the name.
	beforeApply func(name string)
	// afterList, if set, is called after each list.
	afterList  func()
	kubeconfig string
}

// hooked calls beforeApply and afterList.
type hooked struct {
	dynamic.NamespaceableResourceInterface
	lab *lab
}

func (h hooked) Apply(ctx context.Context, name string, u *unstructured.Unstructured, o metav1.ApplyOptions, sub ...string) (*unstructured.Unstructured, error) {
	if h.lab.beforeApply != nil {
		h.lab.beforeApply(name)
	}
	return h.NamespaceableResourceInterface.Apply(ctx, name, u, o, sub...)
}

func (h hooked) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list, err := h.NamespaceableResourceInterface.List(ctx, o)
	if h.lab.afterList != nil {
		h.lab.afterList()
	}
	return list, err
}

type hookedClient struct {
	dynamic.Interface
	lab *lab
}

func (h hookedClient) Resource(r schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return hooked{h.Interface.Resource(r), h.lab}
}

func newLab(t *testing.T) *lab {
	t.Helper()
	grantRights(t)
	l := &lab{t: t, kubeconfig: kubetest.Cluster(t).KubeconfigFile(t)}
	l.restart()
	return l
}

// restart replaces the Toggler by one of another process.
func (l *lab) restart() {
	l.t.Helper()
	config, err := kubetest.Cluster(l.t).UserConfig("toggler")
	test.Must(l.t, err)
	api, err := dynamic.NewForConfig(config)
	test.Must(l.t, err)
	l.Toggler = New(Config{
		Client: hookedClient{api, l}, Log: logr.Discard(), Caller: func(context.Context) (string, error) { return "ann", nil },
		Peers: func(context.Context) (map[string]bool, error) {
			return map[string]bool{"oslo": true, "milan": true, "rome": true}, nil
		},
	})
}

// grantRights binds the roles of the operator to the user toggler.
func grantRights(t *testing.T) {
	t.Helper()
	// The scheme of kubetest has no RBAC.
	api, err := client.New(kubetest.Cluster(t).Config, client.Options{})
	test.Must(t, err)
	text := test.Read(t, "../../config/components/orchestrator/role.yaml")
	role := &rbacv1.ClusterRole{}
	document, _, _ := strings.Cut(text, "\n---\n")
	test.Must(t, yaml.Unmarshal([]byte(document), role))
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "toggler"}},
	}
	for _, o := range []client.Object{role, binding} {
		test.Must(t, api.Create(t.Context(), o))
		nodestest.DeleteAfter(t, api, o)
	}
}

// kubectl runs kubectl as the admin, with a manifest.
func (l *lab) kubectl(manifest string, args ...string) {
	l.t.Helper()
	_, err := test.Kubectl(l.t.Context(), filepath.Join(kubetest.Cluster(l.t).Assets, "kubectl"), l.kubeconfig, manifest, args...)
	test.Must(l.t, err)
}

// orchestration creates an Orchestration that knows milan and oslo.
func (l *lab) orchestration(name string, entries ...string) {
	l.t.Helper()
	o := orchestrationWith(strings.Join(entries, " "))
	o.Name, o.Spec.Providers = name, &v1alpha1.Clusters{ClusterIDs: []v1alpha1.ClusterID{"milan", "oslo"}}
	kubetest.Create(l.t, o)
}

// set makes a change that succeeds. The first one waits until the API server knows the roles.
func (l *lab) set(change rest.Toggle) []rest.Provider {
	l.t.Helper()
	var all []rest.Provider
	test.Eventually(l.t, func() string {
		var refused *apierrors.StatusError
		if all, refused = l.Toggle(l.t.Context(), change); refused != nil {
			return refused.Error()
		}
		return ""
	})
	return all
}

// refuse makes a change that is refused with this code and text.
func (l *lab) refuse(change rest.Toggle, code int32, text string) {
	l.t.Helper()
	_, refused := l.Toggle(l.t.Context(), change)
	if refused == nil || refused.ErrStatus.Code != code || !strings.Contains(refused.Error(), text) {
		l.t.Errorf("%+v: %v, want %d %s", change, refused, code, text)
	}
}

func (l *lab) get(name string) *v1alpha1.Orchestration {
	l.t.Helper()
	o := &v1alpha1.Orchestration{}
	test.Must(l.t, kubetest.API(l.t).Get(l.t.Context(), client.ObjectKey{Name: name}, o))
	return o
}

// requireDisabled requires these entries in spec.disabled, and that exactly those in ours are Manager's.
func (l *lab) requireDisabled(name string, all, ours string) {
	l.t.Helper()
	o := l.get(name)
	var has, own []string
	for _, e := range disabledIn(o) {
		text := strings.TrimSuffix(string(e.Provider)+"/"+string(e.Consumer), "/")
		has = append(has, text)
		if e.ours {
			own = append(own, text)
		}
	}
	if diff := cmp.Diff([]string{all, ours}, []string{strings.Join(has, " "), strings.Join(own, " ")}); diff != "" {
		l.t.Errorf("%s: %s", name, diff)
	}
	// Nothing but entries is ours, neither what the API server has set by default.
	for _, f := range o.ManagedFields {
		if f.Manager != Manager {
			continue
		}
		want := string(owned(Manager, "Apply", strings.Fields(ours)...).FieldsV1.GetRawBytes())
		want = strings.Replace(want, `"f:mode":{},`, "", 1)
		if diff := cmp.Diff(sorted(l.t, want), sorted(l.t, string(f.FieldsV1.GetRawBytes()))); diff != "" {
			l.t.Errorf("what %s owns: %s", Manager, diff)
		}
	}
}

func sorted(t *testing.T, text string) string {
	t.Helper()
	out, err := yaml.JSONToYAML([]byte(text))
	test.Must(t, err)
	return string(out)
}

func off(id, consumer string) rest.Toggle { return rest.Toggle{ID: id, Consumer: consumer} }
func on(id, consumer string) rest.Toggle {
	return rest.Toggle{ID: id, Consumer: consumer, Enable: true}
}

func TestAChangeIsKeptInSpecDisabledUnderAManagerOfItsOwn(t *testing.T) {
	l := newLab(t)
	l.orchestration("gold")
	l.orchestration("silver")

	all := l.set(off("oslo", ""))
	enabled := func(all []rest.Provider) (ids []string) {
		for _, p := range all {
			if p.Enabled {
				ids = append(ids, p.ClusterID)
			}
		}
		return ids
	}
	if diff := cmp.Diff([]string{"milan"}, enabled(all)); diff != "" {
		t.Errorf("the answer: %s", diff)
	}
	l.requireDisabled("gold", "oslo", "oslo")
	l.requireDisabled("silver", "oslo", "oslo")

	before := l.get("gold").ResourceVersion
	l.set(off("oslo", ""))
	if after := l.get("gold").ResourceVersion; after != before {
		t.Error("what is disabled was written again")
	}
	only := off("milan", "rome")
	only.Orchestration = "gold"
	l.set(only)
	l.restart()
	l.set(off("milan", ""))
	l.requireDisabled("gold", "milan milan/rome oslo", "milan milan/rome oslo")
	l.requireDisabled("silver", "milan oslo", "milan oslo")

	l.set(on("milan", ""))
	l.set(on("oslo", ""))
	l.set(on("milan", "rome"))
	all = l.set(on("milan", "rome"))
	l.requireDisabled("gold", "", "")
	l.requireDisabled("silver", "", "")
	if diff := cmp.Diff([]string{"milan", "oslo"}, enabled(all)); diff != "" {
		t.Errorf("the answer: %s", diff)
	}
	listed, refused := l.Providers(t.Context())
	if refused != nil {
		t.Fatal(refused)
	}
	if diff := cmp.Diff(all, listed); diff != "" {
		t.Errorf("the list differs from the answer: %s", diff)
	}
	o := l.get("gold")
	if o.Spec.Mode != v1alpha1.ModeActive || o.Spec.Stay.Minutes == nil || len(o.Spec.Providers.ClusterIDs) != 2 || len(o.Spec.Disabled) != 0 {
		t.Errorf("the rest of the spec has changed: %+v", o.Spec)
	}
	if slices.ContainsFunc(o.ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == Manager }) {
		t.Errorf("%s owns something: %+v", Manager, o.ManagedFields)
	}
}

const manifest = `
apiVersion: proffer.dev/v1alpha1
kind: Orchestration
metadata: {name: gold}
spec: {providers: {clusterIDs: [milan, oslo]}`

func TestTheManifestOfAnAdminKeepsItsEntriesAndLeavesOurs(t *testing.T) {
	for name, tc := range map[string]struct {
		manifest string
		apply    []string
		// admins are the entries of the manifest, after what is left of both when the manifest was applied
		// again.
		admins, after, ours string
	}{
		"client-side, without disabled":  {manifest + "}", []string{"apply", "-f", "-"}, "", "oslo", "oslo"},
		"server-side, without disabled":  {manifest + "}", []string{"apply", "--server-side", "-f", "-"}, "", "oslo", "oslo"},
		"server-side, with disabled":     {manifest + ", disabled: [{provider: milan}]}", []string{"apply", "--server-side", "-f", "-"}, "milan", "milan oslo", "oslo"},
		"server-side, with what we have": {manifest + ", disabled: [{provider: oslo}]}", []string{"apply", "--server-side", "-f", "-"}, "oslo", "oslo", ""},
		// A client-side apply replaces lists as a whole: docs/how-to/run-a-broker.md says so.
		"client-side, with disabled": {manifest + ", disabled: [{provider: milan}]}", []string{"apply", "-f", "-"}, "milan", "milan", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			t.Cleanup(func() { kubetest.Remove(t, orchestrationWith("")) })
			l.kubectl(tc.manifest, tc.apply...)
			l.set(off("oslo", ""))
			l.kubectl(tc.manifest, tc.apply...)
			l.requireDisabled("gold", tc.after, tc.ours)
			for id := range strings.FieldsSeq(tc.admins) {
				l.refuse(on(id, ""), http.StatusConflict, "disables "+id+" in a manifest, which the field manager kubectl")
				l.set(off(id, ""))
			}
			l.requireDisabled("gold", tc.after, tc.ours)
			if tc.ours != "" {
				l.set(on("oslo", ""))
				l.requireDisabled("gold", tc.admins, "")
			}
		})
	}
}

func TestAnEntryThatTheAdminAppliesTooIsTheAdmins(t *testing.T) {
	l := newLab(t)
	l.orchestration("gold")
	l.set(off("oslo", ""))
	l.kubectl("apiVersion: proffer.dev/v1alpha1\nkind: Orchestration\nmetadata: {name: gold}\nspec: {disabled: [{provider: oslo}]}",
		"apply", "--server-side", "--field-manager=gitops", "-f", "-")
	l.refuse(on("oslo", ""), http.StatusConflict, "the field manager gitops has written")
	l.requireDisabled("gold", "oslo", "oslo")
	l.kubectl("apiVersion: proffer.dev/v1alpha1\nkind: Orchestration\nmetadata: {name: gold}\nspec: {count: 1}",
		"apply", "--server-side", "--field-manager=gitops", "-f", "-")
	l.set(on("oslo", ""))
	l.requireDisabled("gold", "", "")
}

func TestWhatOthersChangeMeanwhileIsNotUndone(t *testing.T) {
	l := newLab(t)
	l.orchestration("gold")
	l.set(off("milan", ""))
	changes := 0
	l.beforeApply = func(string) {
		if changes++; changes <= 2 {
			kubetest.Edit(t, l.get("gold"), func(o client.Object) {
				gold := o.(*v1alpha1.Orchestration)
				gold.Spec.Disabled = []v1alpha1.DisabledProvider{{Provider: "paris"}} // Ours is gone.
			}, kubetest.WriteSpec)
			kubetest.Edit(t, l.get("gold"), func(o client.Object) {
				count := int32(changes)
				o.(*v1alpha1.Orchestration).Spec.Count = &count
			}, kubetest.WriteSpec)
		}
	}
	l.set(off("oslo", ""))
	if changes != 3 {
		t.Errorf("%d attempts", changes)
	}
	l.requireDisabled("gold", "oslo paris", "oslo")

	// Whoever changes it each time is not outdone.
	attempts := 0
	l.beforeApply = func(string) {
		attempts++
		kubetest.Edit(t, l.get("gold"), func(o client.Object) {
			count := int32(10 + attempts)
			o.(*v1alpha1.Orchestration).Spec.Count = &count
		}, kubetest.WriteSpec)
	}
	l.refuse(off("milan", ""), http.StatusServiceUnavailable, "are being changed by others")
	if attempts != maxAttempts {
		t.Errorf("%d attempts", attempts)
	}
}

func TestAnOrchestrationThatIsDeletedMeanwhileIsNotCreatedAgain(t *testing.T) {
	l := newLab(t)
	l.orchestration("gold")
	l.orchestration("silver")
	l.set(off("milan", ""))
	admin, err := dynamic.NewForConfig(kubetest.Cluster(t).Config)
	test.Must(t, err)
	for name, api := range map[string]dynamic.Interface{"with the rights of the component": l.Client, "with all rights": hookedClient{admin, l}} {
		t.Run(name, func(t *testing.T) {
			deleted := false
			l.Client = api
			l.beforeApply = func(name string) {
				if name == "gold" && !deleted {
					deleted = true
					kubetest.Remove(t, l.get("gold"))
				}
			}
			l.set(off("oslo", ""))
			var all v1alpha1.OrchestrationList
			test.Must(t, kubetest.API(t).List(t.Context(), &all))
			if !deleted || len(all.Items) != 1 {
				t.Fatalf("%d Orchestrations", len(all.Items))
			}
			l.requireDisabled("silver", "milan oslo", "milan oslo")

			// One of the same name that was created since is another one, and gets the change too.
			l.beforeApply = nil
			l.orchestration("gold")
			l.set(on("oslo", ""))
			recreated := false
			l.beforeApply = func(name string) {
				if name == "gold" && !recreated {
					recreated = true
					kubetest.Remove(t, l.get("gold"))
					l.orchestration("gold")
				}
			}
			l.set(off("oslo", ""))
			l.requireDisabled("gold", "oslo", "oslo")
			l.beforeApply = nil
			l.set(on("oslo", ""))
		})
	}
}

func TestAChangeThatNamesNothingIsRefused(t *testing.T) {
	l := newLab(t)
	test.Eventually(t, func() string { // Until the API server knows the roles.
		_, refused := l.Toggle(t.Context(), off("oslo", ""))
		if refused == nil || refused.ErrStatus.Code != http.StatusNotFound {
			return refused.Error()
		}
		return ""
	})
	l.refuse(off("oslo", ""), http.StatusNotFound, "there is no Orchestration: create one first")
	l.orchestration("gold", "lima")
	l.refuse(off("olso", ""), http.StatusNotFound, "id=olso is unknown")
	l.refuse(on("olso", ""), http.StatusNotFound, "id=olso is unknown")
	l.refuse(off("oslo", "roma"), http.StatusNotFound, "consumer=roma is unknown")
	l.refuse(rest.Toggle{ID: "oslo", Orchestration: "gild"}, http.StatusNotFound, "there is no Orchestration gild")
	l.Peers = func(context.Context) (map[string]bool, error) { return nil, errors.New("secret-host refused") }
	l.refuse(off("paris", ""), http.StatusServiceUnavailable, "does not list the ForeignClusters")
	l.set(off("lima", "")) // What the manifest names is known without them.
	l.requireDisabled("gold", "lima", "")
}

func TestTheBoundOfTheListIsThatOfTheCRD(t *testing.T) {
	l := newLab(t)
	var entries []string
	for i := range v1alpha1.MaxOrchestrationDisabled {
		entries = append(entries, "p"+strings.Repeat("x", i%16)+"-"+strings.Repeat("y", i/16)+"z")
	}
	l.orchestration("gold", entries[1:]...)
	l.set(off("oslo", ""))
	l.refuse(off("milan", ""), http.StatusConflict, "has 256 entries in spec.disabled")
	full := orchestrationWith(strings.Join(append(entries, "milan"), " "))
	full.Name = "full"
	if err := kubetest.API(t).Create(t.Context(), full); !apierrors.IsInvalid(err) {
		t.Errorf("one more than the bound: %v", err)
	}
}

func TestAnErrorOfTheAPIServerIsNotForwarded(t *testing.T) {
	l := newLab(t)
	l.orchestration("gold")
	l.set(on("oslo", ""))
	nobody, err := kubetest.Cluster(t).UserConfig("somebody-without-rights")
	test.Must(t, err)
	if l.Client, err = dynamic.NewForConfig(nobody); err != nil {
		t.Fatal(err)
	}
	_, refused := l.Providers(t.Context())
	if refused == nil || refused.ErrStatus.Code != http.StatusServiceUnavailable || strings.Contains(refused.Error(), "somebody") {
		t.Errorf("%v", refused)
	}
	l.refuse(off("oslo", ""), http.StatusServiceUnavailable, "apply the roles in config/components/orchestrator")
	nobody.Host = "https://127.0.0.1:1"
	if l.Client, err = dynamic.NewForConfig(nobody); err != nil {
		t.Fatal(err)
	}
	l.refuse(off("oslo", ""), http.StatusServiceUnavailable, "the API server does not answer, or refuses the change: try again in a moment")
}

func TestOneChangeIsMadeAtATime(t *testing.T) {
	l := newLab(t)
	l.orchestration("gold")
	l.set(on("oslo", ""))
	l.beforeApply = func(string) {
		l.refuse(off("milan", ""), http.StatusTooManyRequests, "another change is being made")
	}
	l.set(off("oslo", ""))
	l.requireDisabled("gold", "oslo", "oslo")
}

func TestNobodyChangesAnythingWithoutAName(t *testing.T) {
	l := newLab(t)
	l.orchestration("gold")
	l.set(on("oslo", ""))
	l.Caller = func(context.Context) (string, error) { return "", errors.New("no answer from 10.0.0.1") }
	l.refuse(off("oslo", ""), http.StatusServiceUnavailable, "the API server does not say who you are")
	l.requireDisabled("gold", "", "")
}

// The API server may have made a change whose caller goes away.
func TestAChangeIsMadeAndLoggedAlsoIfItsCallerGoesAway(t *testing.T) {
	l := newLab(t)
	l.orchestration("gold")
	l.set(on("oslo", ""))
	var logged []string
	l.Log = funcr.New(func(_, text string) { logged = append(logged, text) }, funcr.Options{})
	ctx, leave := context.WithCancel(t.Context())
	l.beforeApply = func(string) { leave() }
	if _, refused := l.Toggle(ctx, off("oslo", "")); refused != nil {
		t.Error(refused)
	}
	l.requireDisabled("gold", "oslo", "oslo")
	if text := strings.Join(logged, "\n"); !strings.Contains(text, "A caller has changed") || !strings.Contains(text, `"user"="ann"`) {
		t.Errorf("the log is %q", text)
	}
}

func TestWhoListsAfterAChangeSeesIt(t *testing.T) {
	l := newLab(t)
	l.orchestration("gold")
	l.set(on("oslo", ""))
	enabled := func() (oslo bool) {
		ctx, cancel := context.WithTimeout(t.Context(), test.Timeout)
		defer cancel()
		all, refused := l.Providers(ctx)
		if refused != nil {
			t.Error(refused)
		}
		for _, p := range all {
			oslo = oslo || p.ClusterID == "oslo" && p.Enabled
		}
		return oslo
	}
	// A list that began before the change is still under way after it.
	began, release, before := make(chan struct{}), make(chan struct{}), make(chan bool)
	var later atomic.Bool
	l.afterList = func() {
		if !later.Swap(true) {
			close(began)
			<-release
		}
	}
	go func() { before <- enabled() }()
	<-began
	l.set(off("oslo", ""))
	if enabled() {
		t.Error("the list is older than the change")
	}
	close(release)
	if !<-before {
		t.Error("the list that began before the change shows it: the test is not what it should be")
	}
}

func TestMoreOrchestrationsThanAreReadAreAnError(t *testing.T) {
	l := newLab(t)
	for i := range MaxOrchestrations + 1 {
		l.orchestration(fmt.Sprintf("o-%03d", i))
	}
	test.Eventually(t, func() string { // Until the API server knows the roles.
		_, refused := l.Providers(t.Context())
		if refused == nil || refused.ErrStatus.Code != http.StatusInternalServerError || !strings.Contains(refused.Error(), "more than 100 Orchestrations") {
			return fmt.Sprint(refused)
		}
		return ""
	})
	l.refuse(off("oslo", ""), http.StatusInternalServerError, "more than 100 Orchestrations")
}

// As with the broker of Liqo's early days, nothing is used until it is enabled.
func TestWithDefaultDisabledACallerEnablesAndDisables(t *testing.T) {
	l := newLab(t)
	o := orchestrationWith("")
	o.Spec.DefaultDisabled, o.Spec.Enabled = true, []v1alpha1.EnabledProvider{{Provider: "milan"}}
	o.Spec.Providers = &v1alpha1.Clusters{ClusterIDs: []v1alpha1.ClusterID{"milan", "oslo"}}
	kubetest.Create(t, o)
	for _, step := range []struct {
		change            rest.Toggle
		disabled, enabled string
	}{
		{on("oslo", ""), "", "milan oslo"},
		{off("milan", "rome"), "milan/rome", "milan oslo"},
		{off("oslo", ""), "milan/rome", "milan"},
		{on("oslo", "rome"), "milan/rome", "milan oslo/rome"},
		{on("milan", "rome"), "", "milan oslo/rome"},
		{off("oslo", "rome"), "", "milan"},
	} {
		all := l.set(step.change)
		got := l.get("gold")
		texts := func(entries []managedEntry) string {
			var parts []string
			for _, e := range entries {
				parts = append(parts, strings.TrimSuffix(string(e.Provider)+"/"+string(e.Consumer), "/"))
			}
			return strings.Join(parts, " ")
		}
		if diff := cmp.Diff([]string{step.disabled, step.enabled}, []string{texts(disabledIn(got)), texts(enabledIn(got))}); diff != "" {
			t.Errorf("%+v: %s", step.change, diff)
		}
		if milan := all[0]; milan.ClusterID != "milan" || !milan.Enabled || !milan.Orchestrations[0].DefaultDisabled {
			t.Errorf("%+v", milan)
		}
	}
}
