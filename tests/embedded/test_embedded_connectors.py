"""`scylla-cdc run` beside the embedded servers: how it is asked what it does."""

from __future__ import annotations

import http.server
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.connectors import RunningConnector
from embedded.process import TiedProcess

_PROXY = "http://127.0.0.1:9"


class Running(http.server.BaseHTTPRequestHandler):
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
    with http.server.HTTPServer(("127.0.0.1", 0), Running) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        log.write_text(f"REST API on http://127.0.0.1:{server.server_port}\n")
        process = TiedProcess([sys.executable, "-c", "import signal; signal.pause()"], log)
        found._process = process
        yield found
        process.signal(signal.SIGKILL)
        process.end(0)
        process.release()
        server.shutdown()


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
