package output

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// patience is the time for which a command is silent.
const patience = time.Second

// Slow prints on w what the command waits for, once it takes longer than a second, if w is a
// terminal. The caller must call done, after which nothing is written.
func Slow(w io.Writer, what string) (done func()) {
	if _, ok := terminal(w); !ok {
		return func() {}
	}
	return slow(w, what)
}

// slow is Slow on anything.
func slow(w io.Writer, what string) (done func()) {
	var once sync.Once
	timer := time.AfterFunc(patience, func() { once.Do(func() { fmt.Fprintf(w, "%s...\n", what) }) })
	return func() {
		timer.Stop()
		once.Do(func() {}) // It waits for a write that has begun.
	}
}
