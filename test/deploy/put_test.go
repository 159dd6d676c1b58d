package deploy

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test"
)

// strict returns a client that rejects unknown fields, as kubectl does.
func strict() client.Client {
	return client.WithFieldValidation(cluster.client, metav1.FieldValidationStrict)
}

// dryRun returns a strict client that changes nothing.
func dryRun() client.Client { return client.NewDryRunClient(strict()) }

// put creates the objects, and replaces those that exist. kubectl takes many times the processor time,
// because it parses the API's schema for each object, so only tests of what kubectl does run it.
func put(t *testing.T, by client.Client, objects rendered) {
	t.Helper()
	for _, u := range objects {
		test.Must(t, putObject(context.WithoutCancel(t.Context()), by, u))
	}
}

func putObject(ctx context.Context, by client.Client, u *unstructured.Unstructured) error {
	for {
		wanted := u.DeepCopy()
		err := by.Create(ctx, wanted)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		live := u.DeepCopy()
		if err := by.Get(ctx, client.ObjectKeyFromObject(u), live); err != nil {
			return err
		}
		wanted = u.DeepCopy()
		wanted.SetResourceVersion(live.GetResourceVersion())
		if err := by.Update(ctx, wanted); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// stored returns those of the objects that exist as the API server has them, for put. They have the
// annotation that kubectl reads when it applies them again.
func stored(t *testing.T, objects rendered) (found rendered) {
	t.Helper()
	for _, u := range objects {
		live := u.DeepCopy()
		if err := cluster.client.Get(t.Context(), client.ObjectKeyFromObject(u), live); err != nil {
			test.Must(t, client.IgnoreNotFound(err))
			continue
		}
		live.SetResourceVersion("")
		live.SetUID("")
		live.SetManagedFields(nil)
		found = append(found, live)
	}
	return found
}
