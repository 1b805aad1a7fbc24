# SPDX-License-Identifier: Apache-2.0
# The image holds one binary and the libraries it links. `./dev image` builds it without Docker.
FROM docker.io/library/debian:trixie-slim AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        gcc libc6-dev cmake ninja-build pkg-config libmicrohttpd-dev libwslay-dev libpq-dev \
        libhiredis-dev librdkafka-dev libjansson-dev libutf8proc-dev libssl-dev libdeflate-dev \
        libcurl4-openssl-dev uthash-dev python3-yaml python3-venv ca-certificates
WORKDIR /source
COPY . .
RUN python3 -m tools.reference \
    && cmake --preset release -D TIDINGS_TESTS=OFF -D TIDINGS_BENCH=OFF \
    && cmake --build --preset release \
    && cmake --install build/release --prefix /installed --strip

FROM docker.io/library/debian:trixie-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        libmicrohttpd12t64 libwslay1 libpq5 libhiredis1.1.0 librdkafka1 libjansson4 libutf8proc3 libssl3t64 libdeflate0 \
        libcurl4t64 ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin tidings
COPY --from=build /installed/bin/tidings /usr/local/bin/tidings
USER 10001
LABEL org.opencontainers.image.version="0.4.0"
ENV TIDINGS_LISTEN=0.0.0.0:8080
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s CMD ["tidings", "check"]
CMD ["tidings", "serve"]
