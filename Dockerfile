# syntax=docker/dockerfile:1
# The connector, without Spark and without Java:    docker build -t scylla-cdc .
# The landing jobs, with Spark, Java and their jars: docker build --target landing -t scylla-cdc-landing .
#
# Nobody has built these images where this project is developed: there is no container engine. Each step is an ordinary
# command that tests/docs/test_docs_images.py holds against the project.

FROM python:3.11-slim AS build
WORKDIR /src
RUN python -m venv /opt/scylla-cdc
ENV PATH=/opt/scylla-cdc/bin:$PATH
# Dependencies first: they change less often than the code. The lock file holds every extra, so it serves as a
# constraint here, and hashes are left to the lock file of a clone.
COPY requirements.lock pyproject.toml README.md LICENSE ./
RUN sed -e 's/ *\\$//' -e '/^ *--hash/d' requirements.lock > constraints.txt
COPY connector connector
COPY smt smt
COPY spark_jobs spark_jobs
COPY scylla_cdc scylla_cdc
RUN pip install --no-cache-dir --constraint constraints.txt .

FROM build AS build-landing
RUN pip install --no-cache-dir --constraint constraints.txt '.[spark]'
# Into the image, so that a container needs no network to start.
ENV SCYLLA_CDC_CACHE=/opt/scylla-cdc/cache
RUN python -m spark_jobs.jvm jars spark && python -m spark_jobs.jvm java

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
COPY --from=build /opt/scylla-cdc /opt/scylla-cdc
ENV PATH=/opt/scylla-cdc/bin:$PATH \
    PYTHONUNBUFFERED=1
USER 10001
EXPOSE 8083
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8083/health', timeout=4)"]
ENTRYPOINT ["scylla-cdc"]
CMD ["run", "/etc/scylla-cdc/connector.json", "--worker", "/etc/scylla-cdc/worker.json", \
     "--http-host", "0.0.0.0", "--http-port", "8083"]
