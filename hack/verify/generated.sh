#!/usr/bin/env bash
# Checks that generated files are up to date. The generators run in a copy, so that nothing here
# changes.
set -euo pipefail
cd "$(dirname "$0")/../.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
# The copy also lacks tracked files that are deleted here.
git ls-files -z -co --exclude-standard | while IFS= read -r -d '' f; do
  if [[ -e $f ]]; then printf '%s\0' "$f"; fi
done | tar --null -T - -cf - | tar -xf - -C "$copy"

cd "$copy"
git init -q
git add -A
git -c user.name=verify -c user.email=verify@localhost commit -q -m before
# Files that a generator no longer writes must disappear.
mapfile -t generated < <(git ls-files -- '*zz_generated.*.go' '*.pb.go' internal/metasync/db 'config/crd/bases/*' config/rbac/role.yaml 'charts/proffer/files/*')
if ((${#generated[@]})); then rm -f -- "${generated[@]}"; fi
make --no-print-directory generate manifests
git add -A
if ! git diff --cached --exit-code --stat; then
  git --no-pager diff --cached | head -n 100
  echo "run make generate manifests, and commit what it writes" >&2
  exit 1
fi
echo "${#generated[@]} files are what the generators write"
