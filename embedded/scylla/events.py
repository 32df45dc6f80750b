"""Events that the server pushes: the registrations, and the messages.

In: schema changes, nodes coming and going. Out: EVENT bodies handed to every registered connection. A connection
registers by type; the stream id of events is -1.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address
from typing import Final, Protocol

from embedded.scylla.errors import ProtocolError
from embedded.scylla.protocol.responses import schema_event_body, status_event_body
from embedded.scylla.schema import SchemaEvent

TOPOLOGY_CHANGE: Final = "TOPOLOGY_CHANGE"
STATUS_CHANGE: Final = "STATUS_CHANGE"
SCHEMA_CHANGE: Final = "SCHEMA_CHANGE"
EVENT_TYPES: Final = (TOPOLOGY_CHANGE, STATUS_CHANGE, SCHEMA_CHANGE)


class Subscriber(Protocol):
    """A connection, as far as events are concerned."""

    def push_event(self, body: bytes) -> None: ...


class EventHub:
    """All registrations of the server, over all its nodes."""

    def __init__(self) -> None:
        self._subscribers: dict[str, dict[Subscriber, None]] = {event: {} for event in EVENT_TYPES}
        self.pushed = 0

    def register(self, subscriber: Subscriber, events: Iterable[str]) -> None:
        wanted = list(events)
        for event in wanted:
            if event not in self._subscribers:
                raise ProtocolError(f"Invalid value '{event}' for Event.Type")
        for event in wanted:
            self._subscribers[event][subscriber] = None

    def forget(self, subscriber: Subscriber) -> None:
        for subscribers in self._subscribers.values():
            subscribers.pop(subscriber, None)

    def _push(self, event: str, body: bytes) -> None:
        for subscriber in list(self._subscribers[event]):
            subscriber.push_event(body)
            self.pushed += 1

    def schema_changed(self, event: SchemaEvent) -> None:
        self._push(SCHEMA_CHANGE, schema_event_body(event.change, event.target, event.keyspace, event.name))

    def status_changed(self, address: IPv4Address, port: int, *, up: bool) -> None:
        self._push(STATUS_CHANGE, status_event_body(STATUS_CHANGE, "UP" if up else "DOWN", address, port))

    def topology_changed(self, change: str, address: IPv4Address, port: int) -> None:
        """`change` is NEW_NODE or REMOVED_NODE."""
        self._push(TOPOLOGY_CHANGE, status_event_body(TOPOLOGY_CHANGE, change, address, port))
