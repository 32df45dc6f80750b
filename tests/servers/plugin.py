"""Which ScyllaDB the tests run against: the embedded double, or with `--scylla HOST:PORT` a cluster of somebody's own.

Tests marked `any_scylla` are claims about ScyllaDB and run on both; `only_double(reason)` ones need faults, clocks or
stale nodes that only the double plays. With `--scylla` everything else is left away, and `--scylla-report FILE` gets a
JSON line for each outcome and for each test that was left out.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from tests.servers.double import Double
from tests.servers.foreign import ForeignScylla, parse_points
from tests.servers.scylla import Login, Scylla

# By folder; what a result page counts together.
GROUPS = {
    "tests/embedded/scylla/": "CDC and CQL semantics",
    "tests/source/": "reader",
    "tests/worker/": "worker",
    "tests/spark_jobs/": "landing",
    "tests/real/": "recordings",
}
_LONGER = 5
_MOST_WORDS = 2_000


def group_of(nodeid: str) -> str:
    """
    >>> group_of("tests/source/test_source_reader.py::test_asyncio")
    'reader'
    """
    other = nodeid.split("/")[1] if "/" in nodeid else nodeid
    return next((group for folder, group in GROUPS.items() if nodeid.startswith(folder)), other)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("scylla", "the ScyllaDB that the tests run against")
    group.addoption("--scylla", metavar="HOST:PORT[,…]", help="a cluster of your own (default: the embedded double)")
    group.addoption("--scylla-user", metavar="USER", help="who logs in; the password is taken from SCYLLA_PASSWORD")
    group.addoption("--scylla-tls", metavar="CA.pem", help="encrypted; trusts these certificates, or `system`")
    group.addoption("--scylla-api", metavar="URL", help="a node's REST API, for new generations: http://node:10000")
    group.addoption("--scylla-run", metavar="HEX", help="the number in the names of keyspaces (default: a random one)")
    group.addoption("--scylla-report", metavar="FILE", type=Path, help="outcomes as JSON lines")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--scylla"):
        config.pluginmanager.register(_Foreign(config), "foreign scylla")


def chosen(config: pytest.Config) -> ForeignScylla | None:
    """The server that the options name."""
    text = config.getoption("--scylla")
    if not text:
        return None
    tls, user = config.getoption("--scylla-tls"), config.getoption("--scylla-user")
    password = os.environ.get("SCYLLA_PASSWORD") if user else None
    return ForeignScylla(
        parse_points(text),
        login=Login(user, password, tls),
        api=config.getoption("--scylla-api"),
        run=config.getoption("--scylla-run"),
    )


@contextmanager
def server(config: pytest.Config, **of_the_double: Any) -> Iterator[Scylla]:
    """The chosen server, or a double of its own whose stream sets count at once."""
    foreign = config.pluginmanager.get_plugin("foreign scylla")
    if foreign is not None:
        yield foreign.scylla()
        return
    with Double(ring_delay=0, **of_the_double) as double:
        yield double


def prefix_of_names(config: pytest.Config) -> str:
    """What the names of keyspaces begin with; nothing on a double, which is the tests' own."""
    foreign = config.pluginmanager.get_plugin("foreign scylla")
    return "" if foreign is None else str(foreign.run_prefix)


class _Foreign:
    """What is different when the tests run against somebody's cluster."""

    def __init__(self, config: pytest.Config) -> None:
        made = chosen(config)
        assert made is not None
        self._made, self._entered = made, False
        path = config.getoption("--scylla-report")
        self._report: IO[str] | None = open(path, "a", encoding="utf-8") if path else None  # noqa: SIM115
        os.environ["TEST_PATIENCE"] = "4"

    def scylla(self) -> ForeignScylla:
        """One for the whole run."""
        if not self._entered:
            self._made.__enter__()
            self._entered = True
        return self._made

    @property
    def run_prefix(self) -> str:
        return self._made.prefix

    # Last: what `-k` left away is none of this run.
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        kept, away = [], []
        for item in items:
            double = item.get_closest_marker("only_double")
            if double is None and item.get_closest_marker("any_scylla") is not None:
                kept.append(item)
                limit = item.get_closest_marker("timeout")
                seconds = limit.args[0] if limit else float(config.getini("timeout"))
                item.add_marker(pytest.mark.timeout(seconds * _LONGER), append=False)
                continue
            away.append(item)
            if double is not None:
                self._tell(nodeid=item.nodeid, outcome="left out", reason=double.args[0])
        items[:] = kept
        config.hook.pytest_deselected(items=away)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported has tests that were not run: the result says which file, and why."""
        if report.failed:
            self._tell(nodeid=report.nodeid, outcome="failed", when="collect", reason=_shortened(report.longreprtext))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self._tell(
                nodeid=report.nodeid,
                outcome="failed" if report.outcome == "failed" else report.outcome,
                when=report.when,
                seconds=round(report.duration, 3),
                reason=_reason(report),
            )

    def pytest_unconfigure(self) -> None:
        if self._entered:
            self._made.close()
        if self._report is not None:
            self._report.close()

    def _tell(self, *, nodeid: str, **outcome: Any) -> None:
        if self._report is not None:
            self._report.write(json.dumps({"nodeid": nodeid, "group": group_of(nodeid), **outcome}) + "\n")
            self._report.flush()


def _reason(report: pytest.TestReport) -> str:
    if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    if report.outcome != "failed":
        return ""
    crash = getattr(report.longrepr, "reprcrash", None)
    words = crash.message if crash is not None else report.longreprtext
    return _shortened(words)


def _shortened(words: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", words)[:_MOST_WORDS]
