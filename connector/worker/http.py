"""`/metrics`, `/health` and `/status` over HTTP, for the monitoring of a `run`.

In: a function that gives the status. Out: a server thread on the loopback (or a given address).
"""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from connector.errors import CdcError
from connector.secrets import scrubbed
from connector.worker.metrics import metrics_page
from connector.worker.state import State
from connector.worker.status_document import Health, ServiceStatus

log = logging.getLogger(__name__)

Status = Callable[[], ServiceStatus]


class StatusServer:
    """A context manager; serves while it lasts."""

    def __init__(self, status: Status, port: int, host: str = "127.0.0.1") -> None:
        handler = type("Handler", (_Handler,), {"status": staticmethod(status)})
        try:
            self._server = ThreadingHTTPServer((host, port), handler)
        except OSError as error:
            raise CdcError(f"port {port} for metrics cannot be used: {error.strerror}") from None
        self._server.daemon_threads = True

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def __enter__(self) -> StatusServer:
        threading.Thread(target=self._server.serve_forever, daemon=True, name="http").start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def health_of(status: ServiceStatus) -> Health:
    """What is worth an operator's look."""
    late: dict[str, Counter[str]] = {}
    for worker in status.workers:
        for name, table in worker.tables.items():
            if table.late_changes:
                late.setdefault(name, Counter()).update(table.late_changes)
    return Health(state=status.state, waiting_for=status.waiting_for, failing=status.failing, late_changes={**late})


class _Handler(BaseHTTPRequestHandler):
    status: Status

    def do_GET(self) -> None:
        try:
            self._get()
        except ConnectionError:
            pass  # whoever asked has gone
        except Exception as error:
            log.warning("request %s failed", self.path, exc_info=error)
            self._answer(500, "text/plain", f"{type(error).__name__}: {error}\n".encode())

    def _get(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._answer(200, "text/plain; version=0.0.4; charset=utf-8", metrics_page(self.status))
        elif path in ("/health", "/status"):
            status = self.status()
            # 503 is what orchestrators understand: running, but somebody should look.
            code = 200 if path == "/status" or status.state is State.RUNNING else 503
            body = status if path == "/status" else health_of(status)
            self._answer(code, "application/json", json.dumps(scrubbed(body.document())).encode())
        else:
            self._answer(404, "text/plain", b"/metrics, /health or /status\n")

    def _answer(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Scrapes are no news."""
