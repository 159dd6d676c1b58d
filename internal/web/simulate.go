package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/rehearse"
	"proffer.dev/proffer/internal/rehearse/world"
	"proffer.dev/proffer/internal/table"
)

// snapshot writes everything that was evaluated. Nodes and pods are read now: they may be newer than
// the rest.
func (s *Server) snapshot(w http.ResponseWriter, r *http.Request, snapshot *table.Snapshot) {
	leave, refused := enter(s.busy, oneAtATime)
	if refused != nil {
		fail(w, refused)
		return
	}
	defer leave()
	defer boundWriting(w, r)()
	w.Header().Set("Content-Type", "application/json")
	if err := world.Encode(w, snapshot, s.ledger.Copy(), s.version, s.filters.Names()); err != nil {
		// A part has been sent: a broken connection is the only way to say that it is not all.
		panic(http.ErrAbortHandler)
	}
}

// simulate rehearses the change in the body. The body is read before a place is taken.
func (s *Server) simulate(w http.ResponseWriter, r *http.Request, _ *table.Snapshot) {
	body, refused := s.readBody(w, r, "change", rest.MaxChange)
	if refused != nil {
		fail(w, refused)
		return
	}
	leave, refused := enter(s.busy, oneAtATime)
	if refused != nil {
		fail(w, refused)
		return
	}
	defer leave()
	simulation, refused := s.rehearse(r.Context(), body)
	if refused != nil {
		fail(w, refused)
		return
	}
	defer boundWriting(w, r)()
	answer(w, http.StatusOK, simulation)
}

// rehearse returns what a rest.Change, as JSON, would do to the current snapshot. It ends with the time of a
// simulation, and when ctx does: when the client is gone, or with the process.
func (s *Server) rehearse(ctx context.Context, body []byte) (*rest.Simulation, *apierrors.StatusError) {
	ctx, cancel := context.WithTimeout(ctx, s.simulateTimeout)
	defer cancel()
	change, err := world.DecodeChange(bytes.NewReader(body))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	snapshot := s.table.Current()
	known := rehearse.Of(snapshot, s.ledger.Copy())
	filters := s.filters.Rehearse()
	known.Now, known.Policies = time.Now(), filters.Policies(known.Policies)
	parsed, problems, err := world.ChangeOf(change, &known, filters)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	outcome := rehearse.Rehearse(&known, parsed, func() bool { return ctx.Err() != nil })
	switch {
	case outcome != nil:
		var unknown []string
		for _, name := range filters.Unanswered() {
			unknown = append(unknown, "answers of the filter "+name+" that did not arrive in time: "+
				"what it was asked about is left out")
		}
		return world.SimulationOf(outcome, evaluated(snapshot), problems, unknown), nil
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, apierrors.NewServiceUnavailable("this replica is shutting down: try again in a moment")
	}
	return nil, apierrors.NewTimeoutError(
		fmt.Sprintf("the simulation took longer than %v: simulate a smaller change", s.simulateTimeout), 0)
}

// boundWriting breaks the connection if the answer is not read in time, or when the process shuts down: a
// client that does not read would keep others out, and the process up. The caller must call the result
// when it has written the answer.
func boundWriting(w http.ResponseWriter, r *http.Request) (end func()) {
	controller, broken := http.NewResponseController(w), make(chan struct{})
	_ = controller.SetWriteDeadline(time.Now().Add(writeTimeout))
	stop := context.AfterFunc(r.Context(), func() {
		defer close(broken)
		_ = controller.SetWriteDeadline(time.Now())
	})
	return func() {
		if !stop() {
			<-broken // The connection may be changed only while the handler runs.
		}
	}
}
