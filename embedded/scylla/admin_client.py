"""Talking to the admin interface from Python: one method per thing that a double can do.

In: the interface's address. Out: the decoded JSON answers; `EmbeddedError` with the server's words when it refuses.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from connector.errors import EmbeddedError


class AdminClient:
    """Opens one connection per call; may be used from several threads."""

    def __init__(self, url: str, *, timeout: float = 600.0) -> None:
        self.url = url
        self._place = urlsplit(url).netloc
        self._timeout = timeout

    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Any endpoint; those without a method of their own here too."""
        connection = http.client.HTTPConnection(self._place, timeout=self._timeout)
        try:
            content = None if body is None else json.dumps(body).encode()
            connection.request(method, path, content, {"Content-Type": "application/json"})
            response = connection.getresponse()
            text = response.read()
        except OSError as error:
            raise EmbeddedError(f"the admin interface at {self.url} does not answer: {error}") from None
        finally:
            connection.close()
        answer = json.loads(text) if text else None
        if response.status != http.HTTPStatus.OK:
            message = answer.get("message") if isinstance(answer, dict) else text.decode("utf-8", "replace")
            raise EmbeddedError(f"{method} {path}: {message}")
        return answer

    def cql(self, statement: str, *, keyspace: str | None = None, timestamp: int | None = None) -> dict[str, Any]:
        """Run a statement without a driver."""
        body = {"statement": statement, "keyspace": keyspace, "timestamp": timestamp}
        answer: dict[str, Any] = self.request("POST", "/embedded/cql", body)
        return answer

    def service_delete(self, statement: str, *, timestamp: int | None = None) -> None:
        """Run a DELETE whose log rows say that the system did it (operations -3 and -4)."""
        self.request("POST", "/embedded/service_delete", {"statement": statement, "timestamp": timestamp})

    def preload(self, table: str, rows: int, **options: Any) -> dict[str, Any]:
        """Fill the log of a table (`ks.t`) with generated rows. Options: seed, end_us, span_seconds, partitions, keys,
        batch_rows, mixed, nulls, base. Give the answer to `preload_request.ExpectedRows` for what the log must show."""
        body = {"table": table, "rows": rows, **options}
        answer: dict[str, Any] = self.request("POST", "/embedded/preload", body)
        return answer

    def now_ms(self) -> int:
        return int(self.request("GET", "/embedded/clock")["now_ms"])

    def move_clock(self, seconds: float) -> int:
        """Jump forwards (or backwards); gives the new time in ms."""
        return int(self.request("POST", "/embedded/clock", {"move_ms": seconds * 1000})["now_ms"])

    def freeze_clock(self, at_ms: float | None = None) -> int:
        """Let the clock stand still, at this time or at the present one."""
        return int(self.request("POST", "/embedded/clock", {"set_ms": at_ms, "freeze": True})["now_ms"])

    def reset_clock(self) -> int:
        """Back to the machine's time."""
        return int(self.request("POST", "/embedded/clock", {"reset": True})["now_ms"])

    def new_generation(self, *, keep: Iterable[int] = ()) -> int:
        """A new vnode generation; gives its timestamp (ms). Ranges that end at a token of `keep` keep their streams."""
        answer = self.request("POST", "/embedded/streams/generation", {"keep": list(keep)})
        return int(answer["timestamp"])

    def streams(self) -> dict[str, Any]:
        """All generations and all stream sets of tablets tables."""
        answer: dict[str, Any] = self.request("GET", "/embedded/streams")
        return answer

    def change_streams(
        self,
        table: str,
        *,
        tablets: int | None = None,
        replace: bool | None = None,
        close: Iterable[bytes] | None = None,
        open_tokens: Iterable[int] | None = None,
        random: int | None = None,
    ) -> dict[str, Any]:
        """Change the stream set of a tablets table (`ks.t`) in exactly one way: another number of tablets, all streams
        replaced, some closed and some opened, or something of that kind at random from this seed."""
        body = {
            "tablets": tablets,
            "replace": replace,
            "close": None if close is None else [raw.hex() for raw in close],
            "open": None if open_tokens is None else list(open_tokens),
            "random": random,
        }
        keyspace, _, name = table.partition(".")
        given = {option: value for option, value in body.items() if value is not None}
        answer: dict[str, Any] = self.request("POST", f"/embedded/streams/{keyspace}/{name}", given)
        return answer

    def set_ring_delay(self, seconds: float) -> None:
        self.request("POST", "/embedded/ring_delay", {"seconds": seconds})

    def nodes(self) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = self.request("GET", "/embedded/nodes")
        return answer

    def add_node(self, *, datacenter: str | None = None, tokens: bool = True) -> dict[str, Any]:
        """A node bootstraps: new tokens, a new generation; or without any, which coordinates alone."""
        answer: dict[str, Any] = self.request("POST", "/embedded/nodes", {"datacenter": datacenter, "tokens": tokens})
        return answer

    def remove_node(self, number: int) -> None:
        self.request("DELETE", f"/embedded/nodes/{number}")

    def stop_node(self, number: int, *, missed: bool = False) -> None:
        """``missed``: reads that need its replicas are refused meanwhile."""
        self.request("POST", f"/embedded/nodes/{number}/stop", {"missed": missed})

    def start_node(
        self, number: int, *, like: str | None = None, without: Iterable[str] | None = None, replaced: bool = False
    ) -> None:
        """As it was, or as another version of ScyllaDB (and without some of its extensions): an upgrade. ``replaced``:
        another one in its place, with an id of its own."""
        body = {"like": like, "without": None if without is None else list(without), "replaced": replaced}
        self.request("POST", f"/embedded/nodes/{number}/start", body)

    def make_stale(
        self,
        number: int,
        *,
        as_of_ms: int | None = None,
        behind_ms: int | None = None,
        shows: bool = True,
        writes: bool = False,
    ) -> None:
        """Let a node show the streams as they were known at that time (now, if none is given), or write to those, or
        both."""
        body = {"as_of_ms": as_of_ms, "behind_ms": behind_ms, "shows": shows, "writes": writes}
        self.request("POST", f"/embedded/nodes/{number}/stale", body)

    def make_deaf(self, number: int) -> None:
        """Let a node hear of no change of the schema from now on."""
        self.request("POST", f"/embedded/nodes/{number}/stale", {"schema": True})

    def make_fresh(self, number: int) -> None:
        self.request("POST", f"/embedded/nodes/{number}/fresh")

    def drop_connections(self, node: int | None = None) -> int:
        """Cut all client connections; gives their number."""
        query = "" if node is None else f"?node={node}"
        return int(self.request("DELETE", f"/embedded/connections{query}")["dropped"])

    def add_fault(self, action: str, **options: Any) -> int:
        """Inject a fault; gives its id. Options: node, table, pattern, opcode, skip, count, probability, seed,
        delay_ms, when, message, write_type."""
        return int(self.request("POST", "/embedded/faults", {"action": action, **options})["id"])

    def fault(self, fault_id: int) -> dict[str, Any]:
        """A rule with how often it was seen and how often it fired."""
        found: dict[str, Any] = next(rule for rule in self.request("GET", "/embedded/faults") if rule["id"] == fault_id)
        return found

    def remove_fault(self, fault_id: int) -> None:
        self.request("DELETE", f"/embedded/faults/{fault_id}")

    def clear_faults(self) -> None:
        self.request("DELETE", "/embedded/faults")

    def counters(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.request("GET", "/embedded/counters")
        return answer

    def reset_counters(self) -> None:
        self.request("DELETE", "/embedded/counters")
