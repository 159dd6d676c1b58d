package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/rehearse"
	"proffer.dev/proffer/internal/rehearse/world"
	"proffer.dev/proffer/internal/table"
)

// snapshot writes everything that was evaluated. Nodes and pods are those at this moment: they may be
// newer than the rest.
func (s *Server) snapshot(w http.ResponseWriter, r *http.Request, snapshot *table.Snapshot) {
	s.only(w, func() {
		defer boundWriting(w, r)()
		w.Header().Set("Content-Type", "application/json")
		if err := world.Encode(w, snapshot, s.ledger.Copy(), s.version, s.filters.Names()); err != nil {
			// A part has been sent: a broken connection is the only way to say that it is not all.
			panic(http.ErrAbortHandler)
		}
	})
}

// simulate rehearses the change in the body.
func (s *Server) simulate(w http.ResponseWriter, r *http.Request, snapshot *table.Snapshot) {
	s.only(w, func() {
		ctx, cancel := context.WithTimeout(r.Context(), s.simulateTimeout)
		defer cancel()
		change, err := s.readChange(w, r)
		if err != nil {
			fail(w, err)
			return
		}
		simulation, err := s.rehearse(ctx, snapshot, change)
		if err != nil {
			if apierrors.IsServiceUnavailable(err) {
				w.Header().Set("Retry-After", strconv.Itoa(retryAfterSeconds))
			}
			fail(w, err)
			return
		}
		defer boundWriting(w, r)()
		answer(w, simulation)
	})
}

// rehearse returns what a change would do. It ends when ctx does: with the time of a simulation, when
// the client is gone, or with the process.
func (s *Server) rehearse(
	ctx context.Context, snapshot *table.Snapshot, change *rest.Change,
) (*rest.Simulation, *apierrors.StatusError) {
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
	return nil, apierrors.NewTimeoutError(fmt.Sprintf("the simulation took longer than %v: simulate a smaller change", s.simulateTimeout), 0)
}

// readChange reads the body within the time of a simulation.
func (s *Server) readChange(w http.ResponseWriter, r *http.Request) (*rest.Change, *apierrors.StatusError) {
	controller := http.NewResponseController(w)
	_ = controller.SetReadDeadline(time.Now().Add(s.simulateTimeout))
	change, err := world.DecodeChange(http.MaxBytesReader(w, r.Body, rest.MaxChange))
	// From here on, only the end of the connection ends the context of the request.
	_ = controller.SetReadDeadline(time.Time{})
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return change, nil
	case errors.As(err, &tooLarge):
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the change has more than %d bytes", rest.MaxChange))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusRequestTimeout, Reason: metav1.StatusReasonTimeout,
			Message: fmt.Sprintf("the change did not arrive within %v", s.simulateTimeout),
		}}
	}
	return nil, apierrors.NewBadRequest(err.Error())
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
