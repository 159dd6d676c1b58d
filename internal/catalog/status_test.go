package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/test"
)

func entry() *Entry {
	return &Entry{
		Class: "gold",
		Policy: &offer.Policy{
			Name: "gold",
			Slices: offer.Slices{
				DenyExcess: true, Defaults: capacity.Amounts{capacity.Pods: 10, capacity.Memory: 1 << 29}, IngressClasses: []string{"nginx"}, LoadBalancerClasses: []string{},
			},
			Catalog: offer.Catalog{
				Title: "A100 nodes", URL: "https://example.com/gpu", Labels: map[string]string{"region": "eu"},
				Prices: map[string]string{"nvidia.com/gpu": "1.85", "memory": "0.0029", "cpu": "0.021"}, Currency: "EUR", Period: "Hour",
			},
		},
		Resources: []grant.Available{
			{Resource: capacity.CPU, Amount: 1500, Bound: grant.ByPool, Ceiling: 4000},
			{Resource: capacity.Memory, Amount: 1 << 30, Bound: grant.ByMax, Ceiling: 2 << 30},
		},
		Held: capacity.Amounts{capacity.Memory: 1 << 30},
		Nodes: capacity.Shapes{
			Largest: capacity.Amounts{capacity.CPU: 900, capacity.Memory: 3 << 30, capacity.Pods: 5, "example.com/other": 1},
			List:    []capacity.Shape{{Nodes: 3, Free: capacity.Amounts{capacity.CPU: 875, capacity.Memory: 3 << 30, "example.com/other": 1}}},
		},
		StorageClasses: []string{"fast"},
	}
}

func TestAnEntryIsWrittenAsTheAPIHasIt(t *testing.T) {
	got, err := json.MarshalIndent(StatusOf("rome", entry(), time.Unix(0, 0).UTC()), "", " ")
	test.Must(t, err)
	want := `{
 "clusterID": "rome",
 "class": "gold",
 "title": "A100 nodes",
 "labels": {
  "region": "eu"
 },
 "prices": {
  "cpu": "0.021",
  "memory": "0.0029",
  "nvidia.com/gpu": "1.85"
 },
 "currency": "EUR",
 "period": "Hour",
 "url": "https://example.com/gpu",
 "price": "cpu 0.021, memory 0.0029, nvidia.com/gpu 1.85 EUR/hour",
 "available": {
  "cpu": "1500m",
  "memory": "1Gi"
 },
 "summary": "cpu 1.5, memory 1Gi",
 "held": {
  "memory": "1Gi"
 },
 "ceiling": {
  "cpu": "4",
  "memory": "2Gi"
 },
 "largestPod": {
  "cpu": "900m",
  "memory": "2Gi"
 },
 "shapes": [
  {
   "nodes": 3,
   "free": {
    "cpu": "875m",
    "memory": "2Gi"
   }
  }
 ],
 "onExcess": "Deny",
 "defaults": {
  "memory": "512Mi"
 },
 "storageClasses": [
  "fast"
 ],
 "ingressClasses": [
  "nginx"
 ],
 "reason": "NotPeered",
 "message": "this cluster cannot ask before it has peered, with one Tenant; it could have cpu 1.5: all that is left; memory 1Gi: a cluster has at most 2Gi of this class, and this one holds 1Gi",
 "observedTime": "1970-01-01T00:00:00Z",
 "validUntil": "1970-01-01T00:15:00Z"
}`
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAnEntryStaysWithinItsBounds(t *testing.T) {
	e := entry()
	e.Resources, e.Policy.Catalog.Prices, e.StorageClasses = nil, map[string]string{}, nil
	for i := range 300 {
		name := fmt.Sprintf("example.com/%s%03d", strings.Repeat("n", 59), i)
		e.Resources = append(e.Resources, grant.Available{Resource: name, Amount: 1 << 62, Bound: grant.ByPool, Ceiling: 1 << 62})
		e.Policy.Catalog.Prices[name] = "999999999.999999999"
		e.StorageClasses = append(e.StorageClasses, fmt.Sprint("s", i))
	}
	e.Resources = append(e.Resources, grant.Available{Resource: capacity.Pods, Amount: 3, Ceiling: 3})
	s := StatusOf("rome", e, time.Now())
	if len(s.Available) != 64 || len(s.Ceiling) != 64 || len(s.StorageClasses) != 256 || len(s.Message) > 4096 || len(s.Price) > 256 || len(s.Summary) > 256 {
		t.Errorf("%d available, %d StorageClasses, a message of %d and a price of %d bytes: %s, a summary of %d",
			len(s.Available), len(s.StorageClasses), len(s.Message), len(s.Price), s.Price, len(s.Summary))
	}
	if want := "pods 3, example.com/"; !strings.HasPrefix(s.Summary, want) || !strings.HasSuffix(s.Summary, " more") {
		t.Errorf("the summary is %q", s.Summary)
	}
	if _, kept := s.Available["pods"]; !kept {
		t.Error("pods are left out")
	}
}

func TestTheCoreAndTheAPIHaveTheSameBoundsOfShapes(t *testing.T) {
	if capacity.MaxShapes != v1alpha1.MaxOfferShapes || capacity.MaxShapeResources != v1alpha1.MaxShapeResources {
		t.Error("they differ")
	}
}

func TestTheSummaryIsRoundedDown(t *testing.T) {
	for want, available := range map[string]capacity.Amounts{
		"cpu 13.7, memory 64.5Gi, pods 106, a 1, and 2 more": {capacity.CPU: 13750, capacity.Memory: 69363721830, capacity.Pods: 106, "a": 1, "b": 1, "c": 1},
		"cpu 0, memory 64.5Gi":                               {capacity.CPU: 0, capacity.Memory: 69363721830},
		"":                                                   {},
	} {
		if got := summary(available); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAnEntryThatGrantsFromOneNodeSaysSo(t *testing.T) {
	e := entry()
	if strings.Contains(e.Message(), rest.FromOneNode) || e.Fit() != "" {
		t.Errorf("of a pool: %s, %s", e.Fit(), e.Message())
	}
	e.Policy.Slices.FitNode, e.peering = true, active
	e.Resources[0].Bound = grant.BySeat
	e.Resources = append(e.Resources, grant.Available{Resource: "nvidia.com/gpu", Bound: grant.BySeat})
	const want = "each ResourceSlice is granted from one node; cpu 1.5: the most that one node has left; " +
		"memory 1Gi: a cluster has at most 2Gi of this class, and this one holds 1Gi; nvidia.com/gpu 0: nothing is left on one node"
	if got := e.Message(); got != want || e.Fit() != v1alpha1.FitNode {
		t.Errorf("%s, %s\nwant %s", e.Fit(), got, want)
	}
}
