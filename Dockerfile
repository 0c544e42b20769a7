# The controller alone, static, on an empty image, as a user without rights.
FROM golang:1.26.8 AS build
WORKDIR /src

# Dependencies change less often than code: a layer of their own.
COPY go.mod go.sum ./
RUN go mod download

COPY cmd cmd
# The manifests are compiled in.
COPY config config
COPY pkg pkg
ARG RELEASE=
# No shell, no C library: CGO_ENABLED=0 makes the program stand alone.
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X github.com/berth-dev/berth/cmd/internal/release.version=$RELEASE" -o /berth-controller ./cmd/berth-controller

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /berth-controller /berth-controller
USER 65532:65532
ENTRYPOINT ["/berth-controller"]
