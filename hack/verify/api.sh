#!/usr/bin/env bash
# Compares the public packages with those of the latest release, and refuses a change that breaks
# programs that use them. There is nothing to compare with before the first release.
# Usage: api.sh, in the module, or api.sh DIRECTORY PACKAGE... in another one, for the test.
set -euo pipefail
tools="$(cd "$(dirname "$0")/../tools" && pwd)/go.mod"
cd "${1:-$(dirname "$0")/../..}"
packages=("${@:2}")
((${#packages[@]})) || packages=(./operator ./plugin ./api/v1alpha1 ./api/rest ./api/config/v1alpha1)

tag=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || true)
if [[ -z $tag ]]; then
  echo "there is no release to compare with"
  exit 0
fi
work=$(mktemp -d)
trap 'git worktree remove --force "$work/release" 2>/dev/null; rm -rf "$work"' EXIT
git worktree add --quiet --detach "$work/release" "$tag"
# The tool is built here: in the release, its module would be another one.
apidiff="$work/apidiff"
go build -modfile="$tools" -o "$apidiff" golang.org/x/exp/cmd/apidiff
broken=
for package in "${packages[@]}"; do
  # A package that is new since the release breaks nothing.
  (cd "$work/release" && "$apidiff" -w "$work/old" "$package") 2>/dev/null || continue
  changes=$("$apidiff" -incompatible "$work/old" "$package")
  if [[ -n $changes ]]; then
    printf '%s differs from %s:\n%s\n' "$package" "$tag" "$changes"
    broken=yes
  fi
done
[[ -z $broken ]] || exit 1
echo "${#packages[@]} public packages are compatible with $tag"
