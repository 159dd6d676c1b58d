package consumers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"proffer.dev/proffer/internal/kube/jsonstream"
)

// The bounds of what a Lister reads.
const (
	// MaxForeignClusters bounds the ForeignClusters of each kind.
	MaxForeignClusters = 1000
	// MaxForeignClusterBytes bounds the JSON of one of them, without managedFields.
	MaxForeignClusterBytes = 64 << 10
	// MaxListBytes bounds the JSON of all of them, without managedFields.
	MaxListBytes = 8 << 20
	// listTimeout bounds the requests for one list.
	listTimeout = 10 * time.Second
	// MaxListAge is the time for which a list, or the error in its place, is returned to later callers.
	MaxListAge = 5 * time.Second
)

// ErrTooLarge is wrapped by the error for more than a Lister reads.
var ErrTooLarge = errors.New("more than is read of ForeignClusters")

// foreignClusters are the kinds that a Lister reads.
var foreignClusters = kinds[:2]

// Lister reads Liqo's ForeignClusters from the API server when a caller asks. However many callers
// there are, it sends at most one request for each kind at a time, and in MaxListAge.
type Lister struct {
	api rest.Interface
	log logr.Logger
	now func() time.Time

	// reading has the list that is being read, which its callers share.
	reading singleflight.Group
	// latest is the last one. Only reading uses it.
	latest *listing
}

// listing is a list that was read.
type listing struct {
	list  *ForeignClusters
	err   error
	ended time.Time
}

// NewLister returns a Lister of the API server in the configuration. It logs each error once, however
// many callers get it.
func NewLister(config *rest.Config, log logr.Logger) (*Lister, error) {
	config = dynamic.ConfigFor(config)
	config.GroupVersion, config.APIPath = nil, "/apis"
	api, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &Lister{api: api, log: log, now: time.Now}, nil
}

// ForeignClusters are all ForeignClusters at one time. They must not be changed.
type ForeignClusters struct {
	// Time is the time at which the API server was asked.
	Time time.Time
	// stored are the objects by name, then by kind, in the order of foreignClusters.
	stored []storedCluster
}

// storedCluster is a ForeignCluster without managedFields.
type storedCluster struct {
	kind   int
	name   string
	object map[string]any
}

// List returns the ForeignClusters, as they were at most MaxListAge ago. It waits for the API server
// until the context ends.
func (l *Lister) List(ctx context.Context) (*ForeignClusters, error) {
	reading := l.reading.DoChan("", func() (any, error) {
		if l.latest == nil || l.now().Sub(l.latest.ended) >= MaxListAge {
			// Others wait for it too.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listTimeout)
			defer cancel()
			list, err := l.read(ctx)
			if err != nil {
				l.log.Error(err, "Cannot list the ForeignClusters")
			}
			l.latest = &listing{list, err, l.now()}
		}
		return l.latest.list, l.latest.err
	})
	select {
	case latest := <-reading:
		list, _ := latest.Val.(*ForeignClusters)
		return list, latest.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// read reads the objects of all kinds.
func (l *Lister) read(ctx context.Context) (*ForeignClusters, error) {
	all := &ForeignClusters{Time: l.now()}
	budget := MaxListBytes
	for i, k := range foreignClusters {
		objects, err := l.readKind(ctx, k, &budget)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", k.GroupResource(), err)
		}
		for _, object := range objects {
			all.stored = append(all.stored, storedCluster{i, textAt(object, "metadata", "name"), object})
		}
	}
	slices.SortStableFunc(all.stored, func(a, b storedCluster) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.kind, b.kind))
	})
	return all, nil
}

// readKind reads the objects of one kind while they arrive. A kind that is not installed has none.
func (l *Lister) readKind(ctx context.Context, k kind, budget *int) ([]map[string]any, error) {
	body, err := l.api.Get().AbsPath(path.Join("/apis", k.Group, k.Version, k.Resource)).
		Param("limit", strconv.Itoa(MaxForeignClusters)).Stream(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	objects, err := readList(body, budget)
	return objects, errors.Join(err, body.Close())
}

// readList reads a list, and subtracts its size from the budget.
func readList(from io.Reader, budget *int) ([]map[string]any, error) {
	r := jsonstream.NewReader(from)
	var all []map[string]any
	isList := false
	_, err := r.Members(func(key string) (err error) {
		switch key {
		case "metadata":
			_, err = r.Members(func(key string) error {
				if key != "continue" {
					return nil
				}
				if more, _, err := r.String(1); err != nil || more == "" {
					return err
				}
				return fmt.Errorf("%w: there are more than %d", ErrTooLarge, MaxForeignClusters)
			})
		case "items":
			isList, err = r.Elements(func() error {
				object, err := readObject(r, budget)
				all = append(all, object)
				return err
			})
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case !isList:
		return nil, errors.New("the answer is not a list")
	}
	return all, nil
}

// readObject reads an object without its managedFields.
func readObject(r *jsonstream.Reader, budget *int) (map[string]any, error) {
	left := MaxForeignClusterBytes
	member := func(into map[string]any, key string) error {
		value, whole, err := r.Value(min(left, *budget))
		if err != nil {
			return err
		}
		if !whole {
			return fmt.Errorf("%w: one has more than %d bytes, or all have more than %d", ErrTooLarge,
				MaxForeignClusterBytes, MaxListBytes)
		}
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		into[key] = value
		left -= len(text)
		*budget -= len(text)
		return nil
	}
	object := map[string]any{}
	_, err := r.Members(func(key string) error {
		if key != "metadata" {
			return member(object, key)
		}
		metadata := map[string]any{}
		object[key] = metadata
		_, err := r.Members(func(key string) error {
			if key == "managedFields" {
				return nil
			}
			return member(metadata, key)
		})
		return err
	})
	return object, err
}
