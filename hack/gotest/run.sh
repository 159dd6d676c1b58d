#!/usr/bin/env bash
# Runs go test in one module after the other, through gotestsum, and sums up what ran:
#
#   hack/gotest/run.sh MODULE... -- ARGUMENTS OF GO TEST
#
# It fails if a test fails, and if a module ran no test: a pattern that matches nothing must not look
# like success. What failed in a module is shown again at the end, after the other modules.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

modules=()
while (($#)) && [[ $1 != -- ]]; do
  modules+=("$1")
  shift
done
if ((${#modules[@]} == 0 || $# < 2)); then
  echo "usage: hack/gotest/run.sh MODULE... -- ARGUMENTS OF GO TEST" >&2
  exit 2
fi
shift

gotestsum=$(go tool -modfile="$root/hack/tools/go.mod" -n gotestsum)
SUMMARY=$(mktemp)
output=$(mktemp)
trap 'rm -f "$SUMMARY" "$output"' EXIT
export SUMMARY MODULE
failed=()
for MODULE in "${modules[@]}"; do
  echo "=== module $MODULE: go test $*"
  (cd "$MODULE" && "$gotestsum" --format=pkgname --format-hide-empty-pkg --post-run-command="bash $root/hack/gotest/count.sh" -- "$@") 2>&1 |
    tee -a "$output" || failed+=("$MODULE")
done
echo
if ((${#failed[@]})); then
  # gotestsum lists the failures between these two lines, if there are any.
  sed -n '/^=== \(Failed\|Errors\)$/,/^DONE /p' "$output" | tail -n 200
fi
cat "$SUMMARY"
if ((${#failed[@]})); then
  echo "failed in: ${failed[*]}" >&2
  exit 1
fi
