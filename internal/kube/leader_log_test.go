package kube

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

func TestACancelledElectionRequestIsNotLoggedAsAnError(t *testing.T) {
	var lines []string
	sink := funcr.New(func(prefix, args string) { lines = append(lines, prefix+": "+args) }, funcr.Options{Verbosity: 1})
	log := electionLog(sink).WithName("leader").WithValues("replica", 1)
	log.Error(fmt.Errorf("get lease: %w", context.Canceled), "Error retrieving lease lock", "lock", "default/proffer.dev")
	log.Error(errors.New("forbidden"), "Error retrieving lease lock")
	log.Info("Successfully acquired lease")
	want := []string{
		`leader: "level"=1 "msg"="Error retrieving lease lock" "replica"=1 "lock"="default/proffer.dev"` +
			` "err"="get lease: context canceled"`,
		`leader: "msg"="Error retrieving lease lock" "error"="forbidden" "replica"=1`,
		`leader: "level"=0 "msg"="Successfully acquired lease" "replica"=1`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
