package kube

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
)

// electionLog returns a logger for client-go's election that logs cancelled requests as a detail.
// Requests are cancelled when the process ends or the Lease is lost; client-go would log each as an
// error with a stack trace, at a normal end.
func electionLog(log logr.Logger) logr.Logger { return log.WithSink(electionSink{log.GetSink()}) }

type electionSink struct{ logr.LogSink }

func (s electionSink) Error(err error, message string, keysAndValues ...any) {
	const detail = 1
	switch {
	case !errors.Is(err, context.Canceled):
		s.LogSink.Error(err, message, keysAndValues...)
	case s.Enabled(detail):
		s.Info(detail, message, append(keysAndValues, "err", err)...)
	}
}

func (s electionSink) WithValues(keysAndValues ...any) logr.LogSink {
	return electionSink{s.LogSink.WithValues(keysAndValues...)}
}

func (s electionSink) WithName(name string) logr.LogSink {
	return electionSink{s.LogSink.WithName(name)}
}
