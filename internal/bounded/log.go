package bounded

import (
	"bytes"
	"log"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
)

const (
	// maxLine bounds what is logged of a problem, which may have a stack trace, in bytes.
	maxLine = 4 << 10
	// handshakePeriod is the time between two lines on TLS handshakes, of which strangers cause any number.
	handshakePeriod = time.Minute
	// problemPeriod is the time between two lines on other problems, and problemBurst how many come at once.
	problemPeriod, problemBurst = time.Second, 10
)

// serverLog passes on what a server reports, a bounded number of lines.
type serverLog struct {
	log                  logr.Logger
	handshakes, problems *rate.Limiter
}

func errorLog(to logr.Logger) *log.Logger {
	return log.New(&serverLog{
		log: to, handshakes: rate.NewLimiter(rate.Every(handshakePeriod), 1),
		problems: rate.NewLimiter(rate.Every(problemPeriod), problemBurst),
	}, "", 0)
}

// Write implements io.Writer. A logger writes each line at once.
func (l *serverLog) Write(line []byte) (int, error) {
	detail := string(bytes.TrimSpace(line[:min(len(line), maxLine)]))
	switch {
	case bytes.HasPrefix(line, []byte("http: TLS handshake error")):
		if l.handshakes.Allow() {
			l.log.V(1).Info("A TLS handshake failed", "detail", detail)
		}
	case l.problems.Allow():
		l.log.Error(nil, "The HTTP server reports a problem", "detail", detail)
	}
	return len(line), nil
}
