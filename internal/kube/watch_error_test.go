package kube

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

func TestAnInformerThatIsBeingStoppedReportsNoFailure(t *testing.T) {
	lines := 0
	log := funcr.New(func(_, _ string) { lines++ }, funcr.Options{})
	ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), log))
	defer cancel()
	reflector := toolscache.NewReflector(nil, &corev1.Node{}, toolscache.NewStore(toolscache.MetaNamespaceKeyFunc), 0)
	LogWatchError(ctx, reflector, errors.New("the server is gone"))
	if lines != 1 {
		t.Errorf("%d lines about a failure, want 1", lines)
	}
	cancel()
	LogWatchError(ctx, reflector, ctx.Err())
	if lines != 1 {
		t.Errorf("%d lines, want none about the end of a request of a stopped informer", lines-1)
	}
}
