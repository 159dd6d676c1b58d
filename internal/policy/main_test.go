package policy

import (
	"testing"

	"proffer.dev/proffer/internal/kubetest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }
