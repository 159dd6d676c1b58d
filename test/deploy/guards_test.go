package deploy

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	ownLabels  = "a ResourceSlice of a consumer is a copy: leave the labels liqo.io/replicated at \"true\", liqo.io/replication at \"false\""
	ownSlice   = "the labels of this ResourceSlice do not mark it as your copy: leave it as it is, or delete it"
	ownID      = "spec.consumerClusterID is the ID of the consumer: set it to your own cluster ID, and leave it set"
	finalizers = "a finalizer prevents this cluster from deleting the ResourceSlice: add none here"
	owners     = "an object of this cluster cannot own a copy: add no ownerReferences"
	background = "a ResourceSlice is deleted together with its Quota: use the propagation policy Background, which is the default"
)

// An abuse is something that Liqo's role lets a consumer do to a slice, and that no Liqo does.
type abuse struct {
	change func(*authv1beta1.ResourceSlice)
	// refused is the message of the guard.
	refused string
	// later: a new slice may be as it is, and only a slice that exists may not be made so.
	later bool
}

func setLabel(name, value string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) { metav1.SetMetaDataLabel(&s.ObjectMeta, name, value) }
}

func setConsumer(id string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) {
		s.Spec.ConsumerClusterID = nil
		if id != "" {
			s.Spec.ConsumerClusterID = new(corev1beta1.ClusterID(id))
		}
	}
}

func setOwner(kind string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) {
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: "x", UID: "3b9b2b43-8b5f-4b6f-8f3c-2f6c1b6d3d11"}}
	}
}

// bulk are n names or lines of text, each of this many characters.
func bulk(n, each int) map[string]string {
	m := map[string]string{}
	for i := range n {
		m[fmt.Sprintf("bulk.test/%d", i)] = strings.Repeat("x", each)
	}
	return m
}

func ask(n int, name string, amount string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) {
		s.Spec.Resources = corev1.ResourceList{}
		for i := range n {
			s.Spec.Resources[corev1.ResourceName(fmt.Sprintf("%s%d", name, i))] = resource.MustParse(amount)
		}
	}
}

var abuses = map[string]abuse{
	"label replicated removed":      {change: func(s *authv1beta1.ResourceSlice) { delete(s.Labels, "liqo.io/replicated") }, refused: ownLabels},
	"label replicated false":        {change: setLabel("liqo.io/replicated", "false"), refused: ownLabels},
	"label originID removed":        {change: func(s *authv1beta1.ResourceSlice) { delete(s.Labels, "liqo.io/originID") }, refused: ownLabels},
	"label originID of another":     {change: setLabel("liqo.io/originID", "oslo"), refused: ownLabels},
	"label remote-cluster-id":       {change: setLabel("liqo.io/remote-cluster-id", "oslo"), refused: ownLabels},
	"a request of the provider":     {change: setLabel("liqo.io/replication", "true"), refused: ownLabels},
	"the ID of another":             {change: setConsumer("oslo"), refused: ownID},
	"no ID":                         {change: setConsumer(""), refused: ownID, later: true},
	"a finalizer":                   {change: func(s *authv1beta1.ResourceSlice) { s.Finalizers = []string{"rome.test/keep"} }, refused: finalizers},
	"Liqo's finalizer":              {change: func(s *authv1beta1.ResourceSlice) { s.Finalizers = []string{"crdreplicator.liqo.io/resource"} }, refused: finalizers},
	"the finalizer orphan":          {change: func(s *authv1beta1.ResourceSlice) { s.Finalizers = []string{"orphan"} }, refused: finalizers},
	"an owner":                      {change: setOwner("Namespace"), refused: owners},
	"65 resources":                  {change: ask(65, "bulk.test/n", "1"), refused: "spec.resources has more than 64 names"},
	"10,000 resources":              {change: ask(10_000, "r", "1"), refused: "spec.resources has more than 64 names"},
	"a name of a resource too long": {change: ask(1, "bulk.test/"+strings.Repeat("n", 307), "1"), refused: "spec.resources has a name of more than 317 characters"},
	"a class too long":              {change: moveTo(strings.Repeat("c", 64)), refused: "spec.class or spec.providerClusterID has more than 63 characters"},
	"a provider's ID too long":      {change: setProvider(strings.Repeat("p", 64)), refused: "spec.class or spec.providerClusterID has more than 63 characters"},
	"a CSR too long":                {change: setCSR(6145), refused: "spec.csr has more than 8192 characters"},
	"a CSR up to etcd's limit":      {change: setCSR(1_000_000), refused: "spec.csr has more than 8192 characters"},
	"65 labels":                     {change: setLabels(65), refused: "more than 64 labels"},
	"65 annotations":                {change: setAnnotations(bulk(64, 1)), refused: "more than 64 annotations"},
	"annotations too long":          {change: setAnnotations(bulk(1, 32_768)), refused: "annotations of more than 32768 characters in all"},
	"many annotations":              {change: setAnnotations(bulk(10_000, 8)), refused: "more than 64 annotations"},
}

func setProvider(id string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) { s.Spec.ProviderClusterID = new(corev1beta1.ClusterID(id)) }
}

// setCSR sets a request of so many bytes, which are 4/3 as many characters of base64.
func setCSR(bytes int) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) { s.Spec.CSR = make([]byte, bytes) }
}

// setLabels fills the labels up to so many.
func setLabels(n int) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) {
		for i := 0; len(s.Labels) < n; i++ {
			s.Labels[fmt.Sprintf("bulk.test/%d", i)] = strings.Repeat("x", 63)
		}
	}
}

func setAnnotations(more map[string]string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) { maps.Copy(s.Annotations, more) }
}

// TestAConsumersSliceStaysItsOwnCopy has a consumer, with the role that Liqo gives it, do all that the guard of slices is against.
func TestAConsumersSliceStaysItsOwnCopy(t *testing.T) {
	p := newPeering(t)
	withoutGuards(t, p, func() { // Nothing but the guard stands in the way.
		for name, a := range abuses {
			s := aSlice("unguarded", "gold")
			must(t, p.rome.Create(t.Context(), s))
			if err := edit(t, p.rome, s.Name, a.change); err != nil {
				t.Errorf("%s: refused without the guard too: %v", name, err)
			}
			must(t, edit(t, p.admin, s.Name, func(s *authv1beta1.ResourceSlice) { s.Finalizers = nil }))
			must(t, p.admin.Delete(t.Context(), s))
		}
	})
	must(t, makeSlice(t, p.rome, aSlice("s", "gold")))
	for name, a := range abuses {
		t.Run(name, func(t *testing.T) {
			want := refusal{metav1.StatusReasonInvalid, a.refused}
			if err := want.of(edit(t, p.rome, "s", a.change)); err != nil {
				t.Errorf("a change: %v", err)
			}
			fresh := aSlice("fresh", "gold")
			a.change(fresh)
			err := try(t, p.rome, fresh)
			if !a.later {
				err = want.of(err)
			}
			if err != nil {
				t.Errorf("a new slice: %v", err)
			}
			for name, by := range map[string]client.Client{"Liqo": p.manager, "an admin": p.admin} {
				if err := by.Create(t.Context(), fresh.DeepCopy(), client.DryRunAll); err != nil {
					t.Errorf("%s is refused too: %v", name, err)
				}
			}
		})
	}
	t.Run("an amount too long", func(t *testing.T) { // Which no Quantity prints.
		patch := fmt.Sprintf(`{"spec":{"resources":{"cpu":"%s1"}}}`, strings.Repeat("0", 32))
		err := p.rome.Patch(t.Context(), aSlice("s", ""), client.RawPatch(types.MergePatchType, []byte(patch)))
		if err := (refusal{metav1.StatusReasonInvalid, "an amount of more than 32: write it shorter"}).of(err); err != nil {
			t.Error(err)
		}
	})
}

// TestASliceWithinTheBoundsIsAccepted is as large as the guard lets a slice be.
func TestASliceWithinTheBoundsIsAccepted(t *testing.T) {
	p := newPeering(t)
	s := aSlice("s", "gold")
	must(t, makeSlice(t, p.rome, s))
	used := 0
	for k, v := range s.Annotations {
		used += len(k) + len(v)
	}
	fill := map[string]string{"bulk.test/fill": strings.Repeat("x", 32_768-used-len("bulk.test/fill"))}
	for name, change := range map[string]func(*authv1beta1.ResourceSlice){
		"64 resources":            ask(64, "bulk.test/n", "1"),
		"a long name":             ask(1, strings.Repeat("n", 316), "1"),
		"a long amount":           ask(1, "bulk.test/n", "9223372036854775807"),
		"a long class":            moveTo(strings.Repeat("c", 63)),
		"a long ID of a provider": setProvider(strings.Repeat("p", 63)),
		"a long CSR":              setCSR(6144),
		"64 labels":               setLabels(64),
		"64 annotations":          setAnnotations(bulk(63, 1)),
		"long annotations":        setAnnotations(fill),
		// The cost of the rules is within what the API server allows them.
		"all of it at once": func(s *authv1beta1.ResourceSlice) {
			ask(64, "bulk.test/"+strings.Repeat("n", 300), "9223372036854775807")(s)
			setLabels(64)(s)
			setAnnotations(bulk(62, 10))(s)
			setAnnotations(map[string]string{"fill": strings.Repeat("x", 30_000)})(s)
			setCSR(6144)(s)
			moveTo(strings.Repeat("c", 63))(s)
		},
	} {
		fresh := aSlice("fresh", "gold")
		change(fresh)
		if err := errors.Join(try(t, p.rome, fresh), edit(t, p.rome, "s", change)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		must(t, edit(t, p.rome, "s", func(s *authv1beta1.ResourceSlice) {
			clean := aSlice("s", "gold")
			s.Labels, s.Annotations, s.Spec = clean.Labels, clean.Annotations, clean.Spec
		}))
	}
	t.Run("what the provider's own people have added", func(t *testing.T) {
		must(t, edit(t, p.admin, "s", setLabels(70)))
		must(t, edit(t, p.admin, "s", setAnnotations(bulk(70, 1000))))
		must(t, edit(t, p.admin, "s", func(s *authv1beta1.ResourceSlice) { s.Finalizers = []string{"milan.test/backup"} }))
		must(t, edit(t, p.admin, "s", setOwner("ConfigMap")))
		must(t, edit(t, p.rome, "s", askFor("3")))
		for name, a := range map[string]abuse{
			"one more label":      {change: setLabels(71), refused: "more than 64 labels"},
			"one more annotation": {change: setAnnotations(map[string]string{"more": ""}), refused: "more than 64 annotations"},
			"a longer annotation": {change: setAnnotations(map[string]string{"bulk.test/0": strings.Repeat("x", 1001)}), refused: "annotations of more than 32768"},
			"one more finalizer":  {change: func(s *authv1beta1.ResourceSlice) { s.Finalizers = append(s.Finalizers, "rome.test/keep") }, refused: finalizers},
			"another owner":       {change: setOwner("Secret"), refused: owners},
		} {
			if err := (refusal{metav1.StatusReasonInvalid, a.refused}).of(edit(t, p.rome, "s", a.change)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		must(t, edit(t, p.admin, "s", func(s *authv1beta1.ResourceSlice) { s.Finalizers = nil }))
	})
}

// TestAConsumerLeavesAloneWhatIsNotItsCopy: the tenant namespace also holds what this cluster asks of the consumer.
func TestAConsumerLeavesAloneWhatIsNotItsCopy(t *testing.T) {
	p := newPeering(t)
	own := aSlice("of-the-provider", "gold")
	own.Labels = map[string]string{"liqo.io/replication": "true", "liqo.io/remoteID": "rome", "liqo.io/remote-cluster-id": "rome"}
	own.Spec.ConsumerClusterID = new(corev1beta1.ClusterID("provider"))
	own.Finalizers = []string{"crdreplicator.liqo.io/resource"}
	must(t, makeSlice(t, p.admin, own))
	takeOver := func(s *authv1beta1.ResourceSlice) { s.Labels, s.Spec = aSlice("", "").Labels, aSlice("", "gold").Spec }
	if err := (refusal{metav1.StatusReasonInvalid, ownSlice}).of(edit(t, p.rome, own.Name, takeOver)); err != nil {
		t.Error(err)
	}
	must(t, edit(t, p.manager, own.Name, askFor("3")))
	must(t, edit(t, p.manager, own.Name, func(s *authv1beta1.ResourceSlice) { s.Finalizers = nil }))
}

// TestADeletedSliceTakesItsQuotaAlong: what a consumer may say of the objects that a slice owns when it deletes the slice.
func TestADeletedSliceTakesItsQuotaAlong(t *testing.T) {
	p := newPeering(t)
	must(t, makeSlice(t, p.rome, aSlice("s", "gold")))
	want := refusal{metav1.StatusReasonInvalid, background}
	refused := map[string]client.DeleteOption{
		"orphan":           client.PropagationPolicy(metav1.DeletePropagationOrphan),
		"foreground":       client.PropagationPolicy(metav1.DeletePropagationForeground),
		"orphanDependents": &client.DeleteOptions{Raw: &metav1.DeleteOptions{OrphanDependents: new(true)}}, //nolint:staticcheck // clients may still send it
	}
	for name, option := range refused {
		if err := want.of(p.rome.Delete(t.Context(), aSlice("s", ""), option)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := p.admin.Delete(t.Context(), aSlice("s", ""), option, client.DryRunAll); err != nil {
			t.Errorf("%s by an admin: %v", name, err)
		}
	}
	all := client.InNamespace(tenantNamespace)
	if err := want.of(p.rome.DeleteAllOf(t.Context(), aSlice("", ""), all, client.PropagationPolicy(metav1.DeletePropagationOrphan))); err != nil {
		t.Errorf("all at once: %v", err)
	}
	must(t, p.rome.Delete(t.Context(), aSlice("s", "")))
	must(t, makeSlice(t, p.rome, aSlice("s", "gold")))
	must(t, p.rome.Delete(t.Context(), aSlice("s", ""), client.PropagationPolicy(metav1.DeletePropagationBackground)))
	must(t, makeSlice(t, p.rome, aSlice("s", "gold")))
	must(t, p.rome.DeleteAllOf(t.Context(), aSlice("", ""), all))
	// Nothing of it is left that would keep the name.
	must(t, makeSlice(t, p.rome, aSlice("s", "gold")))
}

// TestMetadataDoesNotPadASlice: what the API server keeps about who wrote which field counts as size too, and can be sent by the writer.
func TestMetadataDoesNotPadASlice(t *testing.T) {
	p := newPeering(t)
	must(t, makeSlice(t, p.rome, aSlice("s", "gold")))
	long := strings.Repeat("x", 140_000)
	paddings := map[string]struct {
		change  func(*authv1beta1.ResourceSlice)
		refused string
	}{
		"fields that do not exist": {claim(fmt.Sprintf(`{"f:spec":{"f:%s":{}}}`, long)), "metadata.managedFields has more than 131072 characters in all"},
		"resources not asked for":  {claim(fmt.Sprintf(`{"f:spec":{"f:resources":{"f:%s":{}}}}`, long)), "metadata.managedFields has more than 131072 characters in all"},
		"fields too deep":          {claim(`{"f:a":{"f:b":{"f:c":{"f:d":{"f:e":{}}}}}}`), "or fields deeper than a ResourceSlice has"},
		"a prefix of a name":       {func(s *authv1beta1.ResourceSlice) { s.GenerateName = long }, "metadata.generateName has more than 253 characters"},
	}
	withoutGuards(t, p, func() { // The API server itself lets all of it be.
		for name, padding := range paddings {
			must(t, p.rome.Create(t.Context(), aSlice("unguarded", "gold")))
			if err := edit(t, p.rome, "unguarded", padding.change); err != nil {
				t.Errorf("%s: refused without the guard too: %v", name, err)
			}
			must(t, p.admin.Delete(t.Context(), aSlice("unguarded", "")))
		}
	})
	for name, padding := range paddings {
		if err := (refusal{metav1.StatusReasonInvalid, padding.refused}).of(edit(t, p.rome, "s", padding.change)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Run("many field managers", func(t *testing.T) {
		const text = `{"apiVersion":"authentication.liqo.io/v1beta1","kind":"ResourceSlice","metadata":{"name":"s","annotations":{"a":"b"}}}`
		var err error
		for i := 0; i < 40 && err == nil; i++ {
			err = p.rome.Patch(t.Context(), aSlice("s", ""), client.RawPatch(types.ApplyPatchType, []byte(text)), client.FieldOwner(fmt.Sprintf("manager-%d", i)))
		}
		if err := (refusal{metav1.StatusReasonInvalid, "metadata.managedFields has more than 32 entries"}).of(err); err != nil {
			t.Error(err)
		}
		must(t, edit(t, p.rome, "s", askFor("3")))
	})
	t.Run("a slice with all there can be in it", func(t *testing.T) {
		must(t, edit(t, p.admin, "s", func(s *authv1beta1.ResourceSlice) { s.Finalizers = []string{"milan.test/backup"} }))
		must(t, edit(t, p.admin, "s", setOwner("ConfigMap")))
		must(t, editStatus(t, p.manager, "s", func(s *authv1beta1.ResourceSlice) {
			accept(s)
			s.Status.NodeLabels, s.Status.NodeSelector = map[string]string{"a": "b"}, map[string]string{"a": "b"}
			s.Status.StorageClasses = []corev1beta1.StorageType{{StorageClassName: "fast", Default: true}}
			s.Status.AuthParams = &authv1beta1.AuthParams{SignedCRT: []byte("x"), AwsConfig: &authv1beta1.AwsConfig{AwsRegion: "x"}}
		}))
		must(t, edit(t, p.rome, "s", askFor("4")))
		must(t, edit(t, p.admin, "s", func(s *authv1beta1.ResourceSlice) { s.Finalizers = nil }))
	})
}

// claim says that somebody manages these fields.
func claim(fields string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) {
		s.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "rome", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "authentication.liqo.io/v1beta1", Time: new(metav1.Now()),
			FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}, //nolint:staticcheck // it is not even valid
		}}
	}
}
