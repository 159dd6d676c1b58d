#!/usr/bin/env bash
# What is generated is what the generators write today. They run in a copy, so that the check changes nothing here.
set -euo pipefail
cd "$(dirname "$0")/../.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
# A file that is tracked but deleted here is left out of the copy too.
git ls-files -z -co --exclude-standard | while IFS= read -r -d '' f; do
  if [[ -e $f ]]; then printf '%s\0' "$f"; fi
done | tar --null -T - -cf - | tar -xf - -C "$copy"

cd "$copy"
git init -q
git add -A
git -c user.name=verify -c user.email=verify@localhost commit -q -m before
# What a generator no longer writes must go.
mapfile -t generated < <(git ls-files -- '*zz_generated.*.go' '*.pb.go' 'config/crd/bases/*' config/rbac/role.yaml)
if ((${#generated[@]})); then rm -f -- "${generated[@]}"; fi
make --no-print-directory generate manifests
git add -A
if ! git diff --cached --exit-code --stat; then
  git --no-pager diff --cached | head -n 100
  echo "run make generate manifests, and commit what it writes" >&2
  exit 1
fi
echo "${#generated[@]} files are what the generators write"
