# Three images, each with only the static binary that "make image" has built before, and
# the licenses of what is linked into it: no shell, no package, nothing to patch but Katbox itself.

# The gateway is an ordinary user of the API server.
FROM scratch AS katbox-gateway

ARG TARGETARCH
ARG VERSION=dev
ARG REVISION=unknown

LABEL org.opencontainers.image.title="Katbox gateway" \
      org.opencontainers.image.description="Retained volumes of all nodes in the Kubernetes API" \
      org.opencontainers.image.source="https://github.com/katbox/katbox" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

COPY bin/linux/${TARGETARCH}/katbox-gateway /katbox-gateway
COPY bin/linux/${TARGETARCH}/licenses/katbox-gateway /licenses

USER 65532:65532
ENTRYPOINT ["/katbox-gateway"]

# The controller of the pools is one too, and speaks to arrays.
FROM scratch AS katbox-controller

ARG TARGETARCH
ARG VERSION=dev
ARG REVISION=unknown

LABEL org.opencontainers.image.title="Katbox controller" \
      org.opencontainers.image.description="Persistent volumes on remote arrays: a CSI controller" \
      org.opencontainers.image.source="https://github.com/katbox/katbox" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

COPY bin/linux/${TARGETARCH}/katbox-controller /katbox-controller
COPY bin/linux/${TARGETARCH}/licenses/katbox-controller /licenses

USER 65532:65532
ENTRYPOINT ["/katbox-controller"]

# The daemon runs as root, which mounting needs.
FROM scratch AS katbox

ARG TARGETARCH
ARG VERSION=dev
ARG REVISION=unknown

LABEL org.opencontainers.image.title="Katbox" \
      org.opencontainers.image.description="Scratch volumes with an afterlife: a CSI node driver for ephemeral inline volumes" \
      org.opencontainers.image.source="https://github.com/katbox/katbox" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

COPY bin/linux/${TARGETARCH}/katbox /katbox
COPY bin/linux/${TARGETARCH}/licenses/katbox /licenses

USER 0:0
ENTRYPOINT ["/katbox"]
