"""One browser for all tests of a process; without one they are left out, aloud."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.debian_programs import leave_out
from tests.page.browser import Browser
from tests.page.stage import Stage


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    leave_out(config, items)


@pytest.fixture(scope="session")
def one_browser() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser


@pytest.fixture
def browser(one_browser: Browser) -> Iterator[Browser]:
    """A window like a new one; whatever its pages complained about fails the test."""
    one_browser.looks_like(1280, 900)
    one_browser.open("about:blank")
    one_browser.complaints()
    yield one_browser
    # A service that is away, or refuses, is what many of these tests are about.
    odd = [each for each in one_browser.complaints() if "Failed to load resource" not in each]
    one_browser.open("about:blank")
    assert odd == []


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as made:
        yield made
