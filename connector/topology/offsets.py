"""Marks, positions and snapshots: the content of the offsets topic for tables and streams, and its encoding.

Decoded records (a mapping for the key's second member, one for the value, None for a tombstone) go in, frozen
values come out, and back. The connector's name in front of the key, and the JSON text, belong to
`connector.delivery`; the order of the members is fixed here, because a compacted topic compares keys byte by
byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from connector.errors import FatalDeliveryError
from connector.offsets_entry import OffsetsEntry, is_owner
from connector.table_name import TableName
from connector.timeuuid import LAST_MS, uuid_bytes, uuid_text
from connector.topology.streams import MAX_TOKEN, MIN_TOKEN

#: More than any topic has partitions: a number without bound would be counted up to.
_MOST_SLOTS = 1_000_000
_LONGEST_ID = 36


class Position(NamedTuple):
    """Everything before ``read_to`` (ms) is delivered. ``after``, only inside a read, then decides: up to
    that time UUID."""

    read_to: int
    after: bytes | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """What holds for all streams of one table in one slot that have no position of their own.

    ``stream_set`` is the newest set that the writer of the mark took into account, ``start`` where the table
    began, ``owner`` the process that wrote it. Streams that ended at ``rechecked`` or before need no further look
    beyond their end; those up to ``looked`` have had one. ``log``: the id of the log whose set that is, or
    that it is the cluster's; a mark of an earlier version does not say. ``began``: when the table was started, by the
    servers' time, until all from before then is delivered: ``start`` may be far older than anything in the log.
    ``ttl``: for how many seconds the log keeps what was not read, which a later ALTER does not change.
    """

    read_to: int
    stream_set: int
    start: int
    owner: str
    rechecked: int = -1
    looked: int = -1
    log: str | None = None
    began: int | None = None
    ttl: int | None = None

    def __post_init__(self) -> None:
        if self.rechecked < 0:
            # Versions that did not look beyond the ends of streams owe no look for what they had read.
            object.__setattr__(self, "rechecked", min(self.read_to, self.stream_set))
        object.__setattr__(self, "looked", max(self.rechecked, self.looked))


class MarkKey(NamedTuple):
    table: TableName
    slot: int
    slots: int


class PositionKey(NamedTuple):
    table: TableName
    stream: bytes


class SnapshotKey(NamedTuple):
    table: TableName
    snapshot: str


class ProgressKey(NamedTuple):
    """Of a part of a snapshot: the tokens behind ``behind``, as far as its value says."""

    table: TableName
    snapshot: str
    behind: int


class Inside(NamedTuple):
    """A place in a partition that is too large for one read: behind a row's clustering key. ``part`` counts such places
    of one partition. ``table_id``: of which table it is, where several had the name; older versions do not say it."""

    partition: tuple[bytes | None, ...]
    after: tuple[bytes | None, ...]
    part: int
    table_id: str | None = None


class Reached(NamedTuple):
    """How far a snapshot got: with all tokens up to ``upto``, and ``inside`` the partition behind it."""

    upto: int
    inside: Inside | None = None


#: Of a snapshot, what few have.
_AT_TIMES = ("asked", "where", "paused", "stopped", "number")

EntryKey = MarkKey | PositionKey | SnapshotKey | ProgressKey


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table's rows on their way into its topic. ``ended``: all of them are there, or, if it was ``stopped``, nobody
    wants them any more; ``asked``: who or what asked for it; ``where``: a condition in CQL on rows that are wanted."""

    kind: str
    began: int
    ended: int | None = None
    asked: str | None = None
    where: str | None = None
    paused: bool = False
    stopped: bool = False
    number: int | None = None


def mark_entry(key: MarkKey, mark: Mark | None) -> OffsetsEntry:
    members = {
        "keyspace_name": key.table.keyspace,
        "table_name": key.table.name,
        "slot": key.slot,
        "slots": key.slots,
    }
    if mark is None:
        return OffsetsEntry(key.slot, members, None)
    value = {
        "read_to": mark.read_to,
        "stream_set": mark.stream_set,
        "start": mark.start,
        "owner": mark.owner,
        "rechecked": mark.rechecked,
    }
    if mark.looked > mark.rechecked:
        value["looked"] = mark.looked
    if mark.log is not None:
        value["log"] = mark.log
    if mark.began is not None:
        value["began"] = mark.began
    if mark.ttl is not None:
        value["ttl"] = mark.ttl
    return OffsetsEntry(key.slot, members, value)


def position_entry(slot: int, key: PositionKey, position: Position | None) -> OffsetsEntry:
    members = {
        "keyspace_name": key.table.keyspace,
        "table_name": key.table.name,
        "stream_id": key.stream.hex(),
    }
    if position is None:
        return OffsetsEntry(slot, members, None)
    value: dict[str, Any] = {"read_to": position.read_to}
    if position.after is not None:
        value["after"] = uuid_text(position.after)
    return OffsetsEntry(slot, members, value)


def snapshot_entry(slot: int, key: SnapshotKey, snapshot: Snapshot | None) -> OffsetsEntry:
    members = {"keyspace_name": key.table.keyspace, "table_name": key.table.name, "snapshot": key.snapshot}
    if snapshot is None:
        return OffsetsEntry(slot, members, None)
    value: dict[str, Any] = {"kind": snapshot.kind, "began": snapshot.began, "ended": snapshot.ended}
    more = {name: getattr(snapshot, name) for name in _AT_TIMES}
    # By identity: the first wish of all has the number 0, which equals False.
    value |= {name: each for name, each in more.items() if each is not None and each is not False}
    return OffsetsEntry(slot, members, value)


def progress_entry(slot: int, key: ProgressKey, reached: Reached | None) -> OffsetsEntry:
    """The rows of all tokens behind the key's are delivered as far as ``reached`` says."""
    members = {
        "keyspace_name": key.table.keyspace,
        "table_name": key.table.name,
        "snapshot": key.snapshot,
        "behind": key.behind,
    }
    if reached is None:
        return OffsetsEntry(slot, members, None)
    value: dict[str, Any] = {"upto": reached.upto}
    if (inside := reached.inside) is not None:
        value |= {"partition": _cells(inside.partition), "after": _cells(inside.after), "part": inside.part}
        value |= {} if inside.table_id is None else {"table_id": inside.table_id}
    return OffsetsEntry(slot, members, value)


def _cells(row: Iterable[bytes | None]) -> list[str | None]:
    return [None if cell is None else cell.hex() for cell in row]


def _raw(cells: Iterable[str | None]) -> tuple[bytes | None, ...]:
    return tuple(None if cell is None else bytes.fromhex(cell) for cell in cells)


def _unreadable(kind: str, place: str, members: Mapping[str, Any], error: Exception) -> FatalDeliveryError:
    why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return FatalDeliveryError(
        f"{place}: a {kind} of this connector cannot be read: {dict(members)} ({why}); something else wrote it: "
        "write a tombstone for its key, or move the table to a known time (`scylla-cdc offsets reset`)"
    )


def _whole(value: Any, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{value!r} is not a number from {low} to {high}")
    return value


def _time(value: Any) -> int:
    return _whole(value, -1, LAST_MS)


def _token(value: Any) -> int:
    return _whole(value, MIN_TOKEN, MAX_TOKEN)


def _table(key: Mapping[str, Any]) -> TableName:
    keyspace, name = key["keyspace_name"], key["table_name"]
    if not (isinstance(keyspace, str) and isinstance(name, str)):
        raise TypeError("names are texts")
    return TableName(keyspace, name)


def parse_key(key: Mapping[str, Any], place: str = "the offsets topic") -> EntryKey | None:
    """The key of an entry about a table; None for a kind of record that this version does not know."""
    try:
        if "stream_id" in key:
            return PositionKey(_table(key), bytes.fromhex(key["stream_id"]))
        if "slots" in key:
            slots = _whole(key["slots"], 1, _MOST_SLOTS)
            return MarkKey(_table(key), _whole(key["slot"], 0, slots - 1), slots)
        if "behind" in key:
            return ProgressKey(_table(key), str(key["snapshot"]), _token(key["behind"]))
        if "snapshot" in key:
            return SnapshotKey(_table(key), str(key["snapshot"]))
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable("key", place, key, error) from None
    return None


def known_key(entry: OffsetsEntry) -> EntryKey | None:
    """As `parse_key`; None also for a key that nobody of us can have written: it is no place of ours."""
    try:
        return parse_key(entry.key, entry.place)
    except FatalDeliveryError:
        return None


def parse_mark(value: Mapping[str, Any], place: str = "the offsets topic") -> Mark:
    try:
        read_to, stream_set, start = (_time(value[name]) for name in ("read_to", "stream_set", "start"))
        owner = value["owner"]
        if not is_owner(owner):
            raise ValueError("owner is not the name of a process")
        rechecked, looked = (_time(value.get(name, -1)) for name in ("rechecked", "looked"))
        log = value.get("log")
        if log is not None and not (isinstance(log, str) and len(log) <= _LONGEST_ID):
            raise ValueError("log is not the id of a table")
        began = _time(value["began"]) if "began" in value else None
        ttl = _whole(value["ttl"], 0, LAST_MS) if "ttl" in value else None
        return Mark(read_to, stream_set, start, owner, rechecked, looked, log, began, ttl)
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable("mark", place, value, error) from None


def parse_position(value: Mapping[str, Any], place: str = "the offsets topic") -> Position:
    try:
        after = value.get("after")
        return Position(_time(value["read_to"]), None if after is None else uuid_bytes(after))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _unreadable("position", place, value, error) from None


def parse_snapshot(value: Mapping[str, Any], place: str = "the offsets topic") -> Snapshot:
    try:
        ended = value["ended"]
        more = {name: value[name] for name in _AT_TIMES if name in value}
        return Snapshot(str(value["kind"]), _time(value["began"]), None if ended is None else _time(ended), **more)
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable("snapshot", place, value, error) from None


def parse_progress(value: Mapping[str, Any], place: str = "the offsets topic") -> Reached:
    try:
        upto = _token(value["upto"])
        if "part" not in value:
            return Reached(upto)
        part, table_id = _whole(value["part"], 1, 1 << 62), value.get("table_id")
        if table_id is not None and not isinstance(table_id, str):
            raise ValueError("table_id is not the id of a table")
        return Reached(upto, Inside(_raw(value["partition"]), _raw(value["after"]), part, table_id))
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable("snapshot's progress", place, value, error) from None


def told_apart(entries: Iterable[OffsetsEntry]) -> tuple[list[OffsetsEntry], list[str]]:
    """The entries that can be read, and what is wrong with each of the others."""
    readable: list[OffsetsEntry] = []
    wrong: list[str] = []
    for entry in entries:
        try:
            check_entry(entry)
        except FatalDeliveryError as error:
            wrong.append(str(error))
        else:
            readable.append(entry)
    return readable, wrong


def check_entry(entry: OffsetsEntry) -> None:
    """Raises ``FatalDeliveryError`` for an entry that cannot be read."""
    key = parse_key(entry.key, entry.place)
    if entry.value is not None:
        if isinstance(key, MarkKey):
            parse_mark(entry.value, entry.place)
        elif isinstance(key, PositionKey):
            parse_position(entry.value, entry.place)
        elif isinstance(key, SnapshotKey):
            parse_snapshot(entry.value, entry.place)
        elif key is not None:
            parse_progress(entry.value, entry.place)


def noted_slots(records: Iterable[OffsetsEntry]) -> int | None:
    """The number of slots that existing marks were written for, or None without marks.

    It rules over the setting and over the topic's partitions: with another number streams would belong to
    other slots, and nobody would find their positions.
    """
    alive: dict[MarkKey, bool] = {}
    for record in records:
        key = known_key(record)
        if isinstance(key, MarkKey):
            alive[key] = record.value is not None
    noted = sorted({key.slots for key in alive if alive[key]})
    if len(noted) > 1:
        raise FatalDeliveryError(
            f"the offsets topic holds marks for different numbers of slots: {', '.join(map(str, noted))}"
        )
    return noted[0] if noted else None
