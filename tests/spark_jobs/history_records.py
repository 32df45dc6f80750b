"""Random histories of one many-typed table: the same operations for the model and as Kafka records.

In: a seed and how many histories. Out: a model that has seen them, and their records in the order of writing. Times are
few and close together, so that ties, tombstones one microsecond before their write, and late deletes are the rule.
"""

from __future__ import annotations

import base64
import json
import random
import uuid
from decimal import Decimal
from typing import Any

from connector.values.types import (
    CqlType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    native,
    parse_type,
)
from tests.spark_jobs.history_model import ModelColumn, TableModel

TOPIC, RANGES = "p.ks.t", "p.ks.t.range-deletes"
ADDRESS = UserType(
    "ks", "addr", (("street", native("text")), ("no", native("int")), ("tags", parse_type("frozen<set<int>>")))
)
TYPES = {"addr": ADDRESS}

PARTITION = [("h", native("int")), ("p", native("double"))]
CLUSTERING = [("c", native("decimal"), False), ("d", native("timeuuid"), True)]
COLUMNS = [
    ModelColumn(name, parse_type(spelled, TYPES), static)
    for name, spelled, static in (
        ("s", "int", True),
        ("ss", "set<decimal>", True),
        ("su", "addr", True),
        ("a", "int", False),
        ("b", "boolean", False),
        ("f", "double", False),
        ("t", "text", False),
        ("n", "decimal", False),
        ("i", "inet", False),
        ("z", "blob", False),
        ("w", "timestamp", False),
        ("fr", "frozen<map<text, frozen<list<double>>>>", False),
        ("tu", "tuple<int, text>", False),
        ("m", "map<text, int>", False),
        ("mf", "map<double, frozen<tuple<int, text>>>", False),
        ("l", "list<bigint>", False),
        ("st", "set<timeuuid>", False),
        ("u", "addr", False),
    )
]
UUIDS = [
    uuid.UUID(text)
    for text in (
        "8d1c5f00-1234-11ee-8080-808080808080",
        "8d1c5f00-1234-11ee-80ff-808080808080",
        "8d1c5f00-1234-11ee-8000-000000000000",
        "00000000-1235-11ee-bf7f-7f7f7f7f7f7f",
        "ffffffff-1233-11ee-8080-808080808080",
    )
]
POOL: dict[str, list[Any]] = {
    "int": [-1, 1, 0, -2147483648, 2147483647],
    "bigint": [-1, 1, 2**62],
    "boolean": [True, False],
    "double": [0.0, -0.0, 1.5, -1.5, float("inf"), float("-inf"), float("nan")],
    "text": ["", "a", "ä", "b\x00", "𝄞"],
    "decimal": [Decimal(text) for text in ("1.0", "1.00", "-2", "3E+1", "30", "0", "0.00")],
    "blob": [b"", b"\x00", b"\xff\x00"],
    "timestamp": [-1, 0, 1700000000000],
    "timeuuid": UUIDS,
    "inet": [],
}


def _pools() -> None:
    from ipaddress import ip_address

    POOL["inet"] = [ip_address(text) for text in ("1.2.3.4", "255.0.0.1", "2001:db8::1", "::ffff:1.2.3.4")]


_pools()


def some(rnd: random.Random, type_: CqlType) -> Any:
    if isinstance(type_, NativeType):
        return rnd.choice(POOL[type_.name])
    if isinstance(type_, ListType):
        return [some(rnd, type_.element) for _ in range(rnd.randrange(3))]
    if isinstance(type_, SetType):
        return sorted({some(rnd, type_.element) for _ in range(rnd.randrange(3))})
    if isinstance(type_, MapType):
        keys = sorted({some(rnd, type_.key) for _ in range(rnd.randrange(3))}, key=lambda key: str(key).encode())
        return [(key, some(rnd, type_.value)) for key in keys]
    if isinstance(type_, TupleType):
        return [None if rnd.random() < 0.3 else some(rnd, element) for element in type_.elements]
    assert isinstance(type_, UserType)
    return [None if rnd.random() < 0.3 else some(rnd, kind) for _, kind in type_.fields]


def as_json(type_: CqlType, value: Any) -> Any:
    """A value as schemaless JSON records have it."""
    if value is None:
        return None
    if isinstance(type_, NativeType):
        if type_.name == "inet":
            if value.version == 4:
                return str(value)
            raw = value.packed
            return ":".join(f"{int.from_bytes(raw[at : at + 2]):x}" for at in range(0, 16, 2))
        if type_.name == "blob":
            return base64.b64encode(value).decode()
        if type_.name in ("decimal", "timeuuid"):
            return str(value)
        if type_.name == "double" and value != value:
            return "NaN"
        if type_.name == "double" and value in (float("inf"), float("-inf")):
            return "Infinity" if value > 0 else "-Infinity"
        return value
    if isinstance(type_, ListType | SetType):
        return [as_json(type_.element, item) for item in value]
    if isinstance(type_, MapType):
        return [{"key": as_json(type_.key, key), "value": as_json(type_.value, item)} for key, item in value]
    if isinstance(type_, TupleType):
        return {f"field_{at}": as_json(kind, item) for at, (kind, item) in enumerate(zip(type_.elements, value))}
    assert isinstance(type_, UserType)
    return {name: as_json(kind, item) for (name, kind), item in zip(type_.fields, value)}


def definition() -> str:
    columns = [
        {"name": name, "type": kind.cql(), "kind": "partition_key", "position": at, "order": "none"}
        for at, (name, kind) in enumerate(PARTITION)
    ]
    columns += [
        {"name": name, "type": kind.cql(), "kind": "clustering", "position": at, "order": "desc" if desc else "asc"}
        for at, (name, kind, desc) in enumerate(CLUSTERING)
    ]
    columns += [
        {"name": c.name, "type": c.type.cql(), "kind": "static" if c.static else "regular", "position": -1}
        for c in COLUMNS
    ]
    output = {"format": "legacy", "collections": "delta", "range_deletes": "topic", "skipped_operations": []}
    described = {
        "keyspace_name": "ks",
        "table_name": "t",
        "table_id": None,
        "version": "1",
        "columns": columns,
        "types": {"addr": [[name, kind.cql()] for name, kind in ADDRESS.fields]},
        "dropped": [],
        "cdc": {},
        "output": output,
    }
    return json.dumps(described)


TTLS = (1, 3, 2_100_000_000, 2_140_000_000)
"""All times are in the first hours of 1970: the short ones are over, the others are not."""


class Histories:
    """Writes to the model and collects the records at the same time."""

    def __init__(self, seed: int, count: int, length: int, ttls: bool = False) -> None:
        self.ttls = ttls
        self.rnd = random.Random(seed)
        self.model = TableModel([(kind, desc) for _, kind, desc in CLUSTERING], COLUMNS)
        self.records: list[tuple[str, bytes]] = []
        for history in range(count):
            for _ in range(self.rnd.randrange(2, length)):
                self._operation(history)

    def _operation(self, history: int) -> None:
        rnd = self.rnd
        key = (history, repr(rnd.choice([0.0, 0.0, -0.0])))
        row = (rnd.choice(POOL["decimal"][:3]), rnd.choice(UUIDS[:3]))
        time = 1_000_000 + rnd.randrange(8)
        roll = rnd.random()
        if roll < 0.1:
            self.model.delete_row(key, row, time)
            self._record("d", time, key, row, {})
        elif roll < 0.15:
            self.model.delete_partition(key, time)
            self._range(time, key, None)
        elif roll < 0.25:
            bounds = self._bounds()
            self.model.delete_range(key, time, *bounds)
            self._range(time, key, bounds)
        else:
            static = roll < 0.4
            cells, shown = self._cells(static)
            insert = not static and roll < 0.6
            ttl = {"ttl": rnd.choice(TTLS)} if self.ttls and rnd.random() < 0.5 else {}
            self.model.write(key, None if static else row, time, insert, cells, **ttl)
            self._record("c" if insert else "u", time, key, None if static else row, shown, **ttl)

    def _bounds(self) -> tuple[tuple[Any, bool], tuple[Any, bool]]:
        rnd = self.rnd
        first, second = rnd.choice(POOL["decimal"][:4]), rnd.choice(UUIDS[:3])
        if rnd.random() < 0.4:
            values = sorted([second, rnd.choice(UUIDS[:3])], key=lambda value: self.model.order((first, value))[1])
            return ((first, values[1]), rnd.random() < 0.5), ((first, values[0]), rnd.random() < 0.5)
        firsts = sorted([first, rnd.choice(POOL["decimal"][:4])])
        start, end = (((value,), rnd.random() < 0.7) for value in firsts)
        return (((), True) if rnd.random() < 0.3 else start), (((), True) if rnd.random() < 0.3 else end)

    def _cells(self, static: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        rnd = self.rnd
        cells: dict[str, Any] = {}
        shown: dict[str, Any] = {}
        for column in COLUMNS:
            if column.static != static or rnd.random() < (0.4 if static else 0.8):
                continue
            if column.name in ("ss", "m", "mf", "l", "st", "u", "su"):
                cells[column.name], shown[column.name] = self._delta(column.type)
            else:
                value = None if rnd.random() < 0.25 else some(rnd, column.type)
                cells[column.name], shown[column.name] = value, {"value": as_json(column.type, value)}
        return cells, shown

    def _delta(self, type_: CqlType) -> tuple[Any, Any]:
        rnd = self.rnd
        overwrite = rnd.random() < 0.4
        if isinstance(type_, UserType):
            fields = {name: kind for name, kind in type_.fields if rnd.random() < 0.5}
            parts = [
                (name, None if rnd.random() < 0.3 and not overwrite else some(rnd, kind))
                for name, kind in fields.items()
            ]
            written = {name: {"value": as_json(fields[name], value)} for name, value in parts}
            elements: Any = {name: written.get(name) for name, _ in type_.fields}
        else:
            kind = TableModel.element_type(type_)
            keys: dict[Any, Any] = {}
            for _ in range(rnd.randrange(3)):
                value = some(rnd, kind)
                keys.setdefault(TableModel([], []).element(type_, value), value)
            parts = [(key, self._content(type_, overwrite)) for key in keys.values()]
            elements = [{"key": as_json(kind, key), "value": self._content_json(type_, item)} for key, item in parts]
        mode = "overwrite" if overwrite else "modify"
        if overwrite and not parts and rnd.random() < 0.5:
            return (True, []), {"value": None}
        return (overwrite, parts), {"value": {"mode": mode, "elements": elements}}

    def _content(self, type_: CqlType, overwrite: bool) -> Any:
        if not overwrite and self.rnd.random() < 0.3:
            return None
        if isinstance(type_, SetType):
            return True
        assert isinstance(type_, MapType | ListType)
        return some(self.rnd, type_.value if isinstance(type_, MapType) else type_.element)

    @staticmethod
    def _content_json(type_: CqlType, content: Any) -> Any:
        if isinstance(type_, SetType) or content is None:
            return content
        assert isinstance(type_, MapType | ListType)
        return as_json(type_.value if isinstance(type_, MapType) else type_.element, content)

    def _record(self, op: str, time: int, key: Any, row: Any, cells: dict[str, Any], **source: Any) -> None:
        image: dict[str, Any] = self._partition(key)
        for (name, kind, _), value in zip(CLUSTERING, row or (None,) * len(CLUSTERING)):
            image[name] = as_json(kind, value)
        for column in COLUMNS:
            image[column.name] = cells.get(column.name)
        value = {
            "source": {"ts_us": time, "ts_ms": time // 1000, "keyspace_name": "ks", "table_name": "t", **source},
            "before": image if op == "d" else None,
            "after": None if op == "d" else image,
            "op": op,
        }
        self.records.append((TOPIC, json.dumps(value).encode()))

    def _range(self, time: int, key: Any, bounds: Any) -> None:
        value: dict[str, Any] = {"source": {"ts_us": time}, "kind": "range" if bounds else "partition"}
        value["partition"] = self._partition(key)
        value["start"] = value["end"] = None
        if bounds:
            for side, (values, inclusive) in zip(("start", "end"), bounds):
                shown = [as_json(kind, item) for (_, kind, _), item in zip(CLUSTERING, values)]
                value[side] = {"values": shown, "inclusive": inclusive}
        self.records.append((RANGES, json.dumps(value).encode()))

    @staticmethod
    def _partition(key: Any) -> dict[str, Any]:
        return {"h": key[0], "p": float(key[1])}
