package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
)

func TestConsumersComeFromTheForeignClustersOfAnyLiqoVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		crds []string
		spec map[string]any
		want map[string]bool
	}{
		"Liqo v0": {
			[]string{"../../internal/operator/testdata/discovery.liqo.io_foreignclusters.yaml"},
			map[string]any{
				"clusterIdentity": map[string]any{"clusterID": "rome", "clusterName": "rome"},
				"foreignAuthUrl":  "https://rome.example.com",
			},
			map[string]bool{"rome": true},
		},
		"without Liqo": {nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			started := controlplane.StartTest(t, controlplane.Options{CRDDirs: tc.crds})
			kubeconfig := started.KubeconfigFile(t)
			c := &cluster{client: newClient(t, kubeconfig)}
			if tc.spec != nil {
				none, err := c.describedConsumers(t.Context())
				if err != nil || none == nil || len(none) > 0 {
					t.Errorf("without ForeignClusters: got %v, %v", none, err)
				}
				peer := &unstructured.Unstructured{Object: map[string]any{"spec": tc.spec}}
				peer.SetGroupVersionKind(describing[1].kind)
				peer.SetName("rome")
				test.Must(t, c.client.Create(t.Context(), peer))
			}
			got, err := c.describedConsumers(t.Context())
			test.Must(t, err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
