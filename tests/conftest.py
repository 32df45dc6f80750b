"""Servers that tests share. A test that stops, kills or pauses one takes `own_kafka`; all others take `kafka`."""

from __future__ import annotations

import gc
import logging
import os
import uuid
from collections.abc import Callable, Iterator

import hypothesis
import pytest

from connector import secrets
from embedded import ports
from embedded.kafka import TO_BE_KILLED, EmbeddedKafka
from tests.debian_programs import pytest_report_header, pytest_terminal_summary
from tests.rewritten import rewrite_a_share
from tests.servers.java_options import HUGE_PAGES
from tests.servers.plugin import prefix_of_names, pytest_addoption, pytest_configure, server
from tests.servers.scylla import Scylla
from tests.servers.shared_kafka import pytest_xdist_setupnodes, shared_kafka
from tests.side_by_side import pytest_collection_modifyitems, pytest_xdist_make_scheduler

__all__ = [
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_report_header",
    "pytest_terminal_summary",
    "pytest_xdist_make_scheduler",
    "pytest_xdist_setupnodes",
]

# The driver tells of every node that a test takes away, from threads of its own and with tracebacks. Formatting those
# while pytest formats a failure makes the two meet in Python's parser (until 3.11.8), which ends the whole run.
logging.getLogger("cassandra").setLevel(logging.CRITICAL)

# No test is about time: an example that takes long had to wait for other processes of the machine.
hypothesis.settings.register_profile("patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("patient")

# Jobs that tests run as processes of their own are over before the JVM's second compiler pays off: it takes a third of
# what they take. What a job is configured with counts for more.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    f"-XX:TieredStopAtLevel=1 -XX:CompileThresholdScaling=0.2 -XX:ReservedCodeCacheSize=256m {HUGE_PAGES}",
)
os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# Where the environment names a proxy, it is for other machines: tests talk to their own.
for _direct in ("no_proxy", "NO_PROXY"):
    os.environ[_direct] = ",".join(filter(None, (os.environ.get(_direct), "127.0.0.1", "localhost")))

# Of ports that are chosen here and bound seconds later by a server, each process of the tests has a share of its own.
# The process that hands out the tests has the last one.
_processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
ports.keep_to_share(int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _processes, _processes + 1)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Eight thousand tests and what they import stay to the end: the garbage collector would look at all of them, again
    and again, while they are gathered and during every test."""
    gc.disable()
    rewrite_a_share(session.config)
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator[EmbeddedKafka]:
    """The run's broker: always running, shared by all processes, so topics and groups need names of their own."""
    with shared_kafka(request.config) as broker:
        yield broker


@pytest.fixture(scope="module")
def broker_of_the_file() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(properties=TO_BE_KILLED) as broker:
        yield broker


@pytest.fixture
def own_kafka(broker_of_the_file: EmbeddedKafka) -> EmbeddedKafka:
    """A broker for the tests of one file, to be mistreated: it is started again where the last one has ended it."""
    return broker_of_the_file.start()


@pytest.fixture(scope="session")
def scylla(request: pytest.FixtureRequest) -> Iterator[Scylla]:
    """The session's ScyllaDB, shared, so keyspaces need names of their own: a double whose stream sets count at once,
    or with `--scylla` a cluster of somebody's own."""
    with server(request.config) as scylla:
        yield scylla


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Makes a name that nothing else on a shared server has."""
    prefix = prefix_of_names(request.config)
    return lambda name: f"{prefix}{name}-{uuid.uuid4().hex[:8]}"


@pytest.fixture(autouse=True)
def _no_handler_outlives_its_test() -> Iterator[None]:
    """A test that sets up logging leaves a handler on a stream that pytest closes, and drivers' threads log to it."""
    yield
    root = logging.getLogger()
    for handler in list(root.handlers):
        if type(handler.formatter).__module__ == "connector.cli.logs":
            root.removeHandler(handler)


@pytest.fixture(autouse=True)
def _no_secret_outlives_its_test() -> Iterator[None]:
    """What one test calls a secret is a plain word in another's messages."""
    yield
    secrets._known = secrets._Known()
