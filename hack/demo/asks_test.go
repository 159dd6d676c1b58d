package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/api/rest"
	wire "proffer.dev/proffer/proto/resourcereader"
)

func TestAnOfferAgreesWithItsExplanationOnlyIfTheAmountsAreTheSame(t *testing.T) {
	read := func(cpu string) *wire.PoolResourceList {
		return &wire.PoolResourceList{ResourceLists: []*wire.ResourceList{{
			PoolPrefix: "gold", Resources: map[string]*wire.Quantity{"cpu": {String_: &cpu}},
		}}}
	}
	why := func(class string, amounts ...string) rest.Consumer {
		o := rest.Offer{
			Class: class, Policy: "p", Override: new(1), Resources: map[string]resource.Quantity{},
			Because: []string{"cpu 2: fixed at 2"},
		}
		for i := 0; i < len(amounts); i += 2 {
			o.Resources[amounts[i]] = resource.MustParse(amounts[i+1])
		}
		return rest.Consumer{Offers: []rest.Offer{o}}
	}
	for name, tc := range map[string]struct {
		read *wire.PoolResourceList
		why  rest.Consumer
		want bool
	}{
		"the same":         {read("2"), why("gold", "cpu", "2"), true},
		"another amount":   {read("3"), why("gold", "cpu", "2"), false},
		"another class":    {read("2"), why("silver", "cpu", "2"), false},
		"another resource": {read("2"), why("gold", "memory", "2"), false},
		"a resource more":  {read("2"), why("gold", "cpu", "2", "memory", "2"), false},
		"nothing read":     {&wire.PoolResourceList{}, why("gold", "cpu", "2"), false},
		"nothing at all":   {&wire.PoolResourceList{}, rest.Consumer{}, true},
	} {
		if _, agree := combine(tc.read, tc.why); agree != tc.want {
			t.Errorf("%s: agree is %v", name, agree)
		}
	}
	got, _ := combine(read("2"), why("gold", "cpu", "2"))
	want := []offered{
		{class: "gold", policy: "p[1]", amounts: map[string]string{"cpu": "2"}, because: []string{"cpu 2: fixed at 2"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(offered{})); diff != "" {
		t.Error(diff)
	}
}
