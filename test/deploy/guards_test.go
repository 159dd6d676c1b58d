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

	"proffer.dev/proffer/test"
)

// The messages of the guards.
const (
	ownLabels = "a ResourceSlice of a consumer is a copy: " +
		"leave the labels liqo.io/replicated at \"true\", liqo.io/replication at \"false\""
	ownSlice   = "the labels of this ResourceSlice do not mark it as your copy: leave it as it is, or delete it"
	ownID      = "spec.consumerClusterID is the ID of the consumer: set it to your own cluster ID, and leave it set"
	finalizers = "a finalizer prevents this cluster from deleting the ResourceSlice: add none here"
	owners     = "an object of this cluster cannot own a copy: add no ownerReferences"
	background = "a ResourceSlice is deleted together with its Quota: " +
		"use the propagation policy Background, which is the default"

	manyResources   = "spec.resources has more than 64 names"
	longResource    = "spec.resources has a name of more than 317 characters"
	longID          = "spec.class or spec.providerClusterID has more than 63 characters"
	longCSR         = "spec.csr has more than 8192 characters"
	manyAnnotations = "more than 64 annotations"
	longAnnotations = "annotations of more than 32768 characters in all"
)

// An abuse is a change of a slice that Liqo's role permits to a consumer, but that Liqo never
// makes.
type abuse struct {
	change func(*authv1beta1.ResourceSlice)
	// refused is the guard's message.
	refused string
	// updateOnly: the guard permits a new slice to be like this, but no change to it.
	updateOnly bool
}

func setLabel(name, value string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) { metav1.SetMetaDataLabel(&s.ObjectMeta, name, value) }
}

func dropLabel(name string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) { delete(s.Labels, name) }
}

func setFinalizers(names ...string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) { s.Finalizers = names }
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
		s.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "v1", Kind: kind, Name: "x", UID: "3b9b2b43-8b5f-4b6f-8f3c-2f6c1b6d3d11"},
		}
	}
}

// bulk returns n entries with values of this many characters.
func bulk(n, each int) map[string]string {
	m := map[string]string{}
	for i := range n {
		m[fmt.Sprintf("bulk.test/%d", i)] = strings.Repeat("x", each)
	}
	return m
}

func requestResources(n int, name string, amount string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) {
		s.Spec.Resources = corev1.ResourceList{}
		for i := range n {
			s.Spec.Resources[corev1.ResourceName(fmt.Sprintf("%s%d", name, i))] = resource.MustParse(amount)
		}
	}
}

var abuses = map[string]abuse{
	"label replicated removed":              {change: dropLabel("liqo.io/replicated"), refused: ownLabels},
	"label replicated false":                {change: setLabel("liqo.io/replicated", "false"), refused: ownLabels},
	"label originID removed":                {change: dropLabel("liqo.io/originID"), refused: ownLabels},
	"label originID of another":             {change: setLabel("liqo.io/originID", "oslo"), refused: ownLabels},
	"label remote-cluster-id":               {change: setLabel("liqo.io/remote-cluster-id", "oslo"), refused: ownLabels},
	"the label of the provider's own slice": {change: setLabel("liqo.io/replication", "true"), refused: ownLabels},
	"the ID of another":                     {change: setConsumer("oslo"), refused: ownID},
	"no ID":                                 {change: setConsumer(""), refused: ownID, updateOnly: true},
	"a finalizer":                           {change: setFinalizers("rome.test/keep"), refused: finalizers},
	"Liqo's finalizer": {
		change: setFinalizers("crdreplicator.liqo.io/resource"), refused: finalizers,
	},
	"the finalizer orphan": {change: setFinalizers("orphan"), refused: finalizers},
	"an owner":             {change: setOwner("Namespace"), refused: owners},
	"65 resources":         {change: requestResources(65, "bulk.test/n", "1"), refused: manyResources},
	"10,000 resources":     {change: requestResources(10_000, "r", "1"), refused: manyResources},
	"a name of a resource too long": {
		change: requestResources(1, "bulk.test/"+strings.Repeat("n", 307), "1"), refused: longResource,
	},
	"a class too long":         {change: setClass(strings.Repeat("c", 64)), refused: longID},
	"a provider's ID too long": {change: setProvider(strings.Repeat("p", 64)), refused: longID},
	"a CSR too long":           {change: setCSR(6145), refused: longCSR},
	"a CSR up to etcd's limit": {change: setCSR(1_000_000), refused: longCSR},
	"65 labels":                {change: setLabels(65), refused: "more than 64 labels"},
	"65 annotations":           {change: setAnnotations(bulk(64, 1)), refused: manyAnnotations},
	"annotations too long":     {change: setAnnotations(bulk(1, 32_768)), refused: longAnnotations},
	"many annotations":         {change: setAnnotations(bulk(10_000, 8)), refused: manyAnnotations},
}

func setProvider(id string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) { s.Spec.ProviderClusterID = new(corev1beta1.ClusterID(id)) }
}

// setCSR sets a CSR of so many bytes. Base64 makes 4/3 as many characters of them.
func setCSR(bytes int) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) { s.Spec.CSR = make([]byte, bytes) }
}

// setLabels adds labels until there are n.
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

// TestAConsumerCannotAbuseItsCopyOfASlice tries everything that the slice guard prevents, with the
// role that Liqo gives a consumer.
func TestAConsumerCannotAbuseItsCopyOfASlice(t *testing.T) {
	p := newPeering(t)
	withoutGuards(t, p, func() { // Only the guard prevents this.
		for name, a := range abuses {
			s := aSlice("unguarded", "gold")
			test.Must(t, p.rome.Create(t.Context(), s))
			if err := edit(t, p.rome, s.Name, a.change); err != nil {
				t.Errorf("%s: rejected even without the guard: %v", name, err)
			}
			test.Must(t, edit(t, p.admin, s.Name, setFinalizers()))
			test.Must(t, p.admin.Delete(t.Context(), s))
		}
	})
	test.Must(t, createSlice(t, p.rome, aSlice("s", "gold")))
	for name, a := range abuses {
		t.Run(name, func(t *testing.T) {
			want := refusal{metav1.StatusReasonInvalid, a.refused}
			if err := want.of(edit(t, p.rome, "s", a.change)); err != nil {
				t.Errorf("a change: %v", err)
			}
			fresh := aSlice("fresh", "gold")
			a.change(fresh)
			err := tryCreate(t, p.rome, fresh)
			if !a.updateOnly {
				err = want.of(err)
			}
			if err != nil {
				t.Errorf("a new slice: %v", err)
			}
			for name, by := range map[string]client.Client{"Liqo": p.manager, "an admin": p.admin} {
				if err := by.Create(t.Context(), fresh.DeepCopy(), client.DryRunAll); err != nil {
					t.Errorf("%s is rejected too: %v", name, err)
				}
			}
		})
	}
	t.Run("an amount too long", func(t *testing.T) { // a Quantity would print it shorter
		patch := fmt.Sprintf(`{"spec":{"resources":{"cpu":"%s1"}}}`, strings.Repeat("0", 32))
		err := p.rome.Patch(t.Context(), aSlice("s", ""), client.RawPatch(types.MergePatchType, []byte(patch)))
		test.Check(t, (refusal{metav1.StatusReasonInvalid, "an amount of more than 32: write it shorter"}).of(err))
	})
}

// The guard accepts slices as large as its bounds permit.
func TestASliceWithinTheBoundsIsAccepted(t *testing.T) {
	p := newPeering(t)
	s := aSlice("s", "gold")
	test.Must(t, createSlice(t, p.rome, s))
	used := 0
	for k, v := range s.Annotations {
		used += len(k) + len(v)
	}
	fill := map[string]string{"bulk.test/fill": strings.Repeat("x", 32_768-used-len("bulk.test/fill"))}
	for name, change := range map[string]func(*authv1beta1.ResourceSlice){
		"64 resources":            requestResources(64, "bulk.test/n", "1"),
		"a long name":             requestResources(1, strings.Repeat("n", 316), "1"),
		"a long amount":           requestResources(1, "bulk.test/n", "9223372036854775807"),
		"a long class":            setClass(strings.Repeat("c", 63)),
		"a long ID of a provider": setProvider(strings.Repeat("p", 63)),
		"a long CSR":              setLongestRequest(t),
		"64 labels":               setLabels(64),
		"64 annotations":          setAnnotations(bulk(63, 1)),
		"long annotations":        setAnnotations(fill),
		// The rules stay within the API server's cost limit.
		"all of it at once": func(s *authv1beta1.ResourceSlice) {
			requestResources(64, "bulk.test/"+strings.Repeat("n", 300), "9223372036854775807")(s)
			setLabels(64)(s)
			setAnnotations(bulk(62, 10))(s)
			setAnnotations(map[string]string{"fill": strings.Repeat("x", 30_000)})(s)
			setLongestRequest(t)(s)
			setClass(strings.Repeat("c", 63))(s)
		},
	} {
		fresh := aSlice("fresh", "gold")
		change(fresh)
		if err := errors.Join(tryCreate(t, p.rome, fresh), edit(t, p.rome, "s", change)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		test.Must(t, edit(t, p.rome, "s", func(s *authv1beta1.ResourceSlice) {
			clean := aSlice("s", "gold")
			s.Labels, s.Annotations, s.Spec = clean.Labels, clean.Annotations, clean.Spec
		}))
	}
	t.Run("additions of the provider's admin", func(t *testing.T) {
		test.Must(t, edit(t, p.admin, "s", setLabels(70)))
		test.Must(t, edit(t, p.admin, "s", setAnnotations(bulk(70, 1000))))
		test.Must(t, edit(t, p.admin, "s", setFinalizers("milan.test/backup")))
		test.Must(t, edit(t, p.admin, "s", setOwner("ConfigMap")))
		test.Must(t, edit(t, p.rome, "s", requestCPU("3")))
		for name, a := range map[string]abuse{
			"one more label":      {change: setLabels(71), refused: "more than 64 labels"},
			"one more annotation": {change: setAnnotations(map[string]string{"more": ""}), refused: "more than 64 annotations"},
			"a longer annotation": {
				change:  setAnnotations(map[string]string{"bulk.test/0": strings.Repeat("x", 1001)}),
				refused: "annotations of more than 32768",
			},
			"one more finalizer": {change: setFinalizers("milan.test/backup", "rome.test/keep"), refused: finalizers},
			"another owner":      {change: setOwner("Secret"), refused: owners},
		} {
			if err := (refusal{metav1.StatusReasonInvalid, a.refused}).of(edit(t, p.rome, "s", a.change)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		test.Must(t, edit(t, p.admin, "s", setFinalizers()))
	})
}

// The tenant namespace also holds slices that the provider requests from the consumer.
func TestAConsumerCannotChangeASliceOfTheProvider(t *testing.T) {
	p := newPeering(t)
	own := aSlice("of-the-provider", "gold")
	own.Labels = map[string]string{
		"liqo.io/replication": "true", "liqo.io/remoteID": "rome", "liqo.io/remote-cluster-id": "rome",
	}
	own.Spec.ConsumerClusterID = new(corev1beta1.ClusterID("provider"))
	own.Finalizers = []string{"crdreplicator.liqo.io/resource"}
	test.Must(t, createSlice(t, p.admin, own))
	takeOver := func(s *authv1beta1.ResourceSlice) { s.Labels, s.Spec = aSlice("", "").Labels, aSlice("", "gold").Spec }
	test.Check(t, (refusal{metav1.StatusReasonInvalid, ownSlice}).of(edit(t, p.rome, own.Name, takeOver)))
	test.Must(t, edit(t, p.manager, own.Name, requestCPU("3")))
	test.Must(t, edit(t, p.manager, own.Name, setFinalizers()))
}

// A consumer cannot choose a propagation policy that keeps the objects which a slice owns.
func TestASliceCannotBeDeletedWithoutItsQuota(t *testing.T) {
	p := newPeering(t)
	test.Must(t, createSlice(t, p.rome, aSlice("s", "gold")))
	want := refusal{metav1.StatusReasonInvalid, background}
	refused := map[string]client.DeleteOption{
		"orphan":     client.PropagationPolicy(metav1.DeletePropagationOrphan),
		"foreground": client.PropagationPolicy(metav1.DeletePropagationForeground),
		//nolint:staticcheck // clients may still send it
		"orphanDependents": &client.DeleteOptions{Raw: &metav1.DeleteOptions{OrphanDependents: new(true)}},
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
	if err := want.of(p.rome.DeleteAllOf(t.Context(), aSlice("", ""), all,
		client.PropagationPolicy(metav1.DeletePropagationOrphan))); err != nil {
		t.Errorf("all slices in one request: %v", err)
	}
	test.Must(t, p.rome.Delete(t.Context(), aSlice("s", "")))
	test.Must(t, createSlice(t, p.rome, aSlice("s", "gold")))
	test.Must(t, p.rome.Delete(t.Context(), aSlice("s", ""), client.PropagationPolicy(metav1.DeletePropagationBackground)))
	test.Must(t, createSlice(t, p.rome, aSlice("s", "gold")))
	test.Must(t, p.rome.DeleteAllOf(t.Context(), aSlice("", ""), all))
	// The name is free again: the slice is completely gone.
	test.Must(t, createSlice(t, p.rome, aSlice("s", "gold")))
}

// Managed fields and generateName count towards the size of an object too, and the consumer can set
// them.
func TestTheMetadataOfASliceIsBounded(t *testing.T) {
	p := newPeering(t)
	test.Must(t, createSlice(t, p.rome, aSlice("s", "gold")))
	long := strings.Repeat("x", 140_000)
	paddings := map[string]struct {
		change  func(*authv1beta1.ResourceSlice)
		refused string
	}{
		"fields that do not exist": {
			claim(fmt.Sprintf(`{"f:spec":{"f:%s":{}}}`, long)),
			"metadata.managedFields has more than 131072 characters in all",
		},
		"resources that are not requested": {
			claim(fmt.Sprintf(`{"f:spec":{"f:resources":{"f:%s":{}}}}`, long)),
			"metadata.managedFields has more than 131072 characters in all",
		},
		"fields too deep": {
			claim(`{"f:a":{"f:b":{"f:c":{"f:d":{"f:e":{}}}}}}`), "or fields deeper than a ResourceSlice has",
		},
		"a prefix of a name": {
			func(s *authv1beta1.ResourceSlice) { s.GenerateName = long },
			"metadata.generateName has more than 253 characters",
		},
	}
	withoutGuards(t, p, func() { // The API server itself accepts all of them.
		for name, padding := range paddings {
			test.Must(t, p.rome.Create(t.Context(), aSlice("unguarded", "gold")))
			if err := edit(t, p.rome, "unguarded", padding.change); err != nil {
				t.Errorf("%s: rejected even without the guard: %v", name, err)
			}
			test.Must(t, p.admin.Delete(t.Context(), aSlice("unguarded", "")))
		}
	})
	for name, padding := range paddings {
		want := refusal{metav1.StatusReasonInvalid, padding.refused}
		if err := want.of(edit(t, p.rome, "s", padding.change)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Run("many field managers", func(t *testing.T) {
		const text = `{"apiVersion":"authentication.liqo.io/v1beta1","kind":"ResourceSlice",` +
			`"metadata":{"name":"s","annotations":{"a":"b"}}}`
		var err error
		for i := 0; i < 40 && err == nil; i++ {
			err = p.rome.Patch(t.Context(), aSlice("s", ""), client.RawPatch(types.ApplyPatchType, []byte(text)),
				client.FieldOwner(fmt.Sprintf("manager-%d", i)))
		}
		want := refusal{metav1.StatusReasonInvalid, "metadata.managedFields has more than 32 entries"}
		test.Check(t, want.of(err))
		test.Must(t, edit(t, p.rome, "s", requestCPU("3")))
	})
	t.Run("a slice with every field set", func(t *testing.T) {
		test.Must(t, edit(t, p.admin, "s", setFinalizers("milan.test/backup")))
		test.Must(t, edit(t, p.admin, "s", setOwner("ConfigMap")))
		test.Must(t, editStatus(t, p.manager, "s", func(s *authv1beta1.ResourceSlice) {
			accept(s)
			s.Status.NodeLabels, s.Status.NodeSelector = map[string]string{"a": "b"}, map[string]string{"a": "b"}
			s.Status.StorageClasses = []corev1beta1.StorageType{{StorageClassName: "fast", Default: true}}
			s.Status.AuthParams = &authv1beta1.AuthParams{SignedCRT: []byte("x"),
				AwsConfig: &authv1beta1.AwsConfig{AwsRegion: "x"}}
		}))
		test.Must(t, edit(t, p.rome, "s", requestCPU("4")))
		test.Must(t, edit(t, p.admin, "s", setFinalizers()))
	})
}

// claim sets these managed fields, as if the consumer had written the fields.
func claim(fields string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) {
		s.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "rome", Operation: metav1.ManagedFieldsOperationUpdate,
			APIVersion: "authentication.liqo.io/v1beta1", Time: new(metav1.Now()),
			//nolint:staticcheck // Raw is deprecated, and holds invalid fields here
			FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
		}}
	}
}
