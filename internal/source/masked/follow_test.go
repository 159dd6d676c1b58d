package masked

import (
	"context"
	"errors"
	"io"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAWatchThatCannotBeOpenedIsLoggedUnlessTheProcessEnds(t *testing.T) {
	refused := errors.New("refused")
	ctx, cancel := context.WithCancel(t.Context())
	if err := unlessEnding(ctx, refused); !errors.Is(err, refused) {
		t.Errorf("error %v while the process runs, want %v", err, refused)
	}
	if err := unlessEnding(ctx, nil); err != nil {
		t.Errorf("error %v of a watch that was opened", err)
	}
	cancel()
	// The reflector's default handler compares with ==.
	if err := unlessEnding(ctx, refused); err != io.EOF { //nolint:errorlint // see above
		t.Errorf("error %v while the process ends, want io.EOF", err)
	}
	if err := unlessEnding(ctx, nil); err != nil {
		t.Errorf("error %v of a watch that was opened while the process ends", err)
	}
}

func TestAnOptionalKindThatIsNotServedHasNoObjectsAndIsAskedForSeldom(t *testing.T) {
	kind := schema.GroupResource{Group: "resource.k8s.io", Resource: "deviceclasses"}
	for name, err := range map[string]error{
		"not served": apierrors.NewNotFound(kind, ""), "forbidden": apierrors.NewForbidden(kind, "", errors.New("RBAC")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen []string
				remove := func(string) bool { return false }
				replace := func(all iter.Seq[string]) bool {
					for range all {
						t.Error("it has an object")
					}
					seen = append(seen, "replaced")
					return false
				}
				s := NewStore("deviceclasses", remove, remove, replace, func() { t.Error("nothing has changed") })
				if s.waitUntilServed(t.Context(), err) {
					t.Error("a kind that must be served is waited for")
				}
				s.Optional(func(why error) { seen = append(seen, why.Error()) })
				if s.waitUntilServed(t.Context(), errors.New("the connection broke")) {
					t.Error("another error is taken for one of a kind that is not served")
				}
				start := time.Now()
				if again := s.waitUntilServed(t.Context(), err); !again || time.Since(start) != retryAbsent {
					t.Errorf("asked again: %v, after %v; want %v", again, time.Since(start), retryAbsent)
				}
				<-s.Done()
				if diff := cmp.Diff([]string{err.Error(), "replaced"}, seen); diff != "" {
					t.Error(diff)
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if s.waitUntilServed(ctx, err) {
					t.Error("asked again after the end")
				}
			})
		})
	}
}
