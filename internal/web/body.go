package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxArriving bounds the bodies that are read at a time. Each has at most rest.MaxChange bytes.
const maxArriving = 16

// readBody reads the whole body of a request, within the time of a simulation. While it arrives, it holds
// no place that others wait for: of too many bodies, the one that began first is given up.
func (s *Server) readBody(
	w http.ResponseWriter, r *http.Request, what string, limit int64,
) ([]byte, *apierrors.StatusError) {
	controller := http.NewResponseController(w)
	_ = controller.SetReadDeadline(time.Now().Add(s.simulateTimeout))
	a := s.arriving.begin(func() { _ = controller.SetReadDeadline(time.Now()) })
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	givenUp := s.arriving.end(a)
	var tooLarge *http.MaxBytesError
	switch {
	case givenUp:
		return nil, apierrors.NewTooManyRequests(
			fmt.Sprintf("%d bodies arrive at a time, and the %s began first: send it again", maxArriving, what),
			retryAfterSeconds)
	case err == nil:
		// From here on, only the end of the connection ends the context of the request. After an error the
		// deadline stays, so that nothing waits for the rest of the body before the answer is sent.
		_ = controller.SetReadDeadline(time.Time{})
		return body, nil
	case errors.As(err, &tooLarge):
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the %s has more than %d bytes", what, limit))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusRequestTimeout, Reason: metav1.StatusReasonTimeout,
			Message: fmt.Sprintf("the %s did not arrive within %v", what, s.simulateTimeout),
		}}
	}
	return nil, apierrors.NewBadRequest(err.Error())
}

// arrivals are the bodies that are being read, the one that began first at the front.
type arrivals struct {
	mu     sync.Mutex
	bodies []*arrival
}

type arrival struct {
	giveUp  func()
	givenUp bool
}

// begin adds a body. If there are too many, it gives up the first.
func (a *arrivals) begin(giveUp func()) *arrival {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.bodies) == maxArriving {
		a.bodies[0].givenUp = true
		a.bodies[0].giveUp()
		a.bodies = slices.Delete(a.bodies, 0, 1)
	}
	body := &arrival{giveUp: giveUp}
	a.bodies = append(a.bodies, body)
	return body
}

// end removes a body, and reports whether it was given up.
func (a *arrivals) end(body *arrival) (givenUp bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at := slices.Index(a.bodies, body); at >= 0 {
		a.bodies = slices.Delete(a.bodies, at, at+1)
	}
	return body.givenUp
}
