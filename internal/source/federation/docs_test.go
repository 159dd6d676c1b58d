package federation

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"proffer.dev/proffer/test"
)

func TestTheDocsNameEachBound(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/commands/catalog.md")
	test.Must(t, err)
	text := regexp.MustCompile(`\s+`).ReplaceAllString(string(page), " ")
	for _, want := range []string{
		fmt.Sprintf("| an answer | %d MiB, %d Offers, %d KiB for each Offer, %d KiB of memory for all, %d KiB of headers |", maxAnswer>>20, maxOffers, maxOffer>>10, maxKept>>10, maxHeader>>10),
		fmt.Sprintf("valid names, at most %d of each kind", maxItems),
		fmt.Sprintf("at most %d KiB, an `https://` server", maxKubeconfig>>10),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say: %s", want)
		}
	}
}
