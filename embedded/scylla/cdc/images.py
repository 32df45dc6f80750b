"""Pre- and post-images: what a row held before the write, and what it holds after each change.

Comes in: a mutation and a reader of the base table; then the changes, one by one. Goes out: the states that
image rows are made from. The reading has ScyllaDB's own limits: without full images only the columns that the
*first* clustering row touches are read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from embedded.scylla.cdc.changes import PARTITION_DELETE, ROW_DELETE, Change, ordered_rows
from embedded.scylla.cdc.plan import ColumnPlan, LogPlan, cell
from embedded.scylla.hooks import Reader
from embedded.scylla.mutation import (
    Cell,
    Cells,
    ClusteringKey,
    PartitionMutation,
    RangeTombstone,
    end_position,
    start_position,
)
from embedded.scylla.store import LiveCells

#: A column's bytes, the elements of a multi-cell column, or None once a change has made it null.
ColumnState = bytes | dict[bytes, bytes] | None
RowState = dict[str, ColumnState]


class ImageStates:
    """Static row and clustering rows, as far as they were read or changed. A row that is not there has no
    image."""

    def __init__(self) -> None:
        self.static: RowState = {}
        self.rows: dict[ClusteringKey, RowState] = {}

    @staticmethod
    def read(mutation: PartitionMutation, plan: LogPlan, reader: Reader) -> ImageStates:
        """The states before the mutation."""
        states = ImageStates()
        table = mutation.table
        rows = ordered_rows(mutation)
        # A partition delete shows what it deletes only if the partition is a single row.
        whole_row = mutation.deletion is not None and not table.clustering
        full = plan.options.postimage or plan.options.preimage == "full"
        if mutation.static:
            names = [column.name for column in plan.static if full or column.name in mutation.static]
            states.static = _state(reader.static(table, mutation.key), names)
        if not rows and not whole_row:
            return states
        if full or whole_row or any(row.deletion is not None for _, row in rows):
            names = [column.name for column in plan.regular]
        else:
            names = [column.name for column in plan.regular if column.name in rows[0][1].cells]
        for key in [()] if whole_row else [key for key, _ in rows]:
            live = reader.row(table, mutation.key, key)
            if live is not None:
                states.rows[key] = _state(live.cells, names)
        return states

    def apply(self, change: Change, plan: LogPlan) -> None:
        """Make the states those after the change."""
        if change.bounds is not None:
            self._delete_range(change.bounds, plan)
        elif change.operation == PARTITION_DELETE:
            self.rows.clear()
        elif change.operation == ROW_DELETE:
            assert change.clustering is not None
            self.rows.pop(change.clustering, None)
        elif change.clustering is None:
            _update(self.static, change.cells or {}, plan)
        else:
            _update(self.rows.setdefault(change.clustering, {}), change.cells or {}, plan)

    def _delete_range(self, bounds: RangeTombstone, plan: LogPlan) -> None:
        sort_key = plan.base.sort_key
        start, end = start_position(bounds.start, sort_key), end_position(bounds.end, sort_key)
        for key in list(self.rows):
            position = sort_key(key)
            if not position < start and position < end:
                del self.rows[key]


def _state(cells: LiveCells, names: Collection[str]) -> RowState:
    state: RowState = {}
    for name in names:
        live = cells.get(name)
        if live is None:
            continue
        if isinstance(live, Cell):
            state[name] = live.value
        else:
            state[name] = {key: cell.value for key, cell in live if cell.value is not None}
    return state


def _update(state: RowState, cells: Cells, plan: LogPlan) -> None:
    for name, written in cells.items():
        if isinstance(written, Cell):
            state[name] = written.value
            continue
        before = state.get(name) if written.tombstone is None else None
        live = {key: cell.value for key, cell in written.cells.items() if cell.value is not None}
        dead = len(live) < len(written.cells)
        # A collection emptied by removals stays an empty collection here, and a user type stays one without
        # fields, although both then read as null.
        if live or plan.by_name[name].kind == "user" or (dead and before is not None):
            kept = before.items() if isinstance(before, dict) else ()
            # Where equal keys differ in their bytes, the change's are shown.
            state[name] = {**{key: raw for key, raw in kept if key not in written.cells}, **live}
        else:
            state[name] = None


def image_cell(column: ColumnPlan, state: Mapping[str, ColumnState]) -> bytes | None:
    """A column's value in a state, as the value column of the log shows it; None if there is none."""
    value = state.get(column.name)
    if value is None:
        return None
    return column.collection(value) if isinstance(value, dict) else cell(value)
