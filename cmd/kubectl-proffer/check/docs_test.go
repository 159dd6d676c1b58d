package check

import (
	"strings"
	"testing"

	"proffer.dev/proffer/test"
)

// The page shows the table of TestAnInstallationIsChecked, and has a row for each check.
func TestTheDocsShowTheTableAndListEachCheck(t *testing.T) {
	text := test.Read(t, "../../../docs/reference/commands/check.md")
	table := test.Read(t, "testdata/bad-80.txt")
	page := text
	if block := "```console\n$ kubectl proffer check\n" + table + "```\n"; !strings.Contains(page, block) {
		t.Errorf("the page lacks this block:\n%s", block)
	}
	for _, check := range []Check{
		checkCRDs, checkAccess, checkReplicas, checkLeader, checkNews, checkProxy, checkBooks, checkDevices, checkAddress, checkLiqo, checkLiqoAddress, checkLiqoSettings, checkGuards, checkPolicies, checkClasses,
		checkGrants, checkOrchestrations, checkKubelets,
	} {
		if !strings.Contains(page, "\n| `"+string(check)+"` | ") {
			t.Errorf("the page has no row for %s", check)
		}
	}
	for policy := range attempts(stage{}) {
		if !strings.Contains(page, "\n| `"+policy+"` | ") {
			t.Errorf("the page does not say how %s is tried", policy)
		}
	}
}
