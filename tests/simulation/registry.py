"""The simulated Schema Registry: what the product's own client reaches in place of a connection of Python's library.

In: requests, what goes wrong. Out: answers, late, or a refusal, or none. Records in Avro, read back by the schemas that
were registered.
"""

from __future__ import annotations

import http.client
import io
import json
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import fastavro

from tests.registry.registry_server import Registry
from tests.simulation.scheduler import Scheduler


class SimulatedRegistry(Registry):
    """``away_until``: nobody listens before that time; ``seconds``: how long it takes to answer, ``slow``: where a
    subject contains a text."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self.scheduler = scheduler
        self.away_until = 0.0
        self.seconds = 0.01
        self.slow: dict[str, float] = {}
        self.mishaps = 0
        self._read: dict[int, Any] = {}
        self._decoded: dict[bytes, dict[str, Any]] = {}

    def mend(self) -> None:
        self.refused.clear()
        self.slow.clear()
        self.away_until, self.seconds = 0.0, 0.01

    def client(self) -> Any:
        """In place of the package `http`."""
        return SimpleNamespace(
            client=SimpleNamespace(
                HTTPConnection=lambda *_, **__: _Connection(self), HTTPException=http.client.HTTPException
            )
        )

    def decoded(self, value: bytes) -> dict[str, Any]:
        """A record's value, in Avro or JSON; to be looked at only. All records are asked for, as often as somebody
        looks whether all is there."""
        found = self._decoded.get(value)
        if found is None:
            found = self._decoded[value] = self._decode(value)
        return found

    def _decode(self, value: bytes) -> dict[str, Any]:
        if value[:1] != b"\x00":
            found: dict[str, Any] = json.loads(value)
            return found
        number = int.from_bytes(value[1:5], "big")
        if number not in self._read:
            self._read[number] = fastavro.parse_schema(json.loads(self.schemas[number - 1]))
        return fastavro.schemaless_reader(io.BytesIO(value[5:]), self._read[number], None)  # type: ignore[return-value]


class _Connection:
    #: There is none whose time would have to be bounded: how long an answer takes is decided here.
    sock = None

    def __init__(self, registry: SimulatedRegistry) -> None:
        self._registry = registry
        self._answer: tuple[int, bytes] = (0, b"")

    def request(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> None:
        registry = self._registry
        registry.scheduler.pass_time(registry.seconds * registry.scheduler.random.random())
        if registry.away_until > registry.scheduler.now:
            registry.mishaps += 1
            raise ConnectionRefusedError("connection refused")
        registry.scheduler.pass_time(next((each for text, each in registry.slow.items() if text in path), 0.0))
        refused = next((said for text, said in registry.refused.items() if text in unquote(path)), None)
        registry.mishaps += refused is not None
        status, answer = refused or registry.answer(method, path, json.loads(body) if body else None)
        self._answer = status, json.dumps(answer).encode()

    def getresponse(self) -> Any:
        self._registry.scheduler.pass_time(self._registry.seconds * self._registry.scheduler.random.random())
        status, content = self._answer
        return SimpleNamespace(status=status, read=lambda most: content[:most], getheader=lambda name: None)

    def close(self) -> None:
        """Nothing is held."""
