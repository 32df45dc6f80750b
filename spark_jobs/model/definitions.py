"""Table definitions as the schemas topic carries them.

In: the JSON value of a schema record. Out: a ``TableDefinition`` with parsed types. Pure: reading the topic is
``schemas``' business, the shape of the landed tables ``layout``'s.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from connector.config import OUTPUT_FORMATS, OutputFormat, of_deltas
from connector.errors import LandingError
from connector.timeuuid import millis_of
from connector.values import CqlType, UserType, parse_type


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the source table; ``kind`` is ``partition_key``, ``clustering``, ``static`` or ``regular``."""

    name: str
    type: CqlType
    kind: str
    position: int = -1
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """How the records of a table are written."""

    format: OutputFormat = "legacy"
    collections: str = "delta"
    range_deletes: str = "topic"
    after: str = "none"
    before: str = "none"
    skipped_operations: tuple[str, ...] = ()
    #: The table's log has no values of what is written, but in images (`'delta': 'keys'`).
    keys_only: bool = False

    @property
    def images(self) -> bool:
        """Whether the records are full row images, so that collections arrive whole."""
        return not of_deltas(self.format)


@dataclass(frozen=True)
class TableDefinition:
    """One version of a source table."""

    keyspace: str
    table: str
    table_id: str | None
    version: str
    columns: tuple[Column, ...]
    dropped: tuple[tuple[str, int], ...] = ()
    output: Output = field(default_factory=Output)
    text: str = ""

    @property
    def name(self) -> str:
        return f"{self.keyspace}.{self.table}"

    @property
    def names(self) -> frozenset[str]:
        return frozenset(column.name for column in self.columns)

    def of_kind(self, kind: str) -> list[Column]:
        """The columns of a kind, in the order of their position, then name."""
        return sorted(
            (column for column in self.columns if column.kind == kind),
            key=lambda column: (column.position, column.name),
        )

    @property
    def lacks_values(self) -> bool:
        """Whether its records say what was written to, and not what: the log had keys only then. Of a table that has
        nothing but a key they lack nothing."""
        others = self.of_kind("static") + self.of_kind("regular")
        return self.output.keys_only and not self.output.images and bool(others)

    @property
    def created_ms(self) -> int | None:
        """When the table was created, by the time in its id; None for ids that hold none."""
        if self.table_id is None:
            return None
        parsed = uuid.UUID(self.table_id)
        return millis_of(parsed.bytes) if parsed.version == 1 else None


def parse_definition(text: str) -> TableDefinition:
    """The definition in a schema record's value; ``LandingError`` names what is wrong with it."""
    try:
        record = json.loads(text)
        types = _user_types(record["keyspace_name"], record.get("types") or {})
        return TableDefinition(
            keyspace=_text(record["keyspace_name"]),
            table=_text(record["table_name"]),
            table_id=_uuid(record.get("table_id")),
            version=str(record.get("version")),
            columns=tuple(_column(entry, types) for entry in record["columns"]),
            dropped=tuple((_text(entry["name"]), int(entry["dropped_us"])) for entry in record.get("dropped") or ()),
            output=_output(record.get("output") or {}, (record.get("cdc") or {}).get("delta") == "keys"),
            text=text,
        )
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        shown = text[:300].encode(errors="backslashreplace").decode()
        raise LandingError(f"a schema record cannot be read: {error!r} in {shown}") from error


def table_named(text: str) -> str | None:
    """The table that a schema record is of, whatever else is wrong with it; None for what is no such record."""
    try:
        record = json.loads(text)
        return f"{_text(record['keyspace_name'])}.{_text(record['table_name'])}"
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    # A lone surrogate can be in JSON, and nowhere else.
    value.encode()
    return value


def _uuid(value: Any) -> str | None:
    return None if value is None else str(uuid.UUID(_text(value)))


def _column(entry: Mapping[str, Any], types: Mapping[str, UserType]) -> Column:
    return Column(
        name=_text(entry["name"]),
        type=parse_type(_text(entry["type"]), types),
        kind=_text(entry["kind"]),
        position=int(entry.get("position", -1)),
        descending=str(entry.get("order", "none")).lower() == "desc",
    )


def _output(entry: Mapping[str, Any], keys_only: bool) -> Output:
    skipped = entry.get("skipped_operations") or ()
    if isinstance(skipped, str):
        skipped = [item.strip() for item in skipped.split(",")]
    form = _text(entry.get("format") or "legacy")
    if form not in OUTPUT_FORMATS:
        raise LandingError(f"records of cdc.output.format={form} cannot be landed; known: {', '.join(OUTPUT_FORMATS)}")
    return Output(
        format=form,
        collections=entry.get("collections") or "skip",
        range_deletes=entry.get("range_deletes") or "skip",
        after=entry.get("after") or "none",
        before=entry.get("before") or "none",
        skipped_operations=tuple(skipped),
        keys_only=keys_only,
    )


def _user_types(keyspace: str, described: Mapping[str, Sequence[Sequence[str]]]) -> dict[str, UserType]:
    """User types may hold each other, in any order: resolve until nothing new can be resolved."""
    known: dict[str, UserType] = {}
    waiting = dict(described)
    while waiting:
        before = len(waiting)
        for name in list(waiting):
            try:
                fields = tuple((_text(part), parse_type(_text(spelled), known)) for part, spelled in waiting[name])
            except ValueError:
                continue
            known[name] = UserType(keyspace, name, fields)
            del waiting[name]
        if len(waiting) == before:
            raise ValueError(f"user types that cannot be resolved: {', '.join(sorted(waiting))}")
    return known
