# The server in a slim image, without build tools, as a user without rights.
#   docker build -t teo .
#   docker run -e TEO_TOKEN=... -p 127.0.0.1:8000:8000 --memory 1g teo
# Another extra: docker build --build-arg EXTRA=scale -t teo-batch .
# The tag gets the system's security fixes with each build. For the same image each time, give a digest:
#   docker build --build-arg BASE=python@sha256:... -t teo .
ARG BASE=python:3.12-slim
FROM ${BASE} AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE NOTICE constraints.txt ./
COPY src ./src
# The versions that the tests ran with.
ARG EXTRA=serve
RUN python -m venv /opt/teo \
    && /opt/teo/bin/pip install --no-cache-dir --no-compile --constraint constraints.txt ".[$EXTRA]"

FROM ${BASE}
LABEL org.opencontainers.image.title="teo" \
      org.opencontainers.image.description="Complete incomplete utterances of a dialogue. The licence is that of the code; some text that the model learned from is for non-commercial research only, see NOTICE" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin teo
COPY --from=build /opt/teo /opt/teo
ENV PATH="/opt/teo/bin:$PATH" \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
USER 10001
WORKDIR /tmp
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health', timeout=2).read()"]
# Without TEO_TOKEN it refuses to start: the port of a container can be reached from elsewhere.
ENTRYPOINT ["teo", "serve", "--host", "0.0.0.0", "--port", "8000"]
