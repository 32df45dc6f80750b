"""What a compiled modification is, and what all of them use.

In: made by the files for each statement. Out: run by `apply.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute.conditions import CompiledConditions
from embedded.scylla.execute.operations import Current, Elements
from embedded.scylla.execute.run import Run
from embedded.scylla.hooks import Reader
from embedded.scylla.mutation import ClusteringKey, PartitionMutation, Slice
from embedded.scylla.schema import Column, Table

Keys = Callable[[Run], list[bytes]]
Rows = Callable[[Run], list[ClusteringKey]]
Build = Callable[[Run, Reader], list[PartitionMutation]]


@dataclass(frozen=True, slots=True)
class WritePlan:
    """A compiled modification. `rows` gives the addressed rows, `slices` the deleted ranges; both are None when the
    statement is about statics or whole partitions only. `reads`: present lists are looked at."""

    table: Table
    kind: str
    prepare: Callable[[Run, int | None], None]
    build: Build
    keys: Keys
    rows: Rows | None
    slices: Callable[[Run], list[Slice]] | None
    conditions: CompiledConditions | None
    reads: bool
    timestamped: bool


def known_column(table: Table, name: str) -> Column:
    column = table.by_name.get(name)
    if column is None:
        raise InvalidRequest(f"Unknown identifier {name}")
    return column


def no_elements(name: str) -> Elements | None:
    """`Current` for statements that read nothing."""
    return None


def current_elements(reader: Reader, table: Table, key: bytes, row: ClusteringKey | None) -> Current:
    """Reads a multi-cell column of one row (or of the statics), when asked."""

    def current(name: str) -> Elements | None:
        column = table.by_name[name]
        if column.kind == "static":
            value = reader.static(table, key).get(name)
        else:
            live = reader.row(table, key, row or ())
            value = live.cells.get(name) if live is not None else None
        return value if isinstance(value, list) else None

    return current
