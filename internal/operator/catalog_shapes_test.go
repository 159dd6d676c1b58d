package operator

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/controllers/catalog"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

func TestAnOfferShowsWhatIsFreeOnSingleNodes(t *testing.T) {
	withLiqo(t)
	config := installCatalog(t)
	newTenant(t, "liqo-tenant-rome", "rome")
	for _, o := range nodestest.Example() {
		kubetest.Create(t, o)
	}
	kubetest.Create(t, nodestest.Node("full", nodestest.List("cpu", "64", "memory", "512Gi", "pods", "0"), nodestest.NodeLabel("pool", "gold")))
	kubetest.Create(t, kubetest.Policy("gold", kubetest.Selecting(kubetest.Matching(map[string]string{"pool": "gold"})), inClass("gold")))
	launchOperator(t, config, publishing(t, catalog.DefaultQPS))
	want := `{"cpu":"5","memory":"26Gi","pods":"108"} ` +
		`[{"nodes":1,"free":{"cpu":"5","memory":"24Gi"}},{"nodes":1,"free":{"cpu":"5","memory":"20Gi"}}]`
	var offer v1alpha1.Offer
	test.Eventually(t, func() string {
		err := kubetest.API(t).Get(t.Context(), client.ObjectKey{Namespace: "liqo-tenant-rome", Name: "gold"}, &offer)
		if err != nil {
			return err.Error()
		}
		largest, err := json.Marshal(offer.Status.LargestPod)
		test.Must(t, err)
		shapes, err := json.Marshal(offer.Status.Shapes)
		test.Must(t, err)
		return cmp.Diff(want, string(largest)+" "+string(shapes))
	})
	kubetest.Create(t, nodestest.Pod("more", "worker-2", nodestest.List("cpu", "5"), nodestest.PodLabel("offloading.liqo.io/origin", "rome")))
	test.Eventually(t, func() string {
		test.Must(t, kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(&offer), &offer))
		shapes, err := json.Marshal(offer.Status.Shapes)
		test.Must(t, err)
		return cmp.Diff(`[{"nodes":1,"free":{"cpu":"5","memory":"20Gi"}}]`, string(shapes))
	})
}

func TestTheShapesOfAnOfferAreBounded(t *testing.T) {
	test.Must(t, client.IgnoreAlreadyExists(kubetest.API(t).Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shapes"}})))
	shape := func(nodes int32, resources int) v1alpha1.NodeShape {
		free := map[corev1.ResourceName]v1alpha1.Quantity{}
		for i := range resources {
			free[corev1.ResourceName(fmt.Sprintf("example.com/r%d", i))] = v1alpha1.Quantity{Quantity: resource.MustParse("9223372036854775807")}
		}
		return v1alpha1.NodeShape{Nodes: nodes, Free: free}
	}
	for name, tc := range map[string]struct {
		shapes  []v1alpha1.NodeShape
		invalid bool
	}{
		"largest":   {slices.Repeat([]v1alpha1.NodeShape{shape(1<<31-1, v1alpha1.MaxShapeResources)}, v1alpha1.MaxOfferShapes), false},
		"nine":      {slices.Repeat([]v1alpha1.NodeShape{shape(1, 1)}, v1alpha1.MaxOfferShapes+1), true},
		"wide":      {[]v1alpha1.NodeShape{shape(1, v1alpha1.MaxShapeResources+1)}, true},
		"of-none":   {[]v1alpha1.NodeShape{shape(0, 1)}, true},
		"of-nodes":  {[]v1alpha1.NodeShape{shape(-1, 1)}, true},
		"of-amount": {[]v1alpha1.NodeShape{shape(1, 0)}, true},
	} {
		offer := &v1alpha1.Offer{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shapes", Name: name},
			Status: v1alpha1.OfferStatus{
				ClusterID: "rome", Class: name, Reason: v1alpha1.CatalogAvailable, Shapes: tc.shapes,
				ObservedTime: metav1.NewTime(time.Now()), ValidUntil: metav1.NewTime(time.Now()),
			},
		}
		err := kubetest.API(t).Create(t.Context(), offer)
		if err == nil {
			kubetest.Remove(t, offer)
		}
		if apierrors.IsInvalid(err) != tc.invalid || err != nil && !tc.invalid {
			t.Errorf("%s: %v", name, err)
		}
		if !tc.invalid && len(offer.Status.Shapes) != len(tc.shapes) {
			t.Errorf("%s: %d shapes are stored", name, len(offer.Status.Shapes))
		}
	}
}
