package migrate

import (
	"os"
	"strings"
	"testing"

	"proffer.dev/proffer/test"
)

func TestTheDocsShowWhatIsPrinted(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/commands/migrate.md")
	test.Must(t, err)
	if block := "```yaml\n" + goldenOf(t, nodeLabelsResources) + "```\n"; !strings.Contains(string(page), block) {
		t.Errorf("the page lacks this block:\n%s", block)
	}
}
