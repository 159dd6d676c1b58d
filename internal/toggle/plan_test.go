package toggle

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
)

// disabled is an entry of spec.disabled, as in "oslo" or "oslo/rome".
func disabled(text string) v1alpha1.DisabledProvider {
	provider, consumer, _ := strings.Cut(text, "/")
	return v1alpha1.DisabledProvider{Provider: v1alpha1.ClusterID(provider), Consumer: v1alpha1.OptionalClusterID(consumer)}
}

// owned are the managedFields of a manager that has written these entries.
func owned(manager string, operation metav1.ManagedFieldsOperationType, entries ...string) metav1.ManagedFieldsEntry {
	var keys []string
	for _, text := range entries {
		d := disabled(text)
		keys = append(keys, `"k:{\"consumer\":\"`+string(d.Consumer)+`\",\"provider\":\"`+string(d.Provider)+`\"}":{".":{},"f:consumer":{},"f:provider":{}}`)
	}
	fields := `{"f:spec":{"f:mode":{},"f:disabled":{` + strings.Join(keys, ",") + `}}}`
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
}

// orchestrationWith has these entries in spec.disabled, of these managers.
func orchestrationWith(entries string, managers ...metav1.ManagedFieldsEntry) *v1alpha1.Orchestration {
	o := &v1alpha1.Orchestration{ObjectMeta: metav1.ObjectMeta{Name: "gold", ManagedFields: managers}}
	for text := range strings.FieldsSeq(entries) {
		o.Spec.Disabled = append(o.Spec.Disabled, disabled(text))
	}
	return o
}

func apply(entries ...string) metav1.ManagedFieldsEntry {
	return owned(Manager, metav1.ManagedFieldsOperationApply, entries...)
}

func TestAChangeAppliesWhatIsOursWithTheEntryOrWithoutIt(t *testing.T) {
	of := func(id, consumer string, enable bool) rest.Toggle {
		return rest.Toggle{ID: id, Consumer: consumer, Enable: enable}
	}
	kubectl := owned("kubectl", metav1.ManagedFieldsOperationApply, "oslo")
	for name, tc := range map[string]struct {
		object  *v1alpha1.Orchestration
		change  rest.Toggle
		want    string
		differs bool
		refused string
	}{
		"disable the first":           {orchestrationWith(""), of("oslo", "", false), "oslo", true, ""},
		"disable for a consumer":      {orchestrationWith("oslo", kubectl), of("oslo", "rome", false), "oslo/rome", true, ""},
		"disable another":             {orchestrationWith("oslo milan", kubectl, apply("milan")), of("paris", "", false), "milan paris", true, ""},
		"disable twice":               {orchestrationWith("oslo", apply("oslo")), of("oslo", "", false), "", false, ""},
		"disable what a manifest has": {orchestrationWith("oslo", kubectl), of("oslo", "", false), "", false, ""},
		"enable the last":             {orchestrationWith("oslo", apply("oslo")), of("oslo", "", true), "", true, ""},
		"enable one of two":           {orchestrationWith("milan oslo", apply("milan", "oslo")), of("oslo", "", true), "milan", true, ""},
		"enable for a consumer":       {orchestrationWith("oslo/rome oslo/bern", apply("oslo/rome", "oslo/bern")), of("oslo", "rome", true), "oslo/bern", true, ""},
		"enable what is enabled":      {orchestrationWith("milan", apply("milan")), of("oslo", "", true), "milan", false, ""},
		"an entry that is gone is not made again": {
			orchestrationWith("", apply("milan")), of("oslo", "", false), "oslo", true, "",
		},
		"enable what a manifest has": {
			orchestrationWith("oslo", kubectl), of("oslo", "", true), "", true, "the field manager kubectl has written: remove the entry",
		},
		"enable what both have": {
			orchestrationWith("oslo", kubectl, apply("oslo")), of("oslo", "", true), "", true, "the field manager kubectl has written",
		},
		"an update under our name is not ours": {
			orchestrationWith("oslo", owned(Manager, metav1.ManagedFieldsOperationUpdate, "oslo")), of("oslo", "", true), "", true, "the field manager proffer-toggle has written",
		},
		"enable what nobody has written": {orchestrationWith("oslo"), of("oslo", "", true), "", true, "do not say who"},
		"enable for one what is disabled for all": {
			orchestrationWith("oslo", apply("oslo")), of("oslo", "rome", true), "oslo", false, "disables oslo for every consumer: enable it without consumer first",
		},
		"disable one too many": {
			orchestrationWith(strings.Repeat("oslo/rome ", v1alpha1.MaxOrchestrationDisabled)), of("paris", "", false), "", false, "256 entries",
		},
		"managed fields that cannot be read": {
			orchestrationWith("oslo", metav1.ManagedFieldsEntry{Manager: Manager, Operation: "Apply", FieldsV1: metav1.NewFieldsV1(`{"f:spec":3}`)}),
			of("oslo", "", true), "", true, "do not say who",
		},
	} {
		t.Run(name, func(t *testing.T) {
			own, differs, err := plan(tc.object, tc.change)
			if tc.refused != "" {
				if refused := (refusal{}); !errors.As(err, &refused) || !strings.Contains(err.Error(), tc.refused) {
					t.Fatalf("%v, want %q", err, tc.refused)
				}
				return
			}
			test.Must(t, err)
			if differs != tc.differs {
				t.Fatalf("differs: %t", differs)
			}
			if diff := cmp.Diff(orchestrationWith(tc.want).Spec.Disabled, own.disabled); diff != "" && differs {
				t.Error(diff)
			}
		})
	}
}

// ownedIn are the managedFields of a manager that has applied entries of both lists.
func ownedIn(manager, disabled, enabled string) metav1.ManagedFieldsEntry {
	list := func(entries string) string {
		text := string(owned(manager, "Apply", strings.Fields(entries)...).FieldsV1.GetRawBytes())
		return strings.TrimSuffix(strings.TrimPrefix(text, `{"f:spec":{"f:mode":{},"f:disabled":`), "}}")
	}
	fields := `{"f:spec":{"f:disabled":` + list(disabled) + `,"f:enabled":` + list(enabled) + `}}`
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestWhatIsDisabledByDefaultIsEnabledByAnEntry(t *testing.T) {
	of := func(id, consumer string, enable bool) rest.Toggle {
		return rest.Toggle{ID: id, Consumer: consumer, Enable: enable}
	}
	for name, tc := range map[string]struct {
		// disabled and enabled are the entries, of which these are ours, and kubectl's the others.
		disabled, enabled, ourDisabled, ourEnabled string
		change                                     rest.Toggle
		wantDisabled, wantEnabled                  string
		differs                                    bool
		refused                                    string
	}{
		"enable the first":               {"", "", "", "", of("oslo", "", true), "", "oslo", true, ""},
		"enable for a consumer":          {"", "milan", "", "milan", of("oslo", "rome", true), "", "milan oslo/rome", true, ""},
		"enable twice":                   {"", "oslo", "", "oslo", of("oslo", "", true), "", "oslo", false, ""},
		"enabled for all":                {"", "oslo", "", "oslo", of("oslo", "rome", true), "", "oslo", false, ""},
		"enabled in a manifest":          {"", "oslo", "", "", of("oslo", "", true), "", "", false, ""},
		"enable what is disabled too":    {"oslo", "", "oslo", "", of("oslo", "", true), "", "oslo", true, ""},
		"enabled and disabled":           {"oslo", "oslo", "oslo", "oslo", of("oslo", "", true), "", "oslo", true, ""},
		"disabled in a manifest":         {"oslo", "", "", "", of("oslo", "", true), "", "", false, "remove the entry from spec.disabled"},
		"disable what callers enabled":   {"", "oslo milan", "", "oslo milan", of("oslo", "", false), "", "milan", true, ""},
		"disable what is not enabled":    {"", "milan", "", "milan", of("oslo", "", false), "", "milan", false, ""},
		"disable what a manifest has":    {"", "oslo", "", "", of("oslo", "", false), "oslo", "", true, ""},
		"disable for one what all have":  {"", "oslo", "", "oslo", of("oslo", "rome", false), "oslo/rome", "oslo", true, ""},
		"disable for all what one has":   {"", "oslo/rome", "", "oslo/rome", of("oslo", "", false), "oslo", "oslo/rome", true, ""},
		"disable for one what one has":   {"", "oslo/rome oslo/bern", "", "oslo/rome oslo/bern", of("oslo", "rome", false), "", "oslo/bern", true, ""},
		"enable one too many":            {"", strings.Repeat("milan ", v1alpha1.MaxOrchestrationDisabled), "", "", of("oslo", "", true), "", "", false, "256 entries in spec.enabled"},
		"disable for one, and all again": {"oslo/rome", "oslo", "oslo/rome", "oslo", of("oslo", "rome", true), "", "oslo", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := orchestrationWith(tc.disabled, ownedIn(Manager, tc.ourDisabled, tc.ourEnabled))
			o.Spec.DefaultDisabled = true
			for _, e := range orchestrationWith(tc.enabled).Spec.Disabled {
				o.Spec.Enabled = append(o.Spec.Enabled, v1alpha1.EnabledProvider(e))
			}
			others := func(all, ours string) string {
				var left []string
				for text := range strings.FieldsSeq(all) {
					if !strings.Contains(" "+ours+" ", " "+text+" ") {
						left = append(left, text)
					}
				}
				return strings.Join(left, " ")
			}
			o.ManagedFields = append(o.ManagedFields, ownedIn("kubectl", others(tc.disabled, tc.ourDisabled), others(tc.enabled, tc.ourEnabled)))
			own, differs, err := plan(o, tc.change)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("%v, want %q", err, tc.refused)
				}
				return
			}
			test.Must(t, err)
			want := ownEntries{orchestrationWith(tc.wantDisabled).Spec.Disabled, orchestrationWith(tc.wantEnabled).Spec.Disabled}
			if diff := cmp.Diff(want, own, cmp.AllowUnexported(ownEntries{}), sortedEntries); diff != "" || differs != tc.differs {
				t.Errorf("differs %t, (-want +got): %s", differs, diff)
			}
		})
	}
}

var sortedEntries = cmpopts.SortSlices(func(a, b v1alpha1.DisabledProvider) bool {
	return a.Provider+"/"+v1alpha1.ClusterID(a.Consumer) < b.Provider+"/"+v1alpha1.ClusterID(b.Consumer)
})

func TestACallerOfOneConsumerSeesNoOther(t *testing.T) {
	all := []rest.Provider{{ClusterID: "oslo", Orchestrations: []rest.ProviderIn{{
		Name: "gold", Disabled: []rest.Disabled{{}, {Consumer: "bern"}, {Consumer: "rome"}}, EnabledFor: []rest.Disabled{{Consumer: "bern"}},
		Chosen: []rest.ChosenFor{{Consumer: "bern"}, {Consumer: "rome"}}, Rejected: []rest.RejectedFor{{Consumer: "bern"}},
		Notes: []rest.ProviderNote{{Consumer: "bern"}},
	}}}}
	want := []rest.Provider{{ClusterID: "oslo", Orchestrations: []rest.ProviderIn{{
		Name: "gold", Disabled: []rest.Disabled{{}, {Consumer: "rome"}}, Chosen: []rest.ChosenFor{{Consumer: "rome"}},
	}}}}
	if diff := cmp.Diff(want, Of(all, "rome")); diff != "" {
		t.Error(diff)
	}
	if len(all[0].Orchestrations[0].Chosen) != 2 {
		t.Error("the list of all is changed")
	}
}

func TestProvidersAreListedWithWhoDisabledThemAndForWhomTheyAreChosen(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC))
	gold := orchestrationWith("paris/bern milan", owned("kubectl", metav1.ManagedFieldsOperationUpdate, "milan"), apply("paris/bern"))
	gold.Spec.Mode, gold.Spec.Providers = v1alpha1.ModeActive, &v1alpha1.Clusters{ClusterIDs: []v1alpha1.ClusterID{"oslo"}}
	gold.Status.Choices = []v1alpha1.ConsumerChoice{{
		Consumer: "rome", ConsumerChose: true,
		Chosen:   []v1alpha1.ChosenProvider{{ClusterID: "paris", Score: 812, Since: since, Because: "Price 1000"}},
		Rejected: []v1alpha1.RejectedProvider{{ClusterID: "oslo", By: v1alpha1.RejectedByOrchestration, Because: "no virtual node"}},
		Notes: []v1alpha1.NamespaceNote{
			{Namespace: "team-rome", Provider: "oslo", Until: &since, Because: "pods run there"}, {Namespace: "team-milan", Because: "not sent on"},
		},
	}}
	test := orchestrationWith("oslo", apply("oslo"))
	test.Name, test.Spec.Mode = "test", v1alpha1.ModeDryRun
	test.Spec.DefaultDisabled, test.Spec.Enabled = true, []v1alpha1.EnabledProvider{{Provider: "oslo"}, {Provider: "oslo", Consumer: "rome"}}
	at := since.Time
	want := []rest.Provider{
		{ClusterID: "milan", Orchestrations: []rest.ProviderIn{{
			Name: "gold", Mode: "Active", Disabled: []rest.Disabled{{Managers: []string{"kubectl"}}},
		}}},
		{ClusterID: "oslo", Orchestrations: []rest.ProviderIn{
			{
				Name: "gold", Mode: "Active", Enabled: true, Rejected: []rest.RejectedFor{{Consumer: "rome", ConsumerChose: true, By: "Orchestration", Because: "no virtual node"}},
				Notes: []rest.ProviderNote{{Consumer: "rome", Namespace: "team-rome", Until: &at, Because: "pods run there"}},
			},
			{
				Name: "test", Mode: "DryRun", DefaultDisabled: true, Disabled: []rest.Disabled{{Toggle: true}},
				EnabledFor: []rest.Disabled{{}, {Consumer: "rome"}},
			},
		}},
		{ClusterID: "paris", Enabled: true, Orchestrations: []rest.ProviderIn{{
			Name: "gold", Mode: "Active", Enabled: true, Disabled: []rest.Disabled{{Consumer: "bern", Toggle: true}},
			Chosen: []rest.ChosenFor{{Consumer: "rome", ConsumerChose: true, Score: 812, Since: at, Because: "Price 1000"}},
		}}},
	}
	if diff := cmp.Diff(want, providersOf([]v1alpha1.Orchestration{*gold, *test})); diff != "" {
		t.Error(diff)
	}
}
