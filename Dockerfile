# syntax=docker/dockerfile:1
# The operator alone, static, without a shell, as a user that is nobody.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY api api
COPY cmd cmd
COPY controllers controllers
COPY internal internal
COPY proto proto
ARG TARGETOS TARGETARCH VERSION=unknown
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /proffer ./cmd/proffer

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /proffer /proffer
USER 65532:65532
ENTRYPOINT ["/proffer"]
