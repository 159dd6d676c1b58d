package capacity

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestTheDocsSayWhatIsLeftOut(t *testing.T) {
	const page = "../../docs/explanation/offers.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Concat(unshared, removalTaints, []string{virtualKubeletTaint})
	for _, l := range unfitLabels {
		names = append(names, l.key)
	}
	for _, name := range names {
		if !strings.Contains(string(text), "`"+name) {
			t.Errorf("%s does not name %s", page, name)
		}
	}
}
