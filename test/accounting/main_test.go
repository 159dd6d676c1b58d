package accounting

import (
	"testing"

	"proffer.dev/proffer/test/kubetest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }
