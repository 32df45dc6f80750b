"""A service that says what a test wants it to say, behind the real HTTP server and the real routes of the page.

In: what its workers, tables, dead letters are. Out: its address; what was asked of it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from connector.config import Secret
from connector.errors import RetriableDeliveryError
from connector.http import Access, Answer, HttpServer, Request, Route, answer_json
from connector.page import page_routes
from embedded import ports

STREAM = "{:016x}00000000000000a1"


def table(**members: Any) -> dict[str, Any]:
    return {
        "state": "RUNNING",
        "position_ms": round(time.time() * 1000) - 2500,
        "lag_ms": 2500,
        "groups": 4,
        "failed_groups": 0,
        "records": 1200,
        "dead_letters": 0,
        "waiting": [],
        "waiting_count": 0,
        "log_ttl_seconds": 86400,
        "latency_seconds": {"bounds": [1.0, 5.0, 30.0], "counts": [0, 1200, 0, 0], "sum": 3600.0},
        **members,
    }


def failed(note: str, slot: int = 3) -> dict[str, Any]:
    streams = [STREAM.format(0x2000000000000000)]
    wait = {"reason": "failed", "slot": slot, "streams": streams, "read_to": 1_790_000_000_000, "note": note}
    return table(state="FAILED", error=note, failed_groups=1, waiting_count=1, waiting=[wait])


class Stage:
    """A context manager; serves while it lasts, and again after `away`."""

    def __init__(self, token: str | None = None) -> None:
        self.token = token
        self.began_ms = round(time.time() * 1000) - 3_600_000
        self.connectors: dict[str, dict[str, Any]] = {}
        self.workers: list[dict[str, Any]] = []
        self.changed: dict[str, Any] = {}
        self.letters: list[dict[str, Any]] = []
        self.groups: list[dict[str, Any]] = []
        self.foreign: list[dict[str, Any]] = []
        self.trouble: str | None = None
        self.writable = True
        #: While it is not set, `/status` is not answered.
        self.answers = threading.Event()
        self.answers.set()
        self.asked: list[tuple[str, str, str | None]] = []
        self.looks = 0
        # One that is nobody else's when it comes back to it.
        self.port = ports.free_port()
        self.connector("shop", {"shop.orders": table(), "depot.stock": table()}, {"shop.orders": table()})

    def connector(self, name: str, *tables: dict[str, Any], **members: Any) -> None:
        """With a worker for each collection of tables."""
        first = len(self.workers)
        numbers = [*range(first, first + len(tables))]
        for index, mine in zip(numbers, tables, strict=True):
            share = 12 // len(tables)
            self.workers.append(
                {
                    "worker": f"{name}-{index}",
                    "connector": name,
                    "index": index,
                    "host": "here",
                    "pid": 100 + index,
                    "state": "RUNNING",
                    "slots": [*range((index - first) * share, (index - first + 1) * share)],
                    "slots_pending": [],
                    "slot_count": 12,
                    "tables": mine,
                    "reading": {"rows": 1200, "queries": 40, "in_flight": 1},
                    "delivery": {"commits": 9, "aborts": 0},
                    "background": [],
                    "retrying": [],
                    "last_report_age_seconds": 0.4,
                    "starting": False,
                }
            )
        known = {"state": "RUNNING", "target": "RUNNING", "workers": numbers, "restarts": 0}
        counts = {"workers_wanted": len(tables), "workers_running": len(tables)}
        self.connectors[name] = {**known, **counts, "waiting_for": None, "given_up": None, **members}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/ui"

    @property
    def told(self) -> list[tuple[str, str]]:
        """What was to be done, in order."""
        return [(method, path) for method, path, _ in self.asked]

    # -- what the page asks ------------------------------------------------------------------------------------

    def tasks(self) -> Mapping[str, Sequence[int]]:
        return {name: [each + 10 for each in one["workers"]] for name, one in self.connectors.items()}

    def slots(self, connector: str) -> Mapping[str, Any] | None:
        if self.trouble is not None:
            raise RetriableDeliveryError(self.trouble)
        return {"connector": connector, "workers": self.foreign} if connector in self.connectors else None

    def dead_letters(self, connector: str, most: int) -> Mapping[str, Any] | None:
        self.looks += 1
        if self.trouble is not None:
            raise RetriableDeliveryError(self.trouble)
        return {"topic": "shop.dead-letters", "letters": self.letters} if connector in self.connectors else None

    def streams(self, connector: str, table: str) -> Mapping[str, Any] | None:
        return {"connector": connector, "table": table, "count": len(self.groups), "groups": self.groups}

    def status(self) -> dict[str, Any]:
        states = [each["state"] for each in self.connectors.values()]
        order = ("STOPPED", "RUNNING", "WAITING", "FAILED")
        return {
            "connector": ",".join(self.connectors),
            "host": "here",
            "pid": 99,
            "version": "0.1.0",
            "started_ms": self.began_ms,
            "state": max(states, key=order.index, default="RUNNING"),
            "waiting_for": None,
            "restarts": 0,
            "workers": self.workers,
            "connectors": self.connectors,
            **self.changed,
        }

    # -- serving -----------------------------------------------------------------------------------------------

    def __enter__(self) -> Stage:
        access = Access(Secret(self.token)) if self.token else Access()
        # What a browser has not asked yet is not waited for.
        self._server = HttpServer("127.0.0.1", self.port, self._routes(), access, answer_seconds=5.0)
        self._server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.answers.set()
        self._server.__exit__(kind, error, trace)

    @contextlib.contextmanager
    def away(self) -> Any:
        self._server.__exit__(None, None, None)
        try:
            yield
        finally:
            self.__enter__()

    def _routes(self) -> list[Route]:
        def status(request: Request) -> Answer:
            self.answers.wait(20)
            return answer_json(self.status())

        def take(request: Request) -> Answer:
            query = "&".join(f"{name}={value[0]}" for name, value in request.query.items())
            shown = request.headers.get("Authorization")
            self.asked.append((request.method, request.path + (f"?{query}" if query else ""), shown))
            if not self.writable:
                return answer_json({"error_code": 409, "message": "a rebalance is under way"}, 409)
            return Answer(202, "", b"")

        one = "/connectors/{connector}"
        return [
            *page_routes(self),
            Route("GET", "/status", status),
            *(Route("PUT", f"{one}/{what}", take, writes=True) for what in ("pause", "stop", "resume")),
            Route("POST", f"{one}/restart", take, writes=True),
            Route("POST", f"{one}/tasks/{{task}}/restart", take, writes=True),
        ]
