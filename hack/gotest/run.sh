#!/usr/bin/env bash
# Runs go test with the race detector in each module, through gotestsum, and sums up what ran:
#
#   hack/gotest/run.sh MODULE... -- ARGUMENTS OF GO TEST
#
# The first module runs alone, the others two at a time: each of them has only one or two packages.
# It fails if a test fails, and if a module ran no test: a pattern that matches nothing must not look
# like success.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)

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
GOTESTSUM=$(go tool -modfile="$HERE/../tools/go.mod" -n gotestsum)
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
SUMMARY=$results/summary FAILED=$results/failed
touch "$SUMMARY" "$FAILED"
export HERE GOTESTSUM SUMMARY FAILED
bash "$HERE/module.sh" "${modules[0]}" "$@"
if ((${#modules[@]} > 1)); then
  # xargs, unlike the shell, leaves Ctrl-C to what it runs.
  printf '%s\0' "${modules[@]:1}" | LABEL=yes xargs -0 -P 2 -I '{}' bash "$HERE/module.sh" '{}' "$@"
fi
echo
cat "$SUMMARY"
if [[ -s $FAILED ]]; then
  echo "failed in: $(paste -sd' ' "$FAILED")" >&2
  exit 1
fi
