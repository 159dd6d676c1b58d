package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
)

// ends has the functions of AtEnd.
var ends struct {
	sync.Mutex
	all []func() error
}

// AtEnd has f called when all tests of the package have run, the latest function first. It is for what several tests
// share. The TestMain of the package must call Main.
func AtEnd(f func() error) {
	ends.Lock()
	defer ends.Unlock()
	ends.all = append(ends.all, f)
}

// Main is the TestMain of a package whose tests share something. It calls begin, then runs the tests, which are
// usually a *testing.M, and ends what they share.
func Main(m interface{ Run() int }, begin ...func(context.Context) error) {
	code, err := 1, error(nil)
	for _, f := range begin {
		if err == nil {
			err = f(context.Background())
		}
	}
	if err == nil {
		code = m.Run()
	}
	ends.Lock()
	for _, end := range slices.Backward(ends.all) {
		err = errors.Join(err, end())
	}
	ends.Unlock()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}
