#!/usr/bin/env bash
# Checks that every go.mod file is tidy.
set -euo pipefail
cd "$(dirname "$0")/../.."

count=0
status=0
while IFS= read -r mod; do
  count=$((count + 1))
  if ! go mod tidy -C "$(dirname "$mod")" -diff 2> >(grep -v '"all" matched no packages' >&2); then
    echo "$mod: run go mod tidy there" >&2
    status=1
  fi
done < <(git ls-files -co --exclude-standard -- go.mod '*/go.mod')
# This module has one file per version of Kubernetes.
for mod in test/kubernetes/minors/*.mod; do
  count=$((count + 1))
  if ! go mod tidy -C test/kubernetes -modfile="${mod#test/kubernetes/}" -diff; then
    echo "$mod: run go mod tidy -modfile=${mod#test/kubernetes/} in test/kubernetes" >&2
    status=1
  fi
done
echo "$count modules are tidy"
exit "$status"
