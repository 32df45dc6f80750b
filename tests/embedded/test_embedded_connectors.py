"""`scylla-cdc run` beside the embedded servers: how it is asked what it does."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from embedded.connectors import RunningConnector
from embedded.process import TiedProcess
from tests.servers.small_http import http_server

_PROXY = "http://127.0.0.1:9"


class Running(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"state": "RUNNING"}')

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def connector(tmp_path: Path) -> Iterator[RunningConnector]:
    """One that answers, in the place of a whole one."""
    log = tmp_path / "log"
    found = RunningConnector(tmp_path / "c.json", tmp_path / "w.json", log)
    with http_server(Running) as address:
        log.write_text(f"REST API on {address}\n")
        process = TiedProcess([sys.executable, "-c", "import signal; signal.pause()"], log)
        found._process = process
        yield found
        process.signal(signal.SIGKILL)
        process.end(0)
        process.release()


def test_what_runs_on_this_machine_is_not_asked_for_through_a_proxy(
    connector: RunningConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind one, the demo waited for its connector until it gave up."""
    for name in [name for name in os.environ if name.lower() in ("no_proxy", "all_proxy")]:
        monkeypatch.delenv(name)
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, _PROXY)
    assert connector.status() == {"state": "RUNNING"}
    assert connector.url is not None and connector.url.startswith("http://127.0.0.1:")
