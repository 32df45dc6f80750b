"""From groups of changes to encoded log rows.

Comes in: a group, the plan of the table, the image states. Goes out: a `LogMutation`: the rows of one
`cdc$time` in one stream, encoded as a `SELECT *` answers them. It is what the engine hands to the log's
store.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from struct import Struct

from connector.timeuuid import time_uuid as _time_uuid
from embedded.scylla.cdc.changes import (
    POST_IMAGE,
    PRE_IMAGE,
    RANGE_END_EXCLUSIVE,
    RANGE_END_INCLUSIVE,
    RANGE_START_EXCLUSIVE,
    RANGE_START_INCLUSIVE,
    Change,
    Group,
)
from embedded.scylla.cdc.images import ImageStates, RowState, image_cell
from embedded.scylla.cdc.plan import TRUE_CELL, ColumnPlan, LogPlan, cell, operation_cell, ttl_cell
from embedded.scylla.mutation import Bound, Cell, Cells, ClusteringKey, PartitionMutation

_pack_cell_int = Struct(">ii").pack
_NUMBERS = [_pack_cell_int(4, number) for number in range(256)]
_OPERATIONS = {code: operation_cell(code) for code in range(-4, 10)}


@dataclass(slots=True)
class LogMutation(PartitionMutation):
    """Rows of one group: `bodies` are encoded, numbered from 0, all written at `timestamp` with one TTL."""

    timestamp: int = 0
    ttl: int = 0
    expiry: int = 0
    bodies: list[bytes] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        return not self.bodies


def time_uuid(micros: int, random_bits: int) -> bytes:
    """A `cdc$time`: exactly this microsecond, the low half random but for the two bits of the variant."""
    return _time_uuid(micros * 10, random_bits & 0x3FFFFFFFFFFFFFFF | 1 << 63)


def number_cell(number: int) -> bytes:
    """A `cdc$batch_seq_no` on the wire."""
    return _NUMBERS[number] if number < 256 else _pack_cell_int(4, number)


class RowEncoder:
    """Makes the rows of one mutation's groups; every row is the list of its cells until the group is
    finished."""

    def __init__(self, plan: LogPlan, mutation: PartitionMutation, operations: dict[int, int]) -> None:
        self._plan = plan
        self._operations = operations
        self._empty = plan.empty_row.copy()
        for place, raw in zip(plan.partition_key_at, mutation.key_values):
            self._empty[place] = cell(raw)

    def rows(self, group: Group, states: ImageStates | None) -> list[list[bytes]]:
        """All rows of a group: pre-images, changes, post-images. The states are brought up to date."""
        plan, options = self._plan, self._plan.options
        rows: list[list[bytes]] = []
        if states is not None and options.preimage != "false":
            rows += self._pre_images(group, states, everything=options.preimage == "full")
        for change in group.changes:
            rows += self._delta(change)
            if states is not None:
                states.apply(change, plan)
        if states is not None and options.postimage:
            rows += self._post_images(group, states)
        return rows

    def _pre_images(self, group: Group, states: ImageStates, *, everything: bool) -> Iterable[list[bytes]]:
        plan = self._plan
        if group.static and states.static:
            columns = [each for each in plan.static if everything or each.name in group.static]
            yield self._image(PRE_IMAGE, None, columns, states.static)
        for key, touched in group.rows.items():
            state = states.rows.get(key)
            if state is not None:
                full = everything or touched is None
                columns = [each for each in plan.regular if full or each.name in (touched or ())]
                yield self._image(PRE_IMAGE, key, columns, state)

    def _post_images(self, group: Group, states: ImageStates) -> Iterable[list[bytes]]:
        plan = self._plan
        if group.static and states.static:
            yield self._image(POST_IMAGE, None, plan.static, states.static)
        for key in group.rows:
            state = states.rows.get(key)
            if state is not None:
                yield self._image(POST_IMAGE, key, plan.regular, state)

    def _row(self, operation: int, clustering: ClusteringKey | None) -> list[bytes]:
        row = self._empty.copy()
        row[self._plan.operation_at] = _OPERATIONS[self._operations.get(operation, operation)]
        if clustering is not None:
            for place, raw in zip(self._plan.clustering_at, clustering):
                row[place] = cell(raw)
        return row

    def _image(
        self, operation: int, key: ClusteringKey | None, columns: Iterable[ColumnPlan], state: RowState
    ) -> list[bytes]:
        row = self._row(operation, key)
        for column in columns:
            value = image_cell(column, state)
            if value is not None:
                row[column.value_at] = value
            elif operation == PRE_IMAGE:
                row[column.deleted_at] = TRUE_CELL
        return row

    def _delta(self, change: Change) -> Iterable[list[bytes]]:
        if change.bounds is not None:
            start, end = change.bounds.start, change.bounds.end
            yield self._bound(start, RANGE_START_INCLUSIVE, RANGE_START_EXCLUSIVE)
            yield self._bound(end, RANGE_END_INCLUSIVE, RANGE_END_EXCLUSIVE)
            return
        row = self._row(change.operation, change.clustering)
        if change.cells is not None:
            row[self._plan.ttl_at] = ttl_cell(change.ttl)
            if self._plan.full_delta:
                self._fill(row, change.cells)
        yield row

    def _bound(self, bound: Bound, inclusive: int, exclusive: int) -> list[bytes]:
        return self._row(inclusive if bound.inclusive else exclusive, bound.prefix)

    def _fill(self, row: list[bytes], cells: Cells) -> None:
        for name, written in cells.items():
            column = self._plan.by_name[name]
            if isinstance(written, Cell):
                if written.value is None:
                    row[column.deleted_at] = TRUE_CELL
                else:
                    row[column.value_at] = cell(written.value)
                continue
            live = {key: each.value for key, each in written.cells.items() if each.value is not None}
            dead = [key for key, each in written.cells.items() if each.value is None]
            if written.tombstone is not None:
                row[column.deleted_at] = TRUE_CELL
            if dead:
                row[column.elements_at] = column.key_set(dead)
            # A user type that is touched at all is never null in the log: its unassigned fields are.
            if live or column.kind == "user":
                row[column.value_at] = column.collection(live)


def finish_group(
    plan: LogPlan, rows: list[list[bytes]], stream: bytes, timestamp: int, expiry: int, random_bits: int
) -> LogMutation:
    """Number the rows, mark the last one, and give them their stream and time."""
    stream_cell, time_cell = cell(stream), cell(time_uuid(timestamp, random_bits))
    rows[-1][plan.end_at] = TRUE_CELL
    for number, row in enumerate(rows):
        row[plan.stream_at], row[plan.time_at], row[plan.number_at] = stream_cell, time_cell, number_cell(number)
    bodies = [b"".join(row) for row in rows]
    return LogMutation(plan.log, stream, timestamp=timestamp, ttl=plan.options.ttl, expiry=expiry, bodies=bodies)


def insert_row(
    plan: LogPlan, mutation: PartitionMutation, clustering: ClusteringKey, cells: Cells, ttl: int, operation: int
) -> list[bytes]:
    """The only row of the commonest write: single cells of one clustering row, no images."""
    row = plan.empty_row.copy()
    for place, raw in zip(plan.partition_key_at, mutation.key_values):
        row[place] = cell(raw)
    for place, raw in zip(plan.clustering_at, clustering):
        row[place] = cell(raw)
    row[plan.operation_at] = _OPERATIONS[operation]
    row[plan.ttl_at] = ttl_cell(ttl)
    if plan.full_delta:
        simple = plan.simple
        for name, written in cells.items():
            value_at, deleted_at = simple[name]
            value = written.value  # type: ignore[union-attr]
            if value is None:
                row[deleted_at] = TRUE_CELL
            else:
                row[value_at] = cell(value)
    return row
