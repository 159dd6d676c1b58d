package devices

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"

	"proffer.dev/proffer/internal/source/devices/inventory"
	"proffer.dev/proffer/internal/source/masked"
	"proffer.dev/proffer/test"
)

// testBook is a book whose class selects by an attribute, so that decoding has to keep it.
func testBook() *book {
	w := newBookTest(&testing.T{})
	w.class("gpu", gpu, `device.attributes["a"].a == 1 || device.attributes["b"].b == "a" || device.capacity["a"].a.isGreaterThan(quantity("1"))`)
	return w.book
}

// check compares decoding an object's bytes with parsing the whole object.
func check[F any, P interface {
	message[F]
	Marshal() ([]byte, error)
}, K any](t *testing.T, full P, one func() *decoded[F, P, K]) {
	t.Helper()
	data, err := full.Marshal()
	test.Must(t, err)
	var again F // Nil and empty lists are the same in protobuf.
	test.Must(t, P(&again).Unmarshal(data))
	want, fromProtobuf, fromJSON := one(), one(), one()
	want.take(&again, full.GetResourceVersion())
	test.Must(t, fromProtobuf.Unmarshal(data))
	if data, err = json.Marshal(full); err != nil {
		t.Fatal(err)
	}
	test.Must(t, json.Unmarshal(data, fromJSON))
	for how, got := range map[string]*decoded[F, P, K]{"protobuf": fromProtobuf, "JSON": fromJSON} {
		options := cmp.Options{cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.EquateEmpty()}
		if diff := cmp.Diff(want.kept, got.kept, options); diff != "" {
			t.Errorf("from %s (-want +got):\n%s", how, diff)
		}
		if got.GetObjectMeta().GetResourceVersion() != full.GetResourceVersion() {
			t.Errorf("from %s: resource version %q", how, got.GetObjectMeta().GetResourceVersion())
		}
	}
}

// The objects have every field of the API, filled at random.
func TestDecodingAgreesWithParsingForRandomObjects(t *testing.T) {
	seed := rand.Int64()
	t.Logf("seed %d", seed)
	fill := randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewMilliQuantity(c.Int63n(1<<40), resource.DecimalSI)
			_ = q.String()
		},
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.Unix(c.Int63n(1<<31), 0) },
		func(t *metav1.MicroTime, c randfill.Continue) { *t = metav1.MicroTime(metav1.Unix(c.Int63n(1<<31), 0)) },
		func(*metav1.FieldsV1, randfill.Continue) {},
		func(s *string, c randfill.Continue) { *s = []string{"", "a", "b", "c", "pods"}[c.Intn(5)] },
		func(n *resourcev1.QualifiedName, c randfill.Continue) {
			*n = []resourcev1.QualifiedName{"a/a", "b/b", "c"}[c.Intn(3)]
		},
		func(e *resourcev1.DeviceTaintEffect, c randfill.Continue) {
			*e = []resourcev1.DeviceTaintEffect{"None", "NoSchedule", "NoExecute"}[c.Intn(3)]
		},
		func(*runtime.RawExtension, randfill.Continue) {}, // It has JSON of any shape, which protobuf need not have.
	)
	b := testBook()
	for range 60 {
		var c resourcev1.DeviceClass
		fill.Fill(&c)
		check(t, &c, newClass)
		var s resourcev1.ResourceSlice
		fill.Fill(&s)
		check(t, &s, b.newSlice)
		var claim resourcev1.ResourceClaim
		fill.Fill(&claim)
		check(t, &claim, newClaim)
		var rule resourcev1.DeviceTaintRule
		fill.Fill(&rule)
		check(t, &rule, newRule)
		if t.Failed() {
			return
		}
	}
}

func TestMalformedObjectsAreErrors(t *testing.T) {
	b := testBook()
	for what, data := range map[string][]byte{
		"a field beyond the end": {0x0a, 0x7f, 0x01}, "an unfinished tag": {0xff}, "field number 0": {0x02, 0x01, 0x01},
		"a number as the name": {0x0a, 0x02, 0x08, 0x01},
	} {
		for kind, o := range map[string]masked.Object{
			"class": newClass(), "slice": b.newSlice(), "claim": newClaim(), "rule": newRule(),
		} {
			if err := o.Unmarshal(data); err == nil {
				t.Errorf("%s was decoded as a %s", what, kind)
			}
			if err := o.UnmarshalJSON([]byte(`{"spec": 1, "status": 1}`)); err == nil {
				t.Errorf("a %s whose spec is a number was decoded", kind)
			}
		}
	}
}

// FuzzASlice decodes and counts what a driver sends.
func FuzzASlice(f *testing.F) {
	s := slice("n", "a", "b")
	s.Spec.Devices[0].ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "set", Counters: map[string]resourcev1.Counter{
		"memory": {Value: resource.MustParse("9223372036854775807")},
	}}}
	s.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "set", Counters: s.Spec.Devices[0].ConsumesCounters[0].Counters}}
	data, err := s.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{0x0a, 0x7f, 0x01})
	b := testBook()
	f.Fuzz(func(t *testing.T, data []byte) {
		o := b.newSlice()
		if err := o.Unmarshal(data); err != nil {
			return
		}
		p := inventory.Count([]inventory.Slice{o.kept}, inventory.State{Allocated: func(string) bool { return len(data)%2 == 0 }})
		for node, n := range p.Nodes {
			for resource, amount := range n.Amounts {
				if amount < 0 || amount > int64(len(o.kept.Devices)) {
					t.Errorf("%s has %d of %s, and the slice %d devices", node, amount, resource, len(o.kept.Devices))
				}
			}
		}
	})
}
