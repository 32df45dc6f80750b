"""The encoded log store against the ordinary row store: after any history both must answer the same."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from embedded.scylla.cdc.log_rows import LogMutation, finish_group, time_uuid
from embedded.scylla.cdc.log_schema import new_log
from embedded.scylla.cdc.options import CdcOptions
from embedded.scylla.cdc.plan import LogPlan, cell
from embedded.scylla.logrow import split_row
from embedded.scylla.logstore import LogStore
from embedded.scylla.mutation import (
    FULL_SLICE,
    Bound,
    Cell,
    PartitionMutation,
    RangeTombstone,
    RowMutation,
    Slice,
)
from embedded.scylla.rowstore import RowStore
from embedded.scylla.store import LiveRow, PageRequest, TableStore
from embedded.scylla.tokens import MIN_TOKEN
from tests.embedded.scylla.test_scylla_cdc_store import BASE, whole

OPTIONS = CdcOptions(True, ttl=20)
LOG = new_log(BASE, OPTIONS, uuid.UUID(int=2))
PLAN = LogPlan(BASE, LOG, OPTIONS)
NAMES = tuple(column.name for column in LOG.ordered_columns)
STREAMS = [bytes([first, *[0] * 14, 1]) for first in (0x10, 0x90, 0xFF)] + [b"odd"]
_stream, _micros, _low = st.sampled_from(STREAMS), st.integers(0, 6), st.sampled_from([0, 1, 0x3F << 56, 0x80])


@dataclass(frozen=True)
class Group:
    """Rows that CDC writes."""

    stream: bytes
    micros: int
    low: int
    count: int
    lives: int


@dataclass(frozen=True)
class ByHand:
    """A cell, a row deletion, a range deletion or a partition deletion that a user writes."""

    kind: str
    stream: bytes
    micros: int
    number: int
    at: int


@dataclass(frozen=True)
class Ask:
    """Read some streams between two times, page by page, some seconds later."""

    streams: tuple[bytes, ...]
    lower: int | None
    upper: int | None
    inclusive: bool
    size: int
    later: int
    columns: tuple[str, ...]


GROUPS = st.builds(Group, st.sampled_from(STREAMS[:3]), _micros, _low, st.integers(1, 3), st.sampled_from([0, 3, 9]))
HANDS = st.builds(
    ByHand, st.sampled_from(["cell", "row", "range", "partition"]), _stream, _micros, st.integers(0, 2), _micros
)
ASKS = st.builds(
    Ask,
    st.lists(_stream, unique=True, min_size=1).map(tuple),
    st.none() | _micros,
    st.none() | _micros,
    st.booleans(),
    st.integers(1, 5),
    st.integers(0, 3),
    st.sampled_from([NAMES, ("v", "cdc$time"), tuple(reversed(NAMES))]),
)


def group_mutation(group: Group, now: int) -> LogMutation:
    rows = []
    for number in range(group.count):
        row = PLAN.empty_row.copy()
        row[NAMES.index("v")] = cell(whole(number))
        rows.append(row)
    return finish_group(PLAN, rows, group.stream, group.micros, now + group.lives if group.lives else 0, group.low)


def cell_by_cell(mutation: LogMutation) -> PartitionMutation:
    """What the group writes, as any other mutation."""
    plain = PartitionMutation(LOG, mutation.key)
    for body in mutation.bodies:
        raw = split_row(body)
        cells: dict[str, Any] = {
            name: Cell(mutation.timestamp, value, mutation.expiry and 1, mutation.expiry)
            for name, value in zip(NAMES[3:], raw[3:])
            if value is not None
        }
        plain.rows[raw[1] or b"", raw[2] or b""] = RowMutation(cells=cells)
    return plain


def hand_mutation(written: ByHand) -> PartitionMutation:
    mutation = PartitionMutation(LOG, written.stream)
    key = time_uuid(written.micros, 0), whole(written.number)
    if written.kind == "cell":
        mutation.row(key).cells["v"] = Cell(written.at, whole(77))
    elif written.kind == "row":
        mutation.row(key).deletion = written.at
    elif written.kind == "range":
        mutation.ranges.append(RangeTombstone(Bound((key[0],), True), Bound((), True), written.at))
    else:
        mutation.deletion = written.at
    return mutation


def rows_of(store: TableStore, key: bytes, slices: list[Slice], now: int) -> list[LiveRow]:
    view = store.partition(key, now)
    return [] if view is None else list(view.rows(slices))


def shown(row: LiveRow, key: bytes, columns: tuple[str, ...]) -> tuple[bytes | None, ...]:
    values: dict[str, bytes | None] = dict(zip(NAMES[:3], (key, *row.key)))
    values.update({name: live.value for name, live in row.cells.items()})  # type: ignore[union-attr]
    return tuple(values.get(name) for name in columns)


def check(log: LogStore, plain: RowStore, ask: Ask, now: int) -> None:
    lower = None if ask.lower is None else time_uuid(ask.lower, 1)
    upper = None if ask.upper is None else time_uuid(ask.upper, 1)
    start = Bound((), True) if lower is None else Bound((lower,), ask.inclusive)
    end = Bound((), True) if upper is None else Bound((upper,), ask.inclusive)
    wanted = []
    if ask.lower is None or ask.upper is None or ask.lower < ask.upper or (ask.lower == ask.upper and ask.inclusive):
        for key in ask.streams:
            rows = rows_of(plain, key, [Slice(start, end)], now)
            wanted += [shown(row, key, ask.columns) for row in rows]
            assert [row.key for row in rows_of(log, key, [Slice(start, end)], now)] == [row.key for row in rows]
    got: list[tuple[bytes | None, ...]] = []
    position: bytes | None = None
    while True:
        request = PageRequest(
            ask.streams, ask.columns, lower, ask.inclusive, upper, ask.inclusive, ask.size, position, now
        )
        page = log.fast_page(request)
        assert page is not None and page.row_count <= ask.size
        cells, width = split_row(page.body), len(ask.columns)
        got += [tuple(cells[at : at + width]) for at in range(0, len(cells), width)]
        position = page.position
        if position is None:
            break
    assert got == wanted
    views = [(view.key, view.token) for view in log.partitions((MIN_TOKEN, b""), now)]
    assert views == sorted(views, key=lambda view: (view[1], view[0]))


@settings(max_examples=100, deadline=None)
@given(st.lists(GROUPS | GROUPS | HANDS | ASKS, min_size=1, max_size=14), ASKS)
def test_both_stores_answer_the_same(history: list[Group | ByHand | Ask], last: Ask) -> None:
    log, plain = LogStore(LOG, RowStore), RowStore(LOG)
    now = 1000
    seen: set[tuple[bytes, int, int]] = set()
    for step in [*history, last]:
        if isinstance(step, Ask):
            now += step.later
            check(log, plain, step, now)
        elif isinstance(step, ByHand):
            for store in (log, plain):
                store.apply(hand_mutation(step))
        elif (step.stream, step.micros, step.low) not in seen:
            # No two groups have the same time, thanks to its random half.
            seen.add((step.stream, step.micros, step.low))
            mutation = group_mutation(step, now)
            plain.apply(cell_by_cell(mutation))
            log.apply(mutation)
    everything = {view.key: list(view.rows([FULL_SLICE])) for view in plain.partitions((MIN_TOKEN, b""), now)}
    for key, rows in everything.items():
        answered = rows_of(log, key, [FULL_SLICE], now)
        assert [shown(row, key, NAMES) for row in answered] == [shown(row, key, NAMES) for row in rows]
