package simulate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/test/kubetest"
)

func TestNodesAreParsed(t *testing.T) {
	got, err := parseAddNodes("3=cpu=8,memory=32Gi,nvidia.com/gpu=2,label=pool=gold,label=zone=")
	want := rest.AddedNodes{
		Count: 3, Allocatable: kubetest.Quantities("cpu", "8", "memory", "32Gi", "nvidia.com/gpu", "2"), Labels: map[string]string{"pool": "gold", "zone": ""},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n-want +got:\n%s", err, diff)
	}
	for value, problem := range map[string]string{
		"cpu=8":                 `"cpu" is not a number of nodes from 1 to 10000`,
		"0=cpu=8":               `"0" is not a number of nodes from 1 to 10000`,
		"10001=cpu=8":           `"10001" is not a number of nodes from 1 to 10000`,
		"3":                     `"" is neither an amount nor a label`,
		"3=cpu":                 `"cpu" is neither an amount nor a label`,
		"3=cpu=many":            `"many" is not an amount of cpu`,
		"3=cpu=-1":              `"-1" is not an amount of cpu`,
		"3=cpu=1,label=pool":    `"pool" is not a label`,
		"3=cpu=1,label=a=b c":   `"a=b c" is not a label`,
		"3=label=pool=gold":     "nodes without an amount change nothing",
		"3=cpu=8,,label=pool=a": `"" is neither an amount nor a label`,
	} {
		_, err := parseAddNodes(value)
		if err == nil || !strings.HasPrefix(err.Error(), "--add-nodes="+value+": "+problem+": write COUNT=") {
			t.Errorf("%s: got %v", value, err)
		}
	}
}
