"""Batches: complete at the mark, at a later time, at the window's end; never before."""

from __future__ import annotations

import random
import uuid
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connector.changes import BatchAssembler, DroppedColumn, Row, layout_of
from connector.errors import PoisonRow
from connector.values import native
from tests.formats.rows import Log, log_columns, table

DESCRIPTION = table({"pk": "int", "ck": "int", "v": "text"}, clustering=("ck",))
LOG = Log(DESCRIPTION)


def time_of(number: int) -> uuid.UUID:
    return uuid.UUID(fields=(number, 0x11F0, 0x1000, 0x80, 0, 1))


def stream_of(number: int) -> bytes:
    return number.to_bytes(16, "big")


def test_the_mark_completes_a_batch() -> None:
    assembler = BatchAssembler()
    first, last = LOG.row(2, 0, pk=1, ck=1), LOG.row(2, 1, last=True, pk=1, ck=2)
    assert assembler.feed(LOG.layout, [first]) == []
    (batch,) = assembler.feed(LOG.layout, [last])
    assert batch.rows == [first, last]
    assert assembler.finish() == []


def test_a_later_time_completes_a_batch_without_the_mark() -> None:
    assembler = BatchAssembler()
    rows = [
        LOG.row(2, 0, time=time_of(1), pk=1),
        LOG.row(2, 1, time=time_of(1), pk=1),
        LOG.row(2, time=time_of(2), pk=1),
    ]
    (batch,) = assembler.feed(LOG.layout, rows)
    assert batch.rows == rows[:2]
    assert [left.rows for left in assembler.finish()] == [rows[2:]]


def test_rows_come_in_order_of_their_numbers() -> None:
    rows = [LOG.row(2, number, pk=1, ck=number) for number in (2, 0, 300, 1)]
    assembler = BatchAssembler()
    assembler.feed(LOG.layout, rows)
    (batch,) = assembler.finish()
    assert batch.rows == [rows[1], rows[3], rows[0], rows[2]]


def test_a_page_of_a_changed_table_continues_a_batch() -> None:
    newer = Log(table({"pk": "int", "ck": "int", "v": "text", "a": "int"}, clustering=("ck",)))
    assembler = BatchAssembler()
    assembler.feed(LOG.layout, [LOG.row(2, 0, pk=1, ck=1, v="x")])
    (batch,) = assembler.feed(newer.layout, [newer.row(2, 1, last=True, pk=1, ck=2, a=5)])
    assert batch.layout is newer.layout
    assert batch.rows == [newer.row(2, 0, pk=1, ck=1, v="x"), newer.row(2, 1, last=True, pk=1, ck=2, a=5)]


@pytest.mark.parametrize("type_", ["int", "text", "list<text>"])
def test_a_batch_that_goes_on_with_a_column_that_was_dropped_and_added_again_has_nothing_of_the_former_one(
    type_: str,
) -> None:
    former = Log(table({"pk": "int", "ck": "int", "v": "text", "w": "list<text>"}, clustering=("ck",)))
    again = table({"pk": "int", "ck": "int", "v": "text", "w": type_}, clustering=("ck",))
    newer = Log(replace(again, dropped=(DroppedColumn("w", native("text"), 1),)))
    assembler = BatchAssembler()
    old = former.row(2, 0, deleted=("w",), removed={"w": [time_of(1)]}, pk=1, ck=1, v="x", w=[(time_of(2), "old")])
    assembler.feed(former.layout, [old])
    (batch,) = assembler.feed(newer.layout, [newer.row(2, 1, last=True, pk=1, ck=2)])
    assert batch.rows[0] == newer.row(2, 0, pk=1, ck=1, v="x")


def test_servers_without_the_mark() -> None:
    columns = tuple(column for column in log_columns(DESCRIPTION) if column[0] != "cdc$end_of_batch")
    layout = layout_of(DESCRIPTION, columns)
    positions = [LOG.layout.columns.index(name) for name, _ in columns]
    rows = [
        tuple(row[at] for at in positions)
        for row in (LOG.row(2, 0, time=time_of(1), pk=1), LOG.row(2, 1, time=time_of(1), pk=1))
    ]
    assembler = BatchAssembler()
    assert assembler.feed(layout, rows) == []
    assert [batch.rows for batch in assembler.finish()] == [rows]


@pytest.mark.parametrize("column", ["cdc$stream_id", "cdc$time"])
def test_a_row_without_stream_or_time_is_poison(column: str) -> None:
    with pytest.raises(PoisonRow, match=r"ks\.t has no stream or no time"):
        BatchAssembler().feed(LOG.layout, [LOG.row(2, raw={column: None}, pk=1)])


@settings(max_examples=120, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(1, 4), min_size=1, max_size=4)), max_size=4),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_batches_are_whole_however_streams_interleave(
    streams: list[tuple[int, list[int]]], marked: bool, seed: int
) -> None:
    """Sizes of successive batches per stream; rows interleaved at random, cut into pages at random."""
    randomness = random.Random(seed)
    waiting: dict[bytes, list[Row]] = {}
    expected: dict[bytes, list[list[Row]]] = {}
    for stream_number, sizes in streams:
        stream = stream_of(stream_number)
        for size in sizes:
            time = time_of(len(expected.setdefault(stream, [])) + 1)
            rows = [LOG.row(2, at, marked and at == size - 1, time, stream, pk=1, ck=at) for at in range(size)]
            expected[stream].append(rows)
            waiting.setdefault(stream, []).extend(rows)
    rows = []
    while waiting:
        stream = randomness.choice(sorted(waiting))
        rows.append(waiting[stream].pop(0))
        if not waiting[stream]:
            del waiting[stream]
    assembler, found, fed = BatchAssembler(), [], 0
    while rows:
        size = randomness.randint(1, 5)
        found += assembler.feed(LOG.layout, rows[:size])
        fed += len(rows[:size])
        rows = rows[size:]
        largest = max((len(batch) for batches in expected.values() for batch in batches), default=0)
        held_back = fed - sum(len(batch.rows) for batch in found)
        assert held_back <= largest * len(expected)
    found += assembler.finish()
    by_stream: dict[bytes, list[list[Row]]] = {}
    for batch in found:
        by_stream.setdefault(batch.stream_id, []).append(batch.rows)
    assert by_stream == expected
