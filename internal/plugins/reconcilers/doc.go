// Package reconcilers tells reconcilers that are written in Go what became of policies, offers, grants
// and consumers. It reads the table: see Runner.
//
// A reconciler is code of others. Whatever it does, it takes nothing from the evaluator but a send on
// a channel that never blocks. It has a queue in which each object waits once, so its memory is bounded
// by the objects that there are; its calls are made one at a time, in a goroutine of their own. A call
// that ignores the end of its context keeps back that reconciler alone, until it returns.
package reconcilers
