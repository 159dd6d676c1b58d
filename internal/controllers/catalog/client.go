package catalog

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errNotShown is returned for an entry that a later state of the catalog does not have.
var errNotShown = errors.New("the class is not in the catalog of the consumer any more")

// objectAPI reads and writes single objects.
type objectAPI interface {
	write(ctx context.Context, j job, now time.Time) (*observed, error)
	read(ctx context.Context, i id) (*observed, error)
}

// objectClient writes Offers and RoleBindings.
type objectClient struct{ dynamic.Interface }

func (c objectClient) resourceOf(i id) dynamic.ResourceInterface {
	return c.Resource(i.resource()).Namespace(i.namespace)
}

// write makes one write. It returns the object as it is now, nil for one that does not exist.
func (c objectClient) write(ctx context.Context, j job, now time.Time) (*observed, error) {
	if !j.present || j.have != nil && j.have.OtherRole {
		// The role of a RoleBinding cannot be changed: the right one follows with the next write.
		return nil, c.remove(ctx, j)
	}
	object, err := j.object(now)
	if err != nil {
		return nil, err
	}
	switch {
	case j.have != nil:
		if j.kind == offers {
			// Nobody else writes Offers, so nothing needs their managed fields. Keeping them would make
			// each write a fifth slower. One empty entry has the API server drop them, see
			// https://kubernetes.io/docs/reference/using-api/server-side-apply/#clearing-managedfields.
			object.SetManagedFields([]metav1.ManagedFieldsEntry{{}})
		}
		object.SetUID(j.have.UID)
		object.SetResourceVersion(j.have.Version)
		object, err = c.resourceOf(j.id).Update(ctx, object, metav1.UpdateOptions{FieldManager: proffer})
	case j.kind == offers:
		object, err = c.resourceOf(j.id).Create(ctx, object, metav1.CreateOptions{FieldManager: proffer})
	default:
		// RBAC can restrict an apply request to a name, but not a create request. Without force, it fails
		// if somebody has just created another RoleBinding.
		object, err = c.resourceOf(j.id).Apply(ctx, j.name, object, metav1.ApplyOptions{FieldManager: proffer})
	}
	if err != nil {
		return nil, err
	}
	after := observe(object)
	return &after, nil
}

// remove deletes what was found, and nothing newer.
func (c objectClient) remove(ctx context.Context, j job) error {
	if j.have == nil {
		return nil
	}
	at := metav1.Preconditions{UID: &j.have.UID, ResourceVersion: &j.have.Version}
	return client.IgnoreNotFound(c.resourceOf(j.id).Delete(ctx, j.name, metav1.DeleteOptions{Preconditions: &at}))
}

// read returns the object as it is in the API server, nil for one that does not exist.
func (c objectClient) read(ctx context.Context, i id) (*observed, error) {
	object, err := c.resourceOf(i).Get(ctx, i.name, metav1.GetOptions{})
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	o := observe(object)
	return &o, nil
}

// object builds what is to be written.
func (j job) object(now time.Time) (*unstructured.Unstructured, error) {
	if j.kind == bindings {
		return bindingOf(j.tenant, j.name, j.roles[roleOf[j.name]], j.subjects)
	}
	status, shown := j.state.offer(j.tenant, j.name, now.UTC().Truncate(time.Second))
	if !shown {
		return nil, errNotShown
	}
	return offerOf(j.tenant, &status)
}
