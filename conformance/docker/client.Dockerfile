# The client of this folder for a cluster that it is to run in: docker build -f client.Dockerfile conformance/docker
FROM debian:bookworm-slim
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 python3-pip \
    && rm -rf /var/lib/apt/lists/*
COPY requirements.txt client.py /
RUN pip install --no-cache-dir --break-system-packages -r /requirements.txt
USER 65532:65532
ENTRYPOINT ["python3", "/client.py"]
