package catalog

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/peering"
	"proffer.dev/proffer/test"
)

const page = "../../../docs/reference/commands/catalog.md"

func readPage(t *testing.T) string {
	t.Helper()
	return test.Read(t, page)
}

// The page shows the tables of TestTheCatalogIsAlignedAtAnyWidth.
func TestTheDocsShowTheTables(t *testing.T) {
	text := readPage(t)
	for command, file := range map[string]string{
		"kubectl proffer catalog":                         "catalog-80.txt",
		"kubectl proffer catalog --fits cpu=2,memory=8Gi": "fits-80.txt",
	} {
		table := test.Read(t, "testdata/"+file)
		if block := "```console\n$ " + command + "\n" + table + "```\n"; !strings.Contains(text, block) {
			t.Errorf("the page lacks this block:\n%s", block)
		}
	}
}

func TestTheDocsNameEachBoundAndSetting(t *testing.T) {
	text := regexp.MustCompile(`\s+`).ReplaceAllString(readPage(t), " ")
	for _, want := range []string{
		fmt.Sprintf("A provider has %.0f s, which `--request-timeout` changes; ten are asked at a time.", peering.TimeLimit.Seconds()),
		fmt.Sprintf("| %d | something is missing or has expired", statusIncomplete),
		fmt.Sprintf("| %d | nothing fits", statusNoFit),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say: %s", want)
		}
	}
	if peering.Parallel != 10 {
		t.Error("the page says that ten providers are asked at a time")
	}
}
