"""A simulated table with rows from before its log, as bytes: what a write leaves in the log, what a SELECT shows.

In: writes, a `History`, a query, the time. Out: cells. A selection with functions shows what ScyllaDB shows of a
partition with static values alone: a row with the clustering key of the row before it.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cassandra import cqltypes

from connector.errors import SourceError
from tests.simulation.base_world import COLLECTIONS, PLAIN, Cells, Elements, History, Write, token_of_pk

SELECT = re.compile(r"SELECT (?P<what>.+) FROM (?P<keyspace>\w+)\.(?P<table>\w+) WHERE (?P<where>.+)")
#: The columns of every table's log, with their types.
OF_EVERY_LOG = {
    "cdc$stream_id": "blob",
    "cdc$time": "timeuuid",
    "cdc$batch_seq_no": "int",
    "cdc$end_of_batch": "boolean",
    "cdc$operation": "tinyint",
    "cdc$ttl": "bigint",
}
_TIME = re.compile(r"(?:TTL|WRITETIME)\((.+)\)")
_CLOSED = {"insert": b"\x02", "update": b"\x01", "static": b"\x01", "row": b"\x03", "partition": b"\x04"}
_RANGE = (b"\x06", b"\x07")  # behind the first, up to and with the last
_TRUE = b"\x01"
_int = struct.Struct(">i").pack

#: Columns by name: kind, type, what the log has in its place.
COLUMNS = {
    "pk": ("partition_key", "int", "int"),
    "ck": ("clustering", "int", "int"),
    "s": ("static", "text", "text"),
    "v": ("regular", "text", "text"),
    "n": ("regular", "int", "int"),
    "m": ("regular", "map<text, int>", "frozen<map<text, int>>"),
    "l": ("regular", "list<int>", "frozen<map<timeuuid, int>>"),
    "e": ("regular", "set<int>", "frozen<set<int>>"),
}
_REMOVED = {"m": "frozen<set<text>>", "l": "frozen<set<timeuuid>>", "e": "frozen<set<int>>"}


def columns_of(history: History) -> dict[str, tuple[str, str, str]]:
    return {name: each for name, each in COLUMNS.items() if not (history.plain and name in ("s", "l"))}


def base_rows(history: History, clustering: tuple[str, str], added: Mapping[str, str]) -> list[dict[str, Any]]:
    """As the server's own table of columns has them. ``added``: those that are not always there, with their types."""
    columns = {name: (kind, type_) for name, (kind, type_, _) in columns_of(history).items() if name != "ck"}
    columns[clustering[0]] = ("clustering", clustering[1])
    columns |= {name: ("regular", type_) for name, type_ in added.items()}
    return [
        {
            "column_name": name,
            "kind": kind,
            "position": -1 if kind in ("static", "regular") else 0,
            "type": type_,
            "clustering_order": "asc",
        }
        for name, (kind, type_) in columns.items()
    ]


def log_columns(history: History, clustering: tuple[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """The log's columns with their types."""
    there = columns_of(history)
    found = {
        **OF_EVERY_LOG,
        **{name: type_ for name, (_, _, type_) in there.items() if name != "ck"},
        **dict([clustering]),
        **added,
    }
    others = [name for name in (*there, *added) if name not in ("pk", "ck")]
    found |= {f"cdc$deleted_{name}": "boolean" for name in others}
    return found | {f"cdc$deleted_elements_{name}": type_ for name, type_ in _REMOVED.items() if name in there}


@functools.cache
def driver_type(spelled: str) -> Any:
    """The driver's class of a type."""
    names = {"int": "Int32Type", "text": "UTF8Type", "blob": "BytesType", "timeuuid": "TimeUUIDType"}
    names |= {"boolean": "BooleanType", "tinyint": "ByteType", "bigint": "LongType"}
    names |= {"map": "MapType", "set": "SetType", "list": "ListType", "frozen": "FrozenType"}
    text = re.sub(r"\w+", lambda found: names[found[0]], spelled)
    return cqltypes.lookup_casstype(text.replace("<", "(").replace(">", ")").replace(" ", ""))


def log_cells(write: Write) -> list[tuple[dict[str, bytes | None], bool]]:
    """The rows of the log that a write leaves, and whether each is a change."""
    if write.kind == "range":
        bounds = zip(_RANGE, (write.ck, write.last), (True, False), strict=True)
        return [({"cdc$operation": code, "ck": _int(at or 0)}, counted) for code, at, counted in bounds]
    cells: dict[str, bytes | None] = {"cdc$operation": _CLOSED[write.kind]}
    if write.ck is not None:
        cells["ck"] = _int(write.ck)
    if write.ttl is not None:
        cells["cdc$ttl"] = struct.pack(">q", write.ttl)
    for name, value in write.cells.items():
        if value is None:
            cells[f"cdc$deleted_{name}"] = _TRUE
        elif isinstance(value, Elements):
            if value.whole:
                cells[f"cdc$deleted_{name}"] = _TRUE
            if value.written:
                cells[name] = _joined(name, sorted(value.written), keys=name != "e" or None)
            if value.removed:
                cells[f"cdc$deleted_elements_{name}"] = _joined("e", [(key, 1) for key in value.removed])
        else:
            cells[name] = _raw(value)
    return [(cells, True)]


@dataclass(frozen=True)
class Selection:
    """A statement about a simulated table."""

    what: list[str]
    where: str
    values: Sequence[Any]

    def rows(
        self, history: History, columns: set[str], now_ms: int, heard: float
    ) -> Iterator[tuple[bytes | None, ...]]:
        """What a node shows now that has heard of changes until then, in the order of tokens."""
        plain = {_TIME.sub(r"\1", name).strip('"') for name in self.what}
        if not plain <= columns:
            raise SourceError(f"Undefined column name {', '.join(plain - columns)}")
        deceived = any(map(_TIME.fullmatch, self.what))
        before: bytes | None = None
        for pk in sorted(history.writes, key=token_of_pk):
            if not self._wanted(pk):
                continue
            partition = history.partition(pk, lambda write: write.seen_at <= now_ms)
            us = now_ms * 1000
            found = False
            for ck, cells in sorted(partition.rows.items()):
                is_there = partition.shown(ck, us, heard) is not None
                found = found or is_there
                if not is_there or not self._behind(ck):
                    continue
                before = _int(ck)
                yield self._row(_int(pk), before, partition.statics, cells, us, heard)
            if not found and "ck" not in self.where and partition.shown(None, us) is not None:
                shown = before if deceived and self.where.startswith("token") else None
                yield self._row(_int(pk), shown, partition.statics, Cells(), us, heard)

    def _wanted(self, pk: int) -> bool:
        if self.where.startswith("token"):
            low, high = self.values[:2]
            return bool(low < token_of_pk(pk) <= high)
        return bool(self.values[0] == _int(pk))

    def _behind(self, ck: int) -> bool:
        return "ck" not in self.where or _int(ck) > self.values[-1]

    def _row(
        self, pk: bytes, ck: bytes | None, statics: Cells, cells: Cells, us: int, heard: float
    ) -> tuple[bytes | None, ...]:
        shown = statics.shown(us) | cells.shown(us, heard)
        there: dict[str, bytes | None] = {"pk": pk, "ck": ck}
        for name, value in shown.items():
            there[name] = _shown(name, value)
            if name not in COLLECTIONS:
                of = statics if name == "s" else cells
                end = of.ends(name)
                there[f"TTL({name})"] = None if end >= 1 << 60 else _int(end // 1_000_000 - us // 1_000_000)
                there[f"WRITETIME({name})"] = struct.pack(">q", of.written[name])
        return tuple(there.get(name) for name in self.what)

    def place(self, row: Sequence[bytes | None]) -> tuple[int, int]:
        """Where a row stands among all."""
        pk, ck = row[self.what.index("pk")], row[self.what.index("ck")]
        assert pk is not None
        return token_of_pk(int.from_bytes(pk, "big")), -1 if ck is None else int.from_bytes(ck, "big")

    def types(self, added: Mapping[str, str]) -> tuple[Any, ...]:
        """``added``: of the columns that are not always there."""
        types = {name: type_ for name, (_, type_, _) in COLUMNS.items()} | dict(added)
        return tuple(driver_type(types.get(name, "text")) for name in self.what)


def _raw(value: object) -> bytes:
    if isinstance(value, int):
        return _int(value)
    return value if isinstance(value, bytes) else str(value).encode()


def _joined(name: str, elements: Sequence[tuple[Any, Any]], keys: bool | None = None) -> bytes:
    parts = [_raw(each) for pair in elements for each in (pair if keys else pair[:1])]
    return _int(len(elements)) + b"".join(_int(len(part)) + part for part in parts)


def _shown(name: str, value: Any) -> bytes:
    if name == "m":
        return _joined(name, [*value.items()], keys=True)
    if name in COLLECTIONS:
        return _joined(name, [(each, 1) for each in value])
    return _raw(value)


assert {*PLAIN, *COLLECTIONS, "s"} <= {*COLUMNS}
