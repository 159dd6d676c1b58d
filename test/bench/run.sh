#!/usr/bin/env bash
# Measures what Proffer costs, for `make bench`: the benchmarks whose name a regular expression matches.
set -euo pipefail
cd "$(dirname "$0")/../.."

pattern=${1:-.}
export PROFFER_BIN=$PWD/bin/proffer
repeated=bin/bench-functions.txt
mkdir -p bin
: >"$repeated"
found=

# Module, package, benchmark, and how long it runs. An iteration is a call, an edit of a policy, an event
# or a slice. Those that run once repeat their measurement themselves. benchstat needs six results of the
# others, which measure functions.
while read -r module package name time; do
  [[ Benchmark$name =~ $pattern ]] || continue
  found=1
  bench=(go test -C "$module" "$package" -run '^$' -bench "^Benchmark$name\$" -benchtime "$time" -timeout 6h)
  if [[ $time == *s ]]; then
    "${bench[@]}" -benchmem -count 6 | tee -a "$repeated" >&2
  else
    "${bench[@]}" | grep ^Benchmark
  fi
done <<'END'
. ./internal/grant Allocate 1s
. ./internal/table Publish 1s
. ./internal/table Lookup 1s
test/bench . Evaluate 1s
test/bench . EvaluateNamed 1s
test/bench . PodEvent 1s
test/bench . Read 1x
test/bench . Streams 1x
test/bench . Push 100x
test/bench . FanOut 300x
test/bench . Cluster 6000x
test/bench . Federation 1x
test/slices . Slice 99x
END

[[ -n $found ]] || { echo "bench: no benchmark matches $pattern" >&2; exit 1; }
[[ ! -s $repeated ]] || go tool -modfile=hack/tools/go.mod benchstat "$repeated"
