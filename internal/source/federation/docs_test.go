package federation

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"proffer.dev/proffer/test"
)

func TestTheDocsNameEachBound(t *testing.T) {
	const dir = "../../../docs/reference/commands/"
	text := regexp.MustCompile(`\s+`).ReplaceAllString(test.Read(t, dir+"catalog.md")+test.Read(t, dir+"providers.md"), " ")
	for _, want := range []string{
		fmt.Sprintf("| an answer | %d MiB, %d Offers, %d KiB for each Offer, %d KiB of memory for all, %d KiB of headers |", maxAnswer>>20, maxOffers, maxOffer>>10, maxKept>>10, maxHeader>>10),
		fmt.Sprintf("valid names, at most %d of each kind", maxItems),
		fmt.Sprintf("%d MiB for each broker", maxAnswer>>20),
		fmt.Sprintf("Of each list, %d items are shown, and %d bytes of each text.", maxItems, maxMessage),
		fmt.Sprintf("at most %d KiB, an `https://` server", maxKubeconfig>>10),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say: %s", want)
		}
	}
}
