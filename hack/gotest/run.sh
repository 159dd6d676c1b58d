#!/usr/bin/env bash
# Runs go test with the race detector in one module after the other, through gotestsum, and sums up
# what ran:
#
#   hack/gotest/run.sh MODULE... -- ARGUMENTS OF GO TEST
#
# It fails if a test fails, and if a module ran no test: a pattern that matches nothing must not look
# like success.
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

# The race detector needs cgo. What the tests build is built without, as the Makefile builds it, and so
# is found in Go's build cache. `make lint` vets. Tests wait a quarter of the time, so there is work for
# one more package than there are processors.
set -- -race -vet=off -p $(($(getconf _NPROCESSORS_ONLN) + 1)) -exec "env CGO_ENABLED=0" "$@"
# The longest packages come first, so that the last one does not run alone.
longest=(./internal/command ./test/deploy ./internal/metasync ./internal/operator)
gotestsum=$(go tool -modfile="$root/hack/tools/go.mod" -n gotestsum)
SUMMARY=$(mktemp)
trap 'rm -f "$SUMMARY"' EXIT
export SUMMARY MODULE
failed=()
for MODULE in "${modules[@]}"; do
  arguments=("$@")
  if [[ $MODULE == . && ${*: -1} == ./... ]]; then
    arguments=("${@:1:$#-1}" "${longest[@]}" ./...)
  fi
  echo "=== module $MODULE: go test ${arguments[*]}"
  (cd "$MODULE" && CGO_ENABLED=1 "$gotestsum" --format=pkgname --format-hide-empty-pkg --post-run-command="bash $root/hack/gotest/count.sh" -- "${arguments[@]}") ||
    failed+=("$MODULE")
done
echo
cat "$SUMMARY"
if ((${#failed[@]})); then
  echo "failed in: ${failed[*]}" >&2
  exit 1
fi
