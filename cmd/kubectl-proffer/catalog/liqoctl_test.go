package catalog

import (
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
)

func TestTheCommandIsForTheClusterOfTheCaller(t *testing.T) {
	config := genericclioptions.NewConfigFlags(true)
	*config.Context, *config.KubeConfig = "rome's; touch x", "a file"
	got := liqoctlFor(operatorclient.NewFlags(config)).CreateSlice("milan", &rest.FederationOffer{OfferStatus: v1alpha1.OfferStatus{Class: "gold"}}, nil)
	if want := ` --class gold --kubeconfig 'a file' --context 'rome'\''s; touch x'`; !strings.HasSuffix(got, want) {
		t.Errorf("got %s\nwant it to end with %s", got, want)
	}
}
