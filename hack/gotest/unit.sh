#!/usr/bin/env bash
# Runs the tests of every package of the operator's module that needs no control plane, with the race
# detector: those whose tests do not import hack/controlplane, directly or indirectly. A new package
# belongs to them unless its tests start a control plane. Arguments are more arguments of go test.
set -euo pipefail
cd "$(dirname "$0")/../.."

all=$(go list -test -f '{{if .ForTest}}{{else if .Deps}}{{.ImportPath}} {{join .Deps " "}}{{end}}' ./... | grep '^[^ ]*\.test ')
unit=() left=()
while read -r package deps; do
  if [[ " $deps " == *" proffer.dev/proffer/hack/controlplane "* ]]; then
    left+=("${package%.test}")
  else
    unit+=("${package%.test}")
  fi
done <<<"$all"
printf 'left to make test, since their tests import hack/controlplane:\n'
printf '  %s\n' "${left[@]#proffer.dev/proffer/}"
hack/gotest/run.sh . -- -race "$@" "${unit[@]}"
