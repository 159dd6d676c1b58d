#!/usr/bin/env bash
# Runs the tests of one module for run.sh: MODULE ARGUMENTS OF GO TEST. If the tests of other modules
# run at the same time, LABEL is set, and each line begins with the name of the module.
set -euo pipefail
MODULE=$1
export MODULE
shift
if [[ $MODULE == . && ${*: -1} == ./... ]]; then
  # The longest packages come first, so that the last one does not run alone.
  set -- "${@:1:$#-1}" ./internal/command ./test/deploy ./internal/metasync ./internal/operator ./...
fi
run() {
  echo "=== module $MODULE: go test $*"
  cd "$MODULE" &&
    CGO_ENABLED=1 "$GOTESTSUM" --format=pkgname --format-hide-empty-pkg --post-run-command="bash $HERE/count.sh" -- "$@"
}
if [[ -n ${LABEL:-} ]]; then
  run "$@" 2>&1 | sed -u "s|^|$MODULE: |"
else
  run "$@"
fi || echo "$MODULE" >>"$FAILED"
