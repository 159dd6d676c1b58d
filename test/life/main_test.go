package life

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"proffer.dev/proffer/test/process"
)

// program is the path of the operator that these tests build.
var program string

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // controller-runtime warns if no logger is set
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "proffer-life-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if program, err = process.Build(context.Background(), dir); err != nil {
		return 1, err
	}
	return m.Run(), nil
}
