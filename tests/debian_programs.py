"""What comes from Debian or the kernel and not with the set-up: a browser, Prometheus' own checks, names of one's own.

A machine without them runs every other test, and says at the beginning and at the end what nobody looked at. Tests that
need one are marked by its name.
"""

from __future__ import annotations

import shutil

import pytest

from tests.servers import names

#: By marker: the programs, the packages that have them, and what is not looked at without them.
PROGRAMS = {
    "browser": (("chromium", "chromedriver"), "chromium chromium-driver", "the web page in a browser"),
    "promtool": (("promtool",), "prometheus", "queries and rules by Prometheus itself"),
    "names": (("unshare",), "util-linux", "names that come and go"),
}


def missing(marker: str) -> str | None:
    """Why these tests cannot be run here."""
    programs, packages, _ = PROGRAMS[marker]
    absent = [name for name in programs if shutil.which(name) is None]
    if marker == "names" and not absent:
        return names.why_not()
    return f"{' and '.join(absent)} not found (Debian: apt-get install {packages})" if absent else None


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Takes the tests away that cannot be run."""
    absent = [marker for marker in PROGRAMS if missing(marker) is not None]
    away = [item for item in items if any(item.get_closest_marker(marker) is not None for marker in absent)]
    items[:] = [item for item in items if item not in away]
    if away:
        config.hook.pytest_deselected(items=away)


def pytest_report_header() -> list[str]:
    return [
        f"NOT RUN: {what}: {why}" for marker, (_, _, what) in PROGRAMS.items() if (why := missing(marker)) is not None
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in pytest_report_header():
        terminalreporter.write_line(line, yellow=True, bold=True)
