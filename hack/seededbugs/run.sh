#!/usr/bin/env bash
# Makes each of these mistakes in a copy of the last commit, and runs the tests that must notice it. Prints a
# table, and fails if a mistake goes unnoticed, or cannot be made any more: then write it for the code of today.
# An argument is a regular expression: only the mistakes whose names match are made.
set -euo pipefail
only=${1:-}
cd "$(dirname "$0")/../.."

dir=$(mktemp -d)
cleanup() {
  git worktree remove --force "$dir/tree" || true
  rm -rf "$dir"
}
trap cleanup EXIT
git worktree add --quiet --detach "$dir/tree" HEAD
cd "$dir/tree"

failed=0 made=0
row() { printf '%-10s %7s  %-52s %s\n' "$@"; }
verdict() { # VERDICT BUG DETAIL
  row "$1" "$((SECONDS - began)) s" "$2" "$3"
  [[ $1 == caught ]] || failed=1
}
# The flags are those of make test, which runs some packages without the race detector: hack/gotest/plan.go.
flags=(-vet=off -failfast -timeout 15m)
runs() { go test "${flags[@]}" -run "$tests" "./$package" >"$dir/out" 2>&1; }

bug() { # WHAT FILE EDIT-OF-SED TESTS [PACKAGE OF THE TESTS]
  local what=$1 file=$2 edit=$3 tests=$4 package=${5:-$(dirname "$2")} began=$SECONDS caught
  [[ $what =~ $only ]] || return 0
  made=1
  if ! runs || grep -q 'no tests to run' "$dir/out"; then
    verdict INVALID "$what" "the tests $tests do not pass without it: $(tail -n 1 "$dir/out")"
    return
  fi
  sed -i -E "$edit" "$file"
  if git diff --quiet; then
    verdict INVALID "$what" "nothing in $file matches $edit"
  elif runs; then
    verdict SURVIVED "$what" "$tests in $package"
  elif caught=$(grep -m 1 -oE -e '--- FAIL: \S+' -e '^panic: .*' "$dir/out"); then
    verdict caught "$what" "${caught#--- FAIL: }"
  else
    verdict INVALID "$what" "$(grep -m 1 -v '^#' "$dir/out")"
  fi
  git checkout --quiet .
}

row result time mistake 'noticed first by'
bug 'the pool is too large by one' internal/offer/step.go \
  's/s\.Counted-s\.Reserve\)/s.Counted-s.Reserve+1)/' .
bug 'a raise does not wait for what others give up' internal/grant/allocate.go \
  's/if a\.lowers\(\) \{/if a.lowers() \&\& false {/' .
bug 'a grant falls below what its pods use' internal/grant/keep.go \
  's/floor = max\(least, used\)/floor = least/' .
bug 'a record is lowered before the smaller answer' internal/grant/protocol/entry.go \
  's/case !want\.Gone && e\.lowers/case false \&\& e.lowers/' TestNoOrderOfEvents
bug 'the names of pods that are gone are kept' internal/capacity/ledger.go \
  '/names\.releaseAll\(e\.requests\)/d' .

# The rules of decisions, each found by the exploration, without an API server. These and the next do without the
# race detector, which make test has on for them: none of them is a race.
slices=internal/controllers/slice
bug 'what a class that was left has on record is granted' internal/grant/holding/ask.go \
  's/d\.pin\(i, share, share\.Less\(used\)\.Amounts\)/if settled { d.pin(i, used, nil) } else { d.pin(i, share, nil) }/; /^\t\t\tshare = used$/s/$/.With(share)/' \
  TestNoOrderOfEvents/moves_that_leave_pods $slices
bug 'a record that comes during the term is kept' internal/grant/holding/ask.go \
  '/b\.has = c\.vouchedOf\(b\.has\)/d' TestNoOrderOfEvents/a_record $slices
bug 'a replica that does not lead ignores the records' internal/controllers/slice/cache.go \
  '/e\.view\.Vouched = e\.view\.Holds/d' TestNoOrderOfEvents/moves_that_leave_pods
bug 'a decision that a write overtakes is assumed' internal/controllers/slice/cache_writes.go \
  's/ c\.Writing \|\|//' TestNoOrderOfEvents/gates_that_shut
bug 'pods are left to a slice that cannot be answered' internal/grant/holding/release.go \
  's/d\.Slices\[next\]\.Stuck \|\| //' TestNoOrderOfEvents/a_slice_created_again $slices

# What the short forms of the long tests must still notice: 12 kills, and 10 histories of the books.
books=TestTheBooksAreRightWhateverHappens
bug 'a new process does not read the open rows' internal/metasync/session.go \
  's/if err == nil \&\& !s\.known \{/if err == nil \&\& !s.known \&\& s.epoch != 0 {/' $books
bug 'no gap is recorded while no process kept the books' internal/metasync/session.go \
  's/epoch, reason = c\.Epoch\+1, gapStopped/epoch = c.Epoch + 1/' $books
bug 'a new leader does not count the records' internal/controllers/slice/cache.go \
  's/e\.grants\.Begin\(&r\.Record, r\.version\)/e.grants.Begin(nil, "")/' \
  TestNoCapacityIsGrantedTwiceUnderChaos internal/command

export CGO_ENABLED=1
flags+=(-race)
bug 'a slice of a foreign namespace is answered' internal/controllers/slice/gates.go \
  's/case s\.consumer != owner:/case s.consumer != owner \&\& false:/' TestEveryGate
bug 'a wake-up is lost' internal/table/publish.go \
  '/^\tt\.snapshot\.Store/{h;d}; /^\tchanges := /G' .
bug 'a stream leaks its subscription' internal/resourcereader/stream.go \
  '/defer subscription\.Close/d' TestAThousandStreams
bug 'a call is not counted until its request arrives' internal/resourcereader/calls.go \
  '/connectionOf\(ctx\)$/,/defer c\.endCall/d' TestACallCounts
bug 'a leader that was replaced writes to the books' internal/metasync/session.go \
  's/return 0, errFenced/epoch = c.Epoch/' TestALeaderThatWasReplaced

((made)) || { echo "no mistake has a name that matches $only" >&2; exit 1; }
exit "$failed"
