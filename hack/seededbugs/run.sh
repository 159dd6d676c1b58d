#!/usr/bin/env bash
# Makes each of ten mistakes in a copy of the last commit, and runs the tests that must notice it. Prints a
# table, and fails if a mistake goes unnoticed, or cannot be made any more: then write it for the code of today.
set -euo pipefail
cd "$(dirname "$0")/../.."

dir=$(mktemp -d)
cleanup() {
  git worktree remove --force "$dir/tree" || true
  rm -rf "$dir"
}
trap cleanup EXIT
git worktree add --quiet --detach "$dir/tree" HEAD
cd "$dir/tree"

failed=0
row() { printf '%-10s %7s  %-52s %s\n' "$@"; }
verdict() { # VERDICT BUG DETAIL
  row "$1" "$((SECONDS - began)) s" "$2" "$3"
  [[ $1 == caught ]] || failed=1
}
# The flags are those of make test, which runs some packages without the race detector: hack/gotest/plan.go.
flags=(-vet=off -failfast -timeout 5m)
runs() { go test "${flags[@]}" -run "$tests" "./$(dirname "$file")" >"$dir/out" 2>&1; }

bug() { # WHAT FILE EDIT-OF-SED TESTS
  local what=$1 file=$2 edit=$3 tests=$4 began=$SECONDS caught
  if ! runs || grep -q 'no tests to run' "$dir/out"; then
    verdict INVALID "$what" "the tests $tests do not pass without it: $(tail -n 1 "$dir/out")"
    return
  fi
  sed -i -E "$edit" "$file"
  if git diff --quiet; then
    verdict INVALID "$what" "nothing in $file matches $edit"
  elif runs; then
    verdict SURVIVED "$what" "$tests in $(dirname "$file")"
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

exit "$failed"
