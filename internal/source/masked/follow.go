package masked

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"proffer.dev/proffer/internal/kube"
)

// NewClient returns a client of a group of the API, by a configuration that it changes. It decodes these kinds
// into objects of ours.
func NewClient(config *rest.Config, path string, group schema.GroupVersion, kinds Kinds) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, group)
	config.APIPath, config.GroupVersion = path, &group
	plain := serializer.NewCodecFactory(scheme).WithoutConversion()
	config.NegotiatedSerializer = codecs{plain, objectCreater{scheme, kinds}}
	return rest.RESTClientFor(config)
}

// OverHTTP1 returns a config for the first lists, which hold all objects. Over HTTP/2 the API
// server sends each object in a separate frame, which takes both sides half as long again
// (test/bench/README.md). Nothing is served before the first list is complete, so no reader gets
// old data if the connection dies silently meanwhile.
func OverHTTP1(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.NextProtos = []string{"http/1.1"}
	return config
}

// Follow returns a reflector that brings the objects of one kind to the store: those that a field selector
// selects, each decoded into what one returns. The reflector uses the client first once, for the first list. It
// uses the client api for everything else, and for the first list too if the client first fails.
func Follow[P Object](
	api, first rest.Interface, s *Store[P], one func() P, selector string, log logr.Logger,
) *toolscache.Reflector {
	request := func(api rest.Interface, o *metav1.ListOptions) *rest.Request {
		o.FieldSelector = selector
		// Next to the API server, compression takes both sides longer than sending the plain list.
		return api.Get().Resource(s.name).VersionedParams(o, metav1.ParameterCodec).SetHeader("Accept-Encoding", "identity")
	}
	list := func(ctx context.Context, o *metav1.ListOptions) (io.ReadCloser, error) {
		if once := first; once != nil {
			first = nil
			body, err := request(once, o).Stream(ctx)
			if err == nil {
				return body, nil
			}
			log.V(1).Info("The first list failed over HTTP/1.1; retrying with the default client",
				"resource", s.name, "error", err.Error())
		}
		return request(api, o).Stream(ctx)
	}
	// A list that is read object by object takes no more memory than a stream of initial events (WatchList). It takes half
	// the time and CPU of both sides, because for 50,000 pods a stream has 50,000 messages. The masks
	// also drop the annotation that marks the bookmark at the end of such a stream.
	objects := kube.ListThenWatch{ListWatch: &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (_ runtime.Object, err error) {
			body, err := list(ctx, &o)
			for err != nil && s.waitUntilServed(ctx, err) {
				body, err = list(ctx, &o)
			}
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, body.Close()) }()
			all, err := ReadList(body, one)
			if err != nil {
				return nil, fmt.Errorf("reading the list of %s: %w", s.name, err)
			}
			if s.absent != nil {
				s.absent(nil)
			}
			return all, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.Watch = true
			w, err := request(api, &o).Watch(ctx)
			return w, unlessEnding(ctx, err)
		},
	}}
	return toolscache.NewReflectorWithOptions(objects, one(), s, toolscache.ReflectorOptions{
		Logger: &log, Name: s.name, TypeDescription: s.name,
	})
}

// unlessEnding returns the error of opening a watch: io.EOF, which a reflector does not log, if the
// context has ended.
func unlessEnding(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return io.EOF
	}
	return err
}

// Store passes the objects of a kind from a reflector to the ledger. It keeps none.
type Store[P any] struct {
	name string
	// set takes the state of an object, remove an object that is gone, and replace the list of all
	// objects. Each reports whether the ledger has changed; changed is called if so.
	set, remove func(P) bool
	replace     func(iter.Seq[P]) bool
	changed     func()
	// absent is set for a kind that an API server may not serve, or refuse, see Optional.
	absent func(why error)

	once   sync.Once
	synced chan struct{}
}

// NewStore returns a store of a kind. The functions take the state of an object, an object that is gone, and the
// list of all objects. Each reports whether the ledger has changed; changed is called if so.
func NewStore[P any](
	name string, set, remove func(P) bool, replace func(iter.Seq[P]) bool, changed func(),
) *Store[P] {
	return &Store[P]{
		name: name, set: set, remove: remove, replace: replace, changed: changed, synced: make(chan struct{}),
	}
}

// retryAbsent is the time until the API server is asked again for a kind that it does not serve, or refuses.
const retryAbsent = 5 * time.Minute

// Optional lets the kind be one that the API server does not serve, or refuses: it has no objects then, absent is
// called with the reason, and the API server is asked again every five minutes. It is called with nil when the kind
// is served after all. It returns the store.
func (s *Store[P]) Optional(absent func(why error)) *Store[P] {
	s.absent = absent
	return s
}

// waitUntilServed waits for the next attempt to list an optional kind after an error, and reports whether there is
// one: not for other errors and kinds, and not after the end of the context.
func (s *Store[P]) waitUntilServed(ctx context.Context, err error) bool {
	if s.absent == nil || !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return false
	}
	s.absent(err)
	_ = s.Replace(nil, "") // It never fails.
	timer := time.NewTimer(retryAbsent)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

var _ toolscache.ReflectorStore = &Store[Object]{}

// Add implements cache.ReflectorStore.
func (s *Store[P]) Add(o any) error { return s.Update(o) }

// Update implements cache.ReflectorStore.
func (s *Store[P]) Update(o any) error {
	if s.set(o.(P)) {
		s.changed()
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *Store[P]) Delete(o any) error {
	if s.remove(o.(P)) {
		s.changed()
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *Store[P]) Replace(list []any, _ string) error {
	changed := s.replace(func(yield func(P) bool) {
		for _, o := range list {
			if !yield(o.(P)) {
				return
			}
		}
	})
	if changed {
		s.changed()
	}
	s.once.Do(func() { close(s.synced) })
	return nil
}

// Resync implements cache.ReflectorStore. It does nothing: the store has no handlers.
func (s *Store[P]) Resync() error { return nil }

// Name implements toolscache.DoneChecker.
func (s *Store[P]) Name() string { return s.name }

// Done implements toolscache.DoneChecker.
func (s *Store[P]) Done() <-chan struct{} { return s.synced }
