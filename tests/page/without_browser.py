"""What is said, and left out, where there is no browser: nobody shall believe that the page was looked at.

The browser comes from Debian, not with the set-up: a machine without it runs everything but the tests marked `browser`.
"""

from __future__ import annotations

import pytest

from tests.page.browser import missing


def without_browser(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Takes those tests away."""
    if missing() is None:
        return
    away = [item for item in items if item.get_closest_marker("browser") is not None]
    items[:] = [item for item in items if item not in away]
    if away:
        config.hook.pytest_deselected(items=away)


def pytest_report_header() -> str:
    why = missing()
    return "browser: chromium" if why is None else f"browser: NONE, the page is not looked at: {why}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    why = missing()
    if why is not None:
        terminalreporter.write_line(f"NOT RUN: the tests of the web page in a browser: {why}", yellow=True, bold=True)
