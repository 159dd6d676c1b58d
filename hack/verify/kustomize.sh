#!/usr/bin/env bash
# Renders every kustomization under config and examples, and every component on top of the default and of the
# base.
set -euo pipefail
cd "$(dirname "$0")/../.."

kubectl="$(go run ./hack/controlplane/cmd/controlplane)/kubectl"
overlay=bin/verify/overlay
mkdir -p "$overlay"
trap 'rm -rf bin/verify' EXIT

count=0
render() {
  local what=$1 dir=$2 out
  if ! out=$("$kubectl" kustomize "$dir") || [[ -z $out ]]; then
    echo "$what does not render" >&2
    exit 1
  fi
  count=$((count + 1))
}

while IFS= read -r file; do
  dir=$(dirname "$file")
  if grep -q '^kind: Component$' "$file"; then
    for base in default base; do
      printf 'resources: [../../../config/%s]\ncomponents: [../../../%s]\n' "$base" "$dir" >"$overlay/kustomization.yaml"
      render "$dir on top of config/$base" "$overlay"
    done
  else
    render "$dir" "$dir"
  fi
done < <(git ls-files -co --exclude-standard -- 'config/*kustomization.yaml' 'examples/*kustomization.yaml')
echo "$count kustomizations render"
