package providers

import (
	"fmt"
	"strings"
	"testing"

	"proffer.dev/proffer/test"
)

// The page shows the table of TestTheProvidersAreAlignedAtAnyWidth.
func TestTheDocsShowTheTable(t *testing.T) {
	page := test.Read(t, "../../../docs/reference/commands/providers.md")
	for _, want := range []string{
		"```console\n$ kubectl proffer providers\n" + test.Read(t, "testdata/providers-80.txt") + "```\n",
		fmt.Sprintf("waits up to %.0f s", answerLimit.Seconds()),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks:\n%s", want)
		}
	}
}
