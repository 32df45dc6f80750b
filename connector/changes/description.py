"""What a table is, at one moment: its columns, its CDC options, its user types.

In: what the source read from ``system_schema``. Out: frozen values; ``content`` is their plain JSON form,
``fingerprint`` a hash of it that changes exactly when the description does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, assert_never

from connector.values import CqlType, ListType, MapType, NativeType, SetType, TupleType, UserType, VectorType

ColumnKind = Literal["partition_key", "clustering", "static", "regular"]
ColumnOrder = Literal["asc", "desc", "none"]
KEY_KINDS = ("partition_key", "clustering")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the base table; ``position`` counts within the partition key or the clustering key, else −1."""

    name: str
    type: CqlType
    kind: ColumnKind = "regular"
    position: int = -1
    order: ColumnOrder = "none"

    @property
    def is_key(self) -> bool:
        return self.kind in KEY_KINDS


@dataclass(frozen=True, slots=True)
class DroppedColumn:
    """A column that was dropped, and when, in microseconds: older cells of a column of that name do not exist."""

    name: str
    type: CqlType
    dropped_us: int


@dataclass(frozen=True, slots=True)
class CdcOptions:
    """The table's ``cdc`` option map. ``preimage`` is ``"false"``, ``"true"`` or ``"full"``; ``ttl`` is in seconds."""

    enabled: bool = True
    preimage: Literal["false", "true", "full"] = "false"
    postimage: bool = False
    delta: Literal["full", "keys"] = "full"
    ttl: int = 86400

    @property
    def cql(self) -> str:
        """As `ALTER TABLE … WITH cdc =` takes them, which sets what is not named back to its default."""
        texts = {"enabled": str(self.enabled).lower()}
        texts |= {} if self.preimage == "false" else {"preimage": "true" if self.preimage == "true" else "'full'"}
        texts |= {"postimage": "true"} if self.postimage else {}
        texts |= {} if self.delta == "full" else {"delta": f"'{self.delta}'"}
        texts |= {} if self.ttl == CdcOptions().ttl else {"ttl": str(self.ttl)}
        return "{" + ", ".join(f"'{name}': {text}" for name, text in texts.items()) + "}"


@dataclass(frozen=True)
class TableDescription:
    """A table. ``columns`` may come in any order; ``user_types`` are the types its columns use, directly or nested."""

    keyspace: str
    name: str
    table_id: str
    columns: tuple[Column, ...]
    cdc: CdcOptions = CdcOptions()
    user_types: tuple[UserType, ...] = ()
    dropped: tuple[DroppedColumn, ...] = ()
    #: Rows of the log from before this time, in microseconds, may have lost a part of their keys: it was renamed.
    keys_lost_us: int = 0
    #: Of COMPACT STORAGE whose rows may be without the last columns of the clustering key.
    dense: bool = False

    @property
    def full_name(self) -> str:
        return f"{self.keyspace}.{self.name}"

    @cached_property
    def by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    @cached_property
    def partition_key(self) -> tuple[Column, ...]:
        return self._of_kind("partition_key")

    @cached_property
    def clustering_key(self) -> tuple[Column, ...]:
        return self._of_kind("clustering")

    def _of_kind(self, kind: ColumnKind) -> tuple[Column, ...]:
        return tuple(sorted((c for c in self.columns if c.kind == kind), key=lambda column: column.position))

    @cached_property
    def content(self) -> dict[str, Any]:
        """The description as plain JSON, in a canonical order."""
        rank = {"partition_key": 0, "clustering": 1, "static": 2, "regular": 3}
        ordered = sorted(self.columns, key=lambda c: (rank[c.kind], c.position, c.name.encode()))
        return {
            "keyspace_name": self.keyspace,
            "table_name": self.name,
            "table_id": self.table_id,
            "columns": [
                {"name": c.name, "type": c.type.cql(), "kind": c.kind, "position": c.position, "order": c.order}
                for c in ordered
            ],
            "types": {
                used.name: [[name, field.cql()] for name, field in used.fields]
                for used in sorted(self._used_types(), key=lambda used: used.name)
            },
            "dropped": [
                {"name": d.name, "type": d.type.cql(), "dropped_us": d.dropped_us}
                for d in sorted(self.dropped, key=lambda d: (d.name, d.dropped_us))
            ],
            "cdc": {
                "enabled": self.cdc.enabled,
                "preimage": self.cdc.preimage,
                "postimage": self.cdc.postimage,
                "delta": self.cdc.delta,
                "ttl": self.cdc.ttl,
            },
        }

    def _used_types(self) -> list[UserType]:
        found = {used.name: used for used in self.user_types}
        for type_ in [column.type for column in self.columns] + [column.type for column in self.dropped]:
            for used in user_types_in(type_):
                found.setdefault(used.name, used)
        return list(found.values())

    @cached_property
    def fingerprint(self) -> str:
        return content_hash(self.content)


def content_hash(content: dict[str, Any]) -> str:
    """A hash of plain JSON, the same in every process."""
    text = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def user_types_in(type_: CqlType) -> Iterator[UserType]:
    """The user types that a type is or holds, outer ones first."""
    if isinstance(type_, UserType):
        yield type_
        for _, field in type_.fields:
            yield from user_types_in(field)
    elif isinstance(type_, ListType | SetType | VectorType):
        yield from user_types_in(type_.element)
    elif isinstance(type_, MapType):
        yield from user_types_in(type_.key)
        yield from user_types_in(type_.value)
    elif isinstance(type_, TupleType):
        for element in type_.elements:
            yield from user_types_in(element)
    elif not isinstance(type_, NativeType):
        assert_never(type_)
