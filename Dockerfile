# syntax=docker/dockerfile:1
# Penstock: the bot with one worker. Build: docker build -t penstock .   With scanned pages by Docling: --build-arg EXTRAS=[ocr]
FROM python:3.12-slim-bookworm AS build
ARG EXTRAS=""
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY bot ./bot
COPY core ./core
COPY ingest ./ingest
COPY migrations ./migrations
RUN python -m venv /opt/penstock \
    && /opt/penstock/bin/python -m pip install -c constraints.txt ".${EXTRAS}"

FROM python:3.12-slim-bookworm
LABEL org.opencontainers.image.title="Penstock" \
      org.opencontainers.image.licenses="Apache-2.0 AND AGPL-3.0-only"
RUN groupadd --gid 10001 penstock \
    && useradd --uid 10001 --gid penstock --home-dir /var/lib/penstock --create-home penstock
COPY --from=build /opt/penstock /opt/penstock
ENV PATH="/opt/penstock/bin:${PATH}" \
    PYTHONUNBUFFERED=1 \
    HF_HUB_OFFLINE=1 \
    PENSTOCK_HOME=/var/lib/penstock
USER 10001:10001
WORKDIR /var/lib/penstock
VOLUME ["/var/lib/penstock"]
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=60s --timeout=30s --start-period=60s --retries=3 CMD ["penstock", "doctor", "--json"]
ENTRYPOINT ["penstock"]
CMD ["run"]
