"""Marks and positions: what the offsets topic says about tables and streams, and how it is spelled there.

Decoded records (a mapping for the key's second member, one for the value, None for a tombstone) go in, frozen
values come out, and back. The connector's name in front of the key, and the JSON text, belong to
`connector.delivery`; the order of the members is fixed here, because a compacted topic compares keys byte by
byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from connector.errors import FatalDeliveryError
from connector.topology.slots import TableName
from connector.topology.times import uuid_bytes, uuid_text


class Position(NamedTuple):
    """Everything before ``read_to`` (ms) is delivered. ``after``, only inside a read, then decides: up to
    that time UUID."""

    read_to: int
    after: bytes | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """What holds for all streams of one table in one slot that have no position of their own.

    ``stream_set`` is the newest set that the writer of the mark took into account, ``start`` where the table
    began, ``owner`` the process that wrote it.
    """

    read_to: int
    stream_set: int
    start: int
    owner: str


class MarkKey(NamedTuple):
    table: TableName
    slot: int
    slots: int


class PositionKey(NamedTuple):
    table: TableName
    stream: bytes


@dataclass(frozen=True, slots=True)
class Entry:
    """One record for the offsets topic; ``slot`` is its partition, ``value`` None a tombstone."""

    slot: int
    key: Mapping[str, Any]
    value: Mapping[str, Any] | None


class OffsetsRecord(Protocol):
    """What `Planner.restore` and `Planner.follow` take: any object with a decoded key and value."""

    @property
    def slot(self) -> int: ...

    @property
    def key(self) -> Mapping[str, Any]: ...

    @property
    def value(self) -> Mapping[str, Any] | None: ...


def mark_entry(key: MarkKey, mark: Mark | None) -> Entry:
    members = {
        "keyspace_name": key.table.keyspace,
        "table_name": key.table.name,
        "slot": key.slot,
        "slots": key.slots,
    }
    if mark is None:
        return Entry(key.slot, members, None)
    value = {
        "read_to": mark.read_to,
        "stream_set": mark.stream_set,
        "start": mark.start,
        "owner": mark.owner,
    }
    return Entry(key.slot, members, value)


def position_entry(slot: int, key: PositionKey, position: Position | None) -> Entry:
    members = {
        "keyspace_name": key.table.keyspace,
        "table_name": key.table.name,
        "stream_id": key.stream.hex(),
    }
    if position is None:
        return Entry(slot, members, None)
    value: dict[str, Any] = {"read_to": position.read_to}
    if position.after is not None:
        value["after"] = uuid_text(position.after)
    return Entry(slot, members, value)


def _unreadable(kind: str, members: Mapping[str, Any], error: Exception) -> FatalDeliveryError:
    return FatalDeliveryError(f"the offsets topic holds a {kind} that cannot be read: {dict(members)} ({error})")


def parse_key(key: Mapping[str, Any]) -> MarkKey | PositionKey | None:
    """The key of a mark or a position; None for a kind of record that this version does not know."""
    try:
        if "stream_id" in key:
            table = TableName(str(key["keyspace_name"]), str(key["table_name"]))
            return PositionKey(table, bytes.fromhex(key["stream_id"]))
        if "slots" in key:
            table = TableName(str(key["keyspace_name"]), str(key["table_name"]))
            return MarkKey(table, int(key["slot"]), int(key["slots"]))
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable("key", key, error) from None
    return None


def parse_mark(value: Mapping[str, Any]) -> Mark:
    try:
        return Mark(int(value["read_to"]), int(value["stream_set"]), int(value["start"]), str(value["owner"]))
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable("mark", value, error) from None


def parse_position(value: Mapping[str, Any]) -> Position:
    try:
        after = value.get("after")
        return Position(int(value["read_to"]), None if after is None else uuid_bytes(after))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _unreadable("position", value, error) from None


def noted_slots(records: Iterable[OffsetsRecord]) -> int | None:
    """The number of slots that existing marks were written for, or None without marks.

    It rules over the setting and over the topic's partitions: with another number streams would belong to
    other slots, and nobody would find their positions.
    """
    alive: dict[MarkKey, bool] = {}
    for record in records:
        key = parse_key(record.key)
        if isinstance(key, MarkKey):
            alive[key] = record.value is not None
    noted = sorted({key.slots for key in alive if alive[key]})
    if len(noted) > 1:
        raise FatalDeliveryError(
            f"the offsets topic holds marks for different numbers of slots: {', '.join(map(str, noted))}"
        )
    return noted[0] if noted else None
