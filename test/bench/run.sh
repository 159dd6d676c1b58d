#!/usr/bin/env bash
# Measures what Proffer costs, for `make bench`: all of it, or the parts named in a list with commas.
# The part "functions" is the Benchmark functions; the others are parts of the program in this directory.
set -euo pipefail
cd "$(dirname "$0")/../.."

parts=${1:-}
rest=()
if [[ -z $parts || ,$parts, == *,functions,* ]]; then
  figures=bin/bench-functions.txt
  bench=(go test -run '^$' -bench . -benchmem -count 6 -timeout 60m)
  "${bench[@]}" ./internal/grant ./internal/table | tee "$figures" >&2
  "${bench[@]}" -C test/bench . | tee -a "$figures" >&2
  go tool -modfile=hack/tools/go.mod benchstat "$figures"
fi
IFS=, read -ra named <<<"$parts"
for part in "${named[@]}"; do
  if [[ $part != functions ]]; then rest+=("$part"); fi
done
if [[ -z $parts ]] || ((${#rest[@]})); then
  go run -C test/bench . -operator "$PWD/bin/proffer" -only "$(IFS=,; echo "${rest[*]}")"
fi
