"""A server of a few paths."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connector.http import HttpServer
from tests.http.serving import served


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with served() as server:
        yield server
