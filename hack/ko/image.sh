#!/usr/bin/env bash
# Builds the operator's image, with an SBOM (SPDX), for every platform of .ko.yaml. It needs no
# Docker.
#
#   image.sh build           write it to bin/image, an OCI layout
#   image.sh push IMAGE:TAG  push it, with the credentials of `docker login` if there are any
#
# VERSION sets the version. KO_DEFAULTBASEIMAGE, a variable of ko, replaces the base image of
# .ko.yaml, for example with a mirror.
set -euo pipefail
cd "$(dirname "$0")/../.."

: "${VERSION:?}"
# The same commit produces the same image.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export VERSION SOURCE_DATE_EPOCH GOFLAGS="${GOFLAGS:-} -buildvcs=false"

build() {
  rm -rf bin/sbom
  go tool -modfile=hack/ko/go.mod ko build ./cmd/proffer --bare --image-user 65532:65532 --sbom-dir bin/sbom \
    --image-label "org.opencontainers.image.title=proffer,org.opencontainers.image.licenses=Apache-2.0" \
    --image-label "org.opencontainers.image.version=$VERSION" \
    --image-label "org.opencontainers.image.revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)" "$@" || {
    echo "image: the build failed. If the base image of .ko.yaml cannot be pulled, set KO_DEFAULTBASEIMAGE=mirror.example.com/base@sha256:..." >&2
    return 1
  }
}

case ${1:-} in
build)
  rm -rf bin/image
  KO_DOCKER_REPO=proffer build --push=false --oci-layout-path=bin/image >/dev/null
  echo "image: bin/image has version $VERSION, bin/sbom what is in it. make image-push IMG=registry.example.com/proffer:$VERSION pushes it"
  ;;
push)
  image=${2:-}
  if [[ ! $image =~ ^[A-Za-z0-9._:/-]+/[A-Za-z0-9._-]+:[A-Za-z0-9._-]+$ ]]; then
    echo "image-push needs a registry, a name and a tag: write make image-push IMG=registry.example.com/proffer:$VERSION" >&2
    exit 1
  fi
  KO_DOCKER_REPO=${image%:*} build --tags "${image##*:}"
  ;;
*)
  echo "usage: image.sh build|push" >&2
  exit 1
  ;;
esac
