package federation

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
)

func TestTheDocsNameEachBound(t *testing.T) {
	const dir = "../../../docs/reference/"
	text := regexp.MustCompile(`\s+`).ReplaceAllString(test.Read(t, dir+"bounds.md")+test.Read(t, dir+"commands/providers.md"), " ")
	for _, want := range []string{
		fmt.Sprintf("| Offers of a provider | %d with %d shapes of %d resources, %d KiB each, %d MiB in all; %d KiB of memory for what is kept; %d KiB of headers; a kubeconfig of %d KiB |", maxOffers, v1alpha1.MaxOfferShapes, v1alpha1.MaxShapeResources, maxOffer>>10, maxAnswer>>20, maxKept>>10, maxHeader>>10, maxKubeconfig>>10),
		fmt.Sprintf("%d MiB for each broker", maxAnswer>>20),
		fmt.Sprintf("Of each list, %d items are shown, and %d bytes of each text.", maxItems, maxMessage),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say: %s", want)
		}
	}
}
