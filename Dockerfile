# Builds the operator's image from source, for a pipeline that only builds with Docker:
#
#   docker build --build-arg VERSION="$(git describe --tags --always)" -t registry.example.com/proffer:v0.1.0 .
#
# `make image-push` makes the image of a release, without Docker and with a list of its contents. This
# file makes the same: the same base, flags, program, user and entrypoint. test/image compares them.
# A build for another platform, as with `docker buildx build --platform`, cross-compiles.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
# The modules have a layer of their own, which a change of the code leaves as it is.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH
ARG VERSION=unknown
# -buildvcs=false, because the context has no .git.
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH GOWORK=off \
    go build -trimpath -gcflags=all=-dwarf=false -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o /ko-app/proffer ./cmd/proffer

FROM gcr.io/distroless/static-debian12:nonroot@sha256:d093aa3e30dbadd3efe1310db061a14da60299baff8450a17fe0ccc514a16639
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title=proffer \
      org.opencontainers.image.licenses=Apache-2.0 \
      org.opencontainers.image.version=$VERSION \
      org.opencontainers.image.revision=$REVISION
# ko puts the program there.
COPY --from=build /ko-app/proffer /ko-app/proffer
USER 65532:65532
ENTRYPOINT ["/ko-app/proffer"]
