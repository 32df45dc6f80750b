"""``Change``: what one operation did to a row, in Python values.

In: a change as the log's rows tell it. Out: a frozen value that prints in one line, compares and pickles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from connector import changes

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Operation(StrEnum):
    """What happened. Deletes of a range or of a whole partition are one change, whatever they hit."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    DELETE_RANGE = "delete_range"
    DELETE_PARTITION = "delete_partition"


_OPERATIONS = {
    "c": Operation.INSERT,
    "u": Operation.UPDATE,
    "d": Operation.DELETE,
    "range": Operation.DELETE_RANGE,
    "partition": Operation.DELETE_PARTITION,
}


@dataclass(frozen=True, slots=True)
class Bound:
    """An end of a range delete: the leading clustering columns that it fixes. Without any, the range is open there."""

    values: tuple[Any, ...]
    inclusive: bool


@dataclass(frozen=True, slots=True)
class Change:
    """One operation on one row, or one delete of several.

    ``key``: the primary key in its order; clustering columns are None where the change is about static columns.
    ``values``: the columns that the operation wrote, null ones included; a collection that is stored element by element
    has a ``CollectionDelta``. A column that is not there was not touched.
    ``before`` and ``after``: the row as the log's images tell it, None where the table logs none.
    ``start`` and ``end``: of a range delete.
    """

    table: str
    operation: Operation
    key: Mapping[str, Any]
    values: Mapping[str, Any]
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    timestamp_us: int
    ttl: int | None
    stream: str
    number: int | None
    start: Bound | None = None
    end: Bound | None = None

    @property
    def time(self) -> datetime:
        """When the write happened, by its own timestamp."""
        return _EPOCH + timedelta(microseconds=self.timestamp_us)


def change_of(found: changes.Change) -> Change:
    """The public form of a change; ``CdcError`` (``PoisonRow``) if its bytes cannot be read."""
    several = found.kind in ("range", "partition")
    key = found.key
    return Change(
        table=found.table.full_name,
        operation=_OPERATIONS[found.kind],
        key={column.name: key[column.name] for column in found.table.partition_key} if several else key,
        values={} if several else _written(found),
        before=found.before_values,
        after=found.after_values,
        timestamp_us=found.timestamp_us,
        ttl=found.ttl,
        stream=found.stream_id.hex(),
        number=found.batch_seq_no,
        start=_bound(found, found.row) if found.end is not None else None,
        end=_bound(found, found.end) if found.end is not None else None,
    )


def _written(found: changes.Change) -> dict[str, Any]:
    return {name: value for name, value in found.columns.items() if value is not changes.UNTOUCHED}


def _bound(found: changes.Change, row: changes.Row) -> Bound:
    values, inclusive = found.bound(row)
    return Bound(tuple(values), inclusive)
