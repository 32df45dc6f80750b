"""What a record format is: the two ways, one row at a time and one column at a time, that make its records.

In: ``LogLayout``s and options. Out: a format's plan, and its shortcut past the plan. `legacy` and `advanced` define one
each; `output_formats` says which of them a configuration means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from connector.changes import Change, LogLayout, Row
from connector.config import OutputConfig
from connector.formats.columns import Column, Columns, Join
from connector.formats.plan import RecordPlan

#: From changes and the time now in nanoseconds to key and value of each.
Columnwise = Callable[[Sequence[Change], int], list[tuple[bytes, bytes]]]
#: From rows, some of which are None, to the struct of each.
Structs = Callable[[Sequence[Row | None]], list[bytes]]


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """``plan`` is the reference; ``columnwise`` gives the same bytes, with the columns of keys and values given."""

    plan: Callable[[LogLayout, OutputConfig], RecordPlan]
    columnwise: Callable[[LogLayout, OutputConfig, Columns, Columns], Columnwise]


def structs_of(columns: Sequence[Column], join: Join, null: bytes) -> Structs:
    """The structs of rows, with null where there is no row."""

    def structs(rows: Sequence[Row | None]) -> list[bytes]:
        present = [row for row in rows if row is not None]
        if not present:
            return [null] * len(rows)
        made = iter(join([column(present) for column in columns], len(present)))
        return [null if row is None else next(made) for row in rows]

    return structs
