package kube

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
)

// electionLog returns a logger for client-go's election that logs cancelled requests as a detail.
// Requests are cancelled when the process ends or the Lease is lost; client-go would log each as an
// error with a stack trace, at a normal end.
func electionLog(log logr.Logger) logr.Logger {
	const detail = 1
	return log.WithSink(ErrorSink{log.GetSink(), func(to logr.LogSink, err error, message string, keysAndValues ...any) {
		switch {
		case !errors.Is(err, context.Canceled):
			to.Error(err, message, keysAndValues...)
		case to.Enabled(detail):
			to.Info(detail, message, append(keysAndValues, "err", err)...)
		}
	}})
}

// ErrorSink is a sink whose errors a function logs.
type ErrorSink struct {
	logr.LogSink
	LogError func(to logr.LogSink, err error, message string, keysAndValues ...any)
}

// Error implements logr.LogSink.
func (s ErrorSink) Error(err error, message string, keysAndValues ...any) {
	s.LogError(s.LogSink, err, message, keysAndValues...)
}

// WithValues implements logr.LogSink.
func (s ErrorSink) WithValues(keysAndValues ...any) logr.LogSink {
	return ErrorSink{s.LogSink.WithValues(keysAndValues...), s.LogError}
}

// WithName implements logr.LogSink.
func (s ErrorSink) WithName(name string) logr.LogSink {
	return ErrorSink{s.LogSink.WithName(name), s.LogError}
}
