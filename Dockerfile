# syntax=docker/dockerfile:1
# The connector, without Spark and without Java:    docker build -t scylla-cdc .
# The landing jobs, with Spark, Java and their jars: docker build --target landing -t scylla-cdc-landing .
# With secrets from stores (extras of pyproject.toml): docker build --build-arg EXTRAS=vault,aws -t scylla-cdc .

FROM python:3.11-slim AS build
WORKDIR /src
RUN python -m venv /opt/scylla-cdc
ENV PATH=/opt/scylla-cdc/bin:$PATH \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1
COPY requirements.lock pyproject.toml setup.py README.md LICENSE ./
COPY .ci/locked.py .ci/locked.py
# What the lock file says is what is installed, checked by its hashes. It holds every extra: of these only what is wanted.
# The base has no C compiler: the native path is built with one that is a wheel, and stays behind with this stage.
RUN sed -e 's/ *\\$//' -e '/^ *--hash/d' requirements.lock > constraints.txt && \
    awk '/^[^ ]/ { wanted = /^setuptools==/ } wanted' requirements.lock > setuptools.lock && \
    pip install --require-hashes --requirement setuptools.lock && \
    awk '/^[^ ]/ { wanted = /^ziglang==/ } wanted' requirements.lock > ziglang.lock && \
    pip install --require-hashes --target /opt/compiler --requirement ziglang.lock
COPY connector connector
COPY smt smt
COPY spark_jobs spark_jobs
COPY scylla_cdc scylla_cdc
ARG EXTRAS=
RUN pip install --dry-run --quiet --no-build-isolation --constraint constraints.txt --report report.json ".${EXTRAS:+[$EXTRAS]}" && \
    python .ci/locked.py report.json requirements.lock > wanted.lock && \
    pip install --require-hashes --no-deps --requirement wanted.lock && \
    PYTHONPATH=/opt/compiler WHEEL_PLATFORM="linux_$(uname -m)" pip install --no-deps --no-build-isolation . && \
    pip check

# What runs neither installs nor tests: packages bring tests along, one of them with a key that scanners report.
FROM build AS build-connector
RUN pip uninstall --quiet --yes setuptools pip && \
    find /opt/scylla-cdc -type d \( -name test -o -name tests \) -prune -exec rm -r {} +

FROM build AS build-landing
# Spark comes as source, and is built with the setuptools above.
RUN pip install --dry-run --quiet --no-build-isolation --constraint constraints.txt --report report.json '.[spark]' && \
    python .ci/locked.py report.json requirements.lock > wanted.lock && \
    pip install --require-hashes --no-deps --no-build-isolation --requirement wanted.lock && \
    pip check
# Into the image, so that a container needs no network to start. Whom the machine that builds trusts is no concern of those that run.
ENV SCYLLA_CDC_CACHE=/opt/scylla-cdc/cache
RUN python -m spark_jobs.jvm jars spark && python -m spark_jobs.jvm java && rm -rf "$SCYLLA_CDC_CACHE/ivy" && \
    pip uninstall --quiet --yes setuptools pip && \
    find /opt/scylla-cdc -type d \( -name test -o -name tests \) -prune -exec rm -r {} +

FROM python:3.11-slim AS landing
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin cdc && install -d -o cdc /lake
COPY --from=build-landing /opt/scylla-cdc /opt/scylla-cdc
ENV PATH=/opt/scylla-cdc/bin:$PATH \
    SCYLLA_CDC_CACHE=/opt/scylla-cdc/cache \
    JAVA_HOME=/opt/scylla-cdc/cache/java/spark \
    PYTHONUNBUFFERED=1
# By number: an orchestrator that refuses root cannot look names up.
USER 10001
WORKDIR /lake
VOLUME /lake
STOPSIGNAL SIGTERM
ENTRYPOINT ["scylla-cdc"]
CMD ["land", "/etc/scylla-cdc/landing.json"]

# Last, so that it is what `docker build .` makes.
FROM python:3.11-slim AS connector
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin cdc
COPY --from=build-connector /opt/scylla-cdc /opt/scylla-cdc
ENV PATH=/opt/scylla-cdc/bin:$PATH \
    PYTHONUNBUFFERED=1
USER 10001
EXPOSE 8083
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-m", "connector.cli.health_check"]
ENTRYPOINT ["scylla-cdc"]
CMD ["run", "/etc/scylla-cdc/connector.json", "--worker", "/etc/scylla-cdc/worker.json", \
     "--http-host", "0.0.0.0", "--http-port", "8083"]
