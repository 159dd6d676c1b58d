package migrate

import (
	"strings"
	"testing"

	"proffer.dev/proffer/test"
)

func TestTheDocsShowWhatIsPrinted(t *testing.T) {
	page := test.Read(t, "../../../docs/reference/commands/migrate.md")
	if block := "```yaml\n" + goldenOf(t, nodeLabelsResources) + "```\n"; !strings.Contains(page, block) {
		t.Errorf("the page lacks this block:\n%s", block)
	}
}
