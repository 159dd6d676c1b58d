#!/usr/bin/env bash
# Runs every check, even after one has failed, and prints what each has checked.
set -euo pipefail
cd "$(dirname "$0")/../.."

failed=()
check() {
  local name=$1 out
  shift
  if out=$("$@" 2>&1); then
    printf 'verify: %-10s ok: %s\n' "$name" "$(tail -n 1 <<<"$out")"
  else
    printf 'verify: %-10s FAILED\n%s\n' "$name" "$(tail -n 60 <<<"$out")" >&2
    failed+=("$name")
  fi
}

check generated hack/verify/generated.sh
check tidy hack/verify/tidy.sh
check imports go run ./hack/verify/imports
check kustomize hack/verify/kustomize.sh
check api hack/verify/api.sh

if ((${#failed[@]})); then
  echo "verify: failed: ${failed[*]}" >&2
  exit 1
fi
