#!/usr/bin/env bash
# Prints which tests there are no more since BASE, and which are new. BASE is a revision of git, which has the
# names of functions, or a copy of bin/test/names, which has those of subtests too. The name comes first,
# so that a test that has moved stands below itself.
set -euo pipefail

base=${1:?write make test-names BASE=revision, or BASE=copy of bin/test/names}

functions() { # REVISION, or --untracked for the working tree
  git grep -E -e '^func (Test|Benchmark|Fuzz)[^a-z(]\w*\(' "$1" -- '*_test.go' |
    sed -E "s|^($1:)?(.*)/[^/:]+:func (\w+)\(.*|\3 \2|; /^TestMain /d"
}
by_name() { sed -E 's/(\S+) (.*)/\2 \1/' "$1"; }

if [[ -f $base ]]; then
  old=$(by_name "$base")
  new=$(by_name bin/test/names)
else
  revision=$(git rev-parse --verify --quiet "$base^{commit}") || {
    echo "$base is neither a revision nor a file" >&2
    exit 1
  }
  old=$(functions "$revision")
  new=$(functions --untracked)
fi
changed=$(diff --new-line-format='+ %L' --old-line-format='- %L' --unchanged-line-format= \
  <(LC_ALL=C sort -u <<<"$old") <(LC_ALL=C sort -u <<<"$new") || true)
[[ -z $changed ]] || LC_ALL=C sort -s -k 2,2 <<<"$changed"
echo "$(grep -c '^-' <<<"$changed") tests less, $(grep -c '^+' <<<"$changed") tests more"
