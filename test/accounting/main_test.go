package accounting

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"proffer.dev/proffer/test/dbtest"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/process"
)

// program is the path of the operator that these tests build.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "proffer-accounting-")
	if err == nil {
		program, err = process.Build(context.Background(), dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, errors.Join(err, os.RemoveAll(dir)))
		os.Exit(1)
	}
	kubetest.Main(cleaned{m, dir})
}

// cleaned removes what the tests share when they have run.
type cleaned struct {
	*testing.M
	dir string
}

func (c cleaned) Run() int {
	code := c.M.Run()
	if err := errors.Join(dbtest.StopShared(), os.RemoveAll(c.dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}
