package slice

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
)

// grantPage is the number of Grants that are listed at a time.
const grantPage = 500

// grantClient reads and writes Grants in the API server itself, not in a cache.
type grantClient struct {
	reader    client.Reader
	writer    client.Writer
	namespace string
}

// list returns all records, at one resource version.
func (g *grantClient) list(ctx context.Context) ([]grantRecord, error) {
	var all []grantRecord
	for token := ""; ; {
		var page v1alpha1.GrantList // A new one: decoding keeps what the next page omits.
		if err := g.reader.List(ctx, &page,
			client.InNamespace(g.namespace), client.Limit(grantPage), client.Continue(token)); err != nil {
			return nil, fmt.Errorf("listing the Grants: %w", err)
		}
		for i := range page.Items {
			all = append(all, parseGrant(&page.Items[i]))
		}
		if token = page.Continue; token == "" {
			return all, nil
		}
	}
}

// read returns the record of a slice, nil for none.
func (g *grantClient) read(ctx context.Context, of *grantRecord) (*grantRecord, error) {
	var object v1alpha1.Grant
	err := g.reader.Get(ctx, client.ObjectKey{Namespace: g.namespace, Name: grantName(of.name, of.uid)}, &object)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	r := parseGrant(&object)
	return &r, nil
}

// write creates a record without a version, or replaces one at its version. It returns the record
// that was written.
func (g *grantClient) write(ctx context.Context, r *grantRecord) (grantRecord, error) {
	object := r.grantObject(g.namespace)
	var err error
	if r.version == "" {
		err = g.writer.Create(ctx, object)
	} else {
		err = g.writer.Update(ctx, object)
	}
	if err != nil {
		return grantRecord{}, err
	}
	return parseGrant(object), nil
}

// remove deletes a record at its version. It is no error if the record does not exist.
func (g *grantClient) remove(ctx context.Context, r *grantRecord) error {
	object := &v1alpha1.Grant{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: grantName(r.name, r.uid)}}
	at := client.Preconditions{ResourceVersion: &r.version}
	if r.object != "" {
		at.UID = &r.object
	}
	return client.IgnoreNotFound(g.writer.Delete(ctx, object, at))
}
