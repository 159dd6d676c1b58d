package life

import (
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"proffer.dev/proffer/test"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // controller-runtime warns if no logger is set
	test.Main(m)
}
