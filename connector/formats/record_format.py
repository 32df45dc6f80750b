"""What a record format is: the two ways, one row at a time and one column at a time, that make its records.

In: ``LogLayout``s and options. Out: a format's plan, and its shortcut past the plan. `legacy` and `advanced` define one
each; `output_formats` says which of them a configuration means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from connector.changes import Change, ColumnPlace, LogLayout, Row
from connector.config import OutputConfig
from connector.formats.columns import Column, Columns, Join
from connector.formats.plan import RecordPlan, RowOf

#: From changes and the time now in nanoseconds to key and value of each.
Columnwise = Callable[[Sequence[Change], int], list[tuple[bytes, bytes]]]
#: The columns that a transform takes out of their cells.
Bare = frozenset[str]
#: From rows, some of which are None, to the struct of each.
Structs = Callable[[Sequence[Row | None]], list[bytes]]


@dataclass(frozen=True, slots=True)
class RowsAfter:
    """What ``after`` shows of changes that are no deletes: rows or None, their columns; and so much of ``before``."""

    row: RowOf
    places: Sequence[ColumnPlace]
    columns: Sequence[Column]
    key_places: Sequence[ColumnPlace]
    before: RowOf
    before_columns: Sequence[Column]


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """``plan`` is the reference; ``columnwise`` gives the same bytes, with the columns of keys and values given.

    ``rows`` are for transforms that leave nothing else of an envelope.
    """

    plan: Callable[[LogLayout, OutputConfig], RecordPlan]
    columnwise: Callable[[LogLayout, OutputConfig, Columns, Columns, Bare], Columnwise]
    rows: Callable[[LogLayout, OutputConfig, Columns, Bare], RowsAfter]


def structs_of(columns: Sequence[Column], join: Join, null: bytes) -> Structs:
    """The structs of rows, with null where there is no row."""

    def structs(rows: Sequence[Row | None]) -> list[bytes]:
        present = [row for row in rows if row is not None]
        if not present:
            return [null] * len(rows)
        made = iter(join([column(present) for column in columns], len(present)))
        return [null if row is None else next(made) for row in rows]

    return structs
