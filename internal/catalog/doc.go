// Package catalog works out what each consumer could have, before it asks: a snapshot -> entries by
// consumer and class. It is pure, like the packages offer and grant, which it asks.
//
// # What an entry says
//
//	available(K, C) = what grant.Prospects finds for a new ResourceSlice of consumer K in class C
//	held(K, C)      = what the ResourceSlices of K in C have been granted
//	ceiling(K, C)   = min(max, pool), or the fixed amount
//
// Nothing is available to a consumer that is cordoned or drained. There is an entry for each class
// in which a policy that is in force offers the consumer something, unless the policy hides it. The
// unnamed pool has none: no ResourceSlice can ask for it.
//
// # An example
//
// A pool of class gold has 10 cpu, and max is 6. Oslo's slices hold 5, Rome's 2: 3 are left, and
// Rome may have 4 more. Rome finds 3 available, 2 held and a ceiling of 6; Oslo finds 1, 5 and 6
// (TestAnEntryShowsWhatIsAvailableHeldAndTheMost).
//
// # What always holds
//
//   - A slice of exactly what is available is granted in full, if nothing else changes; one of more
//     is not (TestANewSliceOfWhatIsAvailableIsGrantedAndOfMoreIsNot, in package grant, and
//     TestWhatIsAvailableIsGranted here).
//   - Entries depend on other consumers only through the sum of what they hold
//     (TestNothingOfOtherConsumersShows).
package catalog
