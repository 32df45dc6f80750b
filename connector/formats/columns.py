"""What makes the fields of many rows at once: ``json_columns`` and ``avro_columns`` have a ``Columns`` each.

In: rows, a column at a time. Out: the bytes of a field in each row, joined to structs and values; ``columnwise`` makes
records of them. All raise at a cell that is not as cells usually are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, Protocol

from connector.changes import TRUE, Change, ColumnPlace, LogLayout, Row
from connector.config import OutputConfig
from connector.formats.record import Schema
from connector.values import Render

#: From rows to the bytes of one field in each.
Column = Callable[[Sequence[Row]], list[bytes]]
#: From values to the bytes of each.
Written = Callable[[Sequence[Any]], list[bytes]]
#: From the fields of a struct, each a list with the bytes of all rows, and the number of rows to the struct of each.
#: The number counts where a struct has no fields: the images of a table of key columns only, without its key.
Join = Callable[[Sequence[list[bytes]], int], list[bytes]]
#: From a change, the times of its source, before, after (with the key in the payload behind it) to the record's value.
Envelope = Callable[[Change, tuple[int, int, int], bytes, bytes], bytes]

#: What the envelopes of records differ in: the operation, and what `source.snapshot` says.
OPERATIONS = "cudr"
SNAPSHOT_TEXTS = ("false", "true", "incremental")

#: Integers by the way they stand in a cell.
INTEGERS = {"tinyint": ">b", "smallint": ">h", "int": ">i", "bigint": ">q", "timestamp": ">q"}


class Columns(Protocol):
    """One side (keys or values) of the records of a topic, in the language of its converter."""

    @property
    def null(self) -> bytes:
        """A struct that is null."""
        ...

    def column(self, place: ColumnPlace, in_cell: bool) -> Column:
        """A column; ``in_cell`` as the legacy format has it, where a null that was written is not an untouched one."""
        ...

    def written(self, schema: Schema) -> Written:
        """What writes values of a schema that are made one by one."""
        ...

    def join(self, names: Sequence[str], optional: bool) -> Join: ...

    def framed(self, structs: Sequence[bytes]) -> list[bytes]:
        """Structs as whole keys."""
        ...

    def payload_key(self, name: str) -> bytes:
        """What stands between ``after`` and a key in the payload."""
        ...

    def envelope(self, layout: LogLayout, options: OutputConfig, now: int, clock: bool) -> Envelope:
        """For records that are made at a time, in nanoseconds; ``clock``: with that time in ``ts_us`` and ``ts_ns``."""
        ...


def by_row(fields: Sequence[list[bytes]], rows: int) -> Iterable[tuple[bytes, ...]]:
    """The fields of each row; of a struct without fields, none for each."""
    return zip(*fields, strict=True) if fields else repeat((), rows)


def names_of(places: Sequence[ColumnPlace]) -> list[str]:
    return [place.name for place in places]


def absent(row: Row, deleted_at: int | None, null_cell: bytes, null: bytes) -> bytes:
    """The field of a cell that is null: written so, or untouched."""
    return null_cell if deleted_at is not None and row[deleted_at] == TRUE else null


def usual(render: Render, in_cell: bool) -> Render:
    """In cells a value of no bytes, which renders to None, is none that cells usually have."""
    if not in_cell:
        return render

    def rendered(raw: bytes) -> Any:
        value = render(raw)
        if value is None:
            raise ValueError("a value of no bytes")
        return value

    return rendered
