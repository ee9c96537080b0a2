# The image: one static binary and the few files it needs, on nothing.
#
#   docker build -t oncelog .                        needs BuildKit, which is the default since Docker 23
#   docker build --build-arg LIBC=gnu -t oncelog .   where rustup cannot add the musl target
#   docker build --target from-binary DIR            no base image at all: DIR/rootfs, made by docker/rootfs
ARG RUST_VERSION=1.95
ARG DEBIAN=bookworm

FROM rust:${RUST_VERSION}-${DEBIAN} AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# musl's by default. The other one is glibc's, linked statically as well.
ARG LIBC=musl
WORKDIR /src

# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates musl-tools \
    && rm -rf /var/lib/apt/lists/*
RUN target="$(uname -m)-unknown-linux-${LIBC}" \
    && { test -d "$(rustc --print sysroot)/lib/rustlib/${target}" || rustup target add "${target}"; }
# Writes the list of dependencies into the binary itself, where scanners for vulnerable ones look for it.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    cargo install --quiet --locked cargo-auditable@0.7.7

COPY . .
# Says which commit it is, in `oncelog_build_info` and in a label.
ARG REVISION=unknown
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    target="$(uname -m)-unknown-linux-${LIBC}" \
    && export ONCELOG_REVISION="${REVISION}" CARGO_PROFILE_RELEASE_STRIP=symbols RUSTFLAGS="-C target-feature=+crt-static" \
    && cargo auditable build --quiet --locked --release --bin oncelog --target "${target}" \
    && docker/rootfs "target/${target}/release/oncelog" /rootfs

# All that is not a file.
FROM scratch AS frame
ARG REVISION=unknown
ARG VERSION=0.1.0
ARG CREATED=unknown
# Where the source is kept, which a build cannot know by itself.
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="oncelog" \
      org.opencontainers.image.description="A Kafka-protocol broker in one binary whose heart is exactly-once transactions" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
# Loopback of a container is nobody else's: these two doors and the admin port are open to its networks, and what is
# published to the outside is the user's decision. Clients of the host are told localhost:9092, those of the same
# network the container's host name.
ENV ONCELOG_DATA_DIR=/var/lib/oncelog \
    ONCELOG_LISTENERS__EXTERNAL__BIND=0.0.0.0:9092 \
    ONCELOG_LISTENERS__INTERNAL__BIND=0.0.0.0:29092 \
    ONCELOG_ADMIN__BIND=0.0.0.0:9644
EXPOSE 9092 29092 9644
# A number, so that Kubernetes can see that it is not root.
USER 65532:65532
STOPSIGNAL SIGTERM
# Asks the broker whether transactions can be served, which it says only when its ledger is loaded and nothing is owed
# that it could not write. The period is for a start that has much to verify after a crash.
HEALTHCHECK --interval=1s --timeout=10s --start-period=300s --retries=5 CMD ["/oncelog", "healthcheck"]
ENTRYPOINT ["/oncelog"]
CMD ["serve"]

FROM frame AS from-binary
COPY rootfs/ /
VOLUME /var/lib/oncelog

FROM frame AS image
COPY --from=build /rootfs/ /
VOLUME /var/lib/oncelog
