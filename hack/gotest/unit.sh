#!/usr/bin/env bash
# Runs the tests that need neither a control plane nor a database, with the race detector. These are
# the packages of the operator's module whose tests import neither hack/controlplane nor
# internal/dbtest, directly or indirectly. Arguments are passed on to go test.
set -euo pipefail
cd "$(dirname "$0")/../.."

all=$(go list -test -f '{{if .ForTest}}{{else if .Deps}}{{.ImportPath}} {{join .Deps " "}}{{end}}' ./... | grep '^[^ ]*\.test ')
unit=() left=()
while read -r package deps; do
  if [[ " $deps " == *" proffer.dev/proffer/"@(hack/controlplane|internal/dbtest)" "* ]]; then
    left+=("${package%.test}")
  else
    unit+=("${package%.test}")
  fi
done <<<"$all"
printf 'left to make test, because their tests import hack/controlplane or internal/dbtest:\n'
printf '  %s\n' "${left[@]#proffer.dev/proffer/}"
hack/gotest/run.sh . -- "$@" "${unit[@]}"
