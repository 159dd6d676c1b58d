#!/usr/bin/env bash
# Go code is formatted.
set -euo pipefail
cd "$(dirname "$0")/../.."

mapfile -t files < <(git ls-files -co --exclude-standard -- '*.go' | while IFS= read -r f; do if [[ -e $f ]]; then echo "$f"; fi; done)
unformatted=$(gofmt -l "${files[@]}")
if [[ -n $unformatted ]]; then
  echo "$unformatted"
  echo "run make fmt" >&2
  exit 1
fi
echo "${#files[@]} files are formatted"
