package operator

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"proffer.dev/proffer/test"
)

// faults lists what the plugins that Proffer replaces, and Liqo's own monitor, are known to get
// wrong. Each entry names the tests, in any package, that show that Proffer does not have the
// fault.
var faults = []struct {
	fault string
	tests []string
}{
	// fixed-resources
	{"amounts only in flags, so that a change takes a restart", []string{"TestFault_AmountsOnlyInFlagsAndTheSameForEverybody"}},
	{"the same amounts for everybody", []string{"TestFault_AmountsOnlyInFlagsAndTheSameForEverybody"}},
	{"a new subscriber notifies all the others", []string{"TestANewSubscriberDoesNotNotifyTheOthers", "TestANewSubscriptionDoesNotNotifyTheOthers"}},
	{"no health service", []string{"TestHealthFollowsTheServersLife", "TestReadiness"}},
	{"no graceful shutdown", []string{"TestShutdownEndsStreamsAndWaitingReads", "TestTheOperatorServesAndEndsInOrder"}},
	{"no validation", []string{"TestEveryRuleRefusesWhatBreaksIt", "TestParseErrorsNameTheFieldAndSayWhatToWrite"}},
	{"cpu=-5 is accepted", []string{"TestFault_NegativeAmountsAreAccepted"}},
	{"one Quantity is shared between calls, a data race in its cache of the text", []string{"TestTheSameQuantityIsNotSharedBetweenCalls"}},

	// node-labels-resources
	{"one global equality selector", []string{"TestFault_OneGlobalEqualitySelector"}},
	{"a map written by two informers without a lock, which ends the process at 500 nodes", []string{"TestFault_OneMapWrittenByTwoInformersWithoutALock"}},
	{"Send of one stream from several goroutines", []string{"TestFault_SendOfOneStreamFromSeveralGoroutines"}},
	{"pods keyed by name without namespace", []string{"TestFault_PodsOfOneNameInTwoNamespaces"}},
	{"allocatable of a known node is never refreshed", []string{"TestFault_AllocatableOfAKnownNodeIsNeverRefreshed"}},
	{"Succeeded, Failed and Pending pods are subtracted when a node comes and never released", []string{
		"TestFault_FinishedPodsAreNeverReleased", "TestFault_PodsBoundButNotYetRunningAreNotCounted",
	}},
	{"pods seen before their node are dropped", []string{"TestFault_PodsSeenBeforeTheirNodeAreDropped"}},
	{"the asking consumer's own pods are not added back", []string{"TestFault_AConsumersOwnPodsShrinkItsOffer", "TestAConsumersOwnPodsDoNotShrinkItsOffer"}},
	{"amounts go negative", []string{"TestFault_OffersGoNegative"}},
	{"pods are never counted", []string{"TestFault_PodsAreNeverCounted"}},
	{"everybody is notified at every pod event", []string{"TestFault_EverybodyIsNotifiedAtEveryPodEvent", "TestAnEditForOneConsumerDoesNotNotifyTheOthers"}},
	{"a part of the total is offered before all has been seen", []string{"TestFault_PartOfTheTotalBeforeAllHasBeenSeen"}},
	{"an extended resource that appears later is never offered", []string{"TestFault_AnExtendedResourceThatAppearsLaterIsNeverOffered"}},
	{"an in-place resize keeps the old request", []string{"TestFault_AnInPlaceResizeKeepsTheOldRequest"}},
	{"pod-level requests are not seen", []string{"TestFault_PodLevelRequestsAreNotSeen"}},
	{"a panic when a watched node was deleted during an outage of the API server", []string{
		"TestFault_ADeletionThatWasMissedPanics", "TestOffersSurviveAnOutageOfTheAPIServer",
	}},
	{"SIGTERM is ignored", []string{"TestAStopEndsStreamsWithoutABusyLoopOfLiqo"}},
	{"a subscriber that stops reading blocks the account and all others", []string{
		"TestAStreamThatStopsReadingDelaysNeitherPublishingNorTheOthers", "TestPublishingIsNeverBlockedByASubscriberThatDoesNotRead",
	}},

	// Liqo's LocalResourceMonitor
	{"read, modify and write without a lock", []string{"TestFault_OneMapWrittenByTwoInformersWithoutALock"}},
	{"a negative value zeroes everything for good", []string{"TestFault_ANegativeValueZeroesEverythingForGood"}},
	{"changes of less than a core are lost", []string{"TestFault_AllocatableOfAKnownNodeIsNeverRefreshed"}},
	{"pods of a node that is not ready are still subtracted", []string{"TestFault_PodsOfANotReadyNodeAreStillSubtracted"}},
	{"cordoned nodes are offered", []string{"TestFault_CordonedNodesAreOffered"}},
	{"pods that are bound and do not run yet are not subtracted", []string{"TestFault_PodsBoundButNotYetRunningAreNotCounted"}},
	{"a panic on cache.DeletedFinalStateUnknown", []string{"TestFault_ADeletionThatWasMissedPanics", "TestOnEventsSetsExistingObjectsAndRemovesDeletedOnes"}},
	{"no handling of an in-place resize", []string{"TestFault_AnInPlaceResizeKeepsTheOldRequest"}},
	{"GPU x 0.3 = 0 by float maths", []string{
		"TestFault_PercentagesByFloatMathsLoseDevices", "TestFault_AnExtendedResourceThatAppearsLaterIsNeverOffered",
	}},

	// Further faults in what the plugins and the monitor count.
	{"virtual nodes and shadow pods count", []string{"TestFault_VirtualNodesAndShadowPodsCount"}},
	{"a node without allocatable, or a pod on an unknown node, upsets the rest", []string{"TestFault_ANodeWithoutAllocatableOrAPodOnAnUnknownNode"}},
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\) \{$`)

func TestEveryFaultOfTheIndexHasItsTest(t *testing.T) {
	there := map[string]bool{}
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range testFunction.FindAllSubmatch(text, -1) {
			there[string(match[1])] = true
		}
		return err
	})
	test.Must(t, err)
	var named []string
	for _, f := range faults {
		if len(f.tests) == 0 {
			t.Errorf("no test for the fault: %s", f.fault)
		}
		for _, name := range f.tests {
			if !there[name] {
				t.Errorf("%s: there is no test %s", f.fault, name)
			}
		}
		named = append(named, f.tests...)
	}
	for name := range there {
		if strings.HasPrefix(name, "TestFault_") && !slices.Contains(named, name) {
			t.Errorf("%s is not in the index", name)
		}
	}
}
