package operatorclient

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"proffer.dev/proffer/api/v1alpha1"
)

// PolicyEditor is the ClusterRole with the right to write ResourcePolicies.
const PolicyEditor = "proffer-resourcepolicy-editor"

// DryRun has the API server check a write without making it.
var DryRun = []string{metav1.DryRunAll}

// Policies returns the ResourcePolicies of the cluster that the flags name.
func (f *Flags) Policies() (dynamic.ResourceInterface, error) {
	config, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	return client.Resource(v1alpha1.GroupVersion.WithResource("resourcepolicies")), nil
}

// DryRunPolicy returns a policy as the API server would store it, in the place of the one of its name if there is one.
func DryRunPolicy(
	ctx context.Context, in dynamic.ResourceInterface, policy *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	policy = policy.DeepCopy()
	policy.SetUID("")
	policy.SetResourceVersion("")
	current, err := in.Get(ctx, policy.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return in.Create(ctx, policy, metav1.CreateOptions{DryRun: DryRun, FieldValidation: metav1.FieldValidationStrict})
	}
	if err != nil {
		return nil, err
	}
	policy.SetResourceVersion(current.GetResourceVersion())
	return in.Update(ctx, policy, metav1.UpdateOptions{DryRun: DryRun, FieldValidation: metav1.FieldValidationStrict})
}
