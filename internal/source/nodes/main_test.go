package nodes

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // controller-runtime prints a warning if no logger is set.
	os.Exit(m.Run())
}
