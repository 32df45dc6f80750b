"""Rows of a snapshot that nobody cuts: the partitions, the batches and the places of those that are cut."""

from __future__ import annotations

import random
from typing import Any

import pytest

from connector.changes import Row, TableDescription, UncutPartitions, WholeBatches, straight_layout, whole_rows
from connector.errors import PoisonRow
from connector.native import Kernel
from connector.native.samples import page_of
from connector.source.chunks import Chunk, Partitions, token_of_key
from connector.topology import Inside
from tests.changes.test_changes_row_fold import TABLE, number, written
from tests.source.test_source_snapshots import NAME, Stage

PLAIN = TableDescription(
    "ks", "t", "id", tuple(column for column in TABLE.columns if column.name not in ("s", "l", "a"))
)
SHAPE = whole_rows(PLAIN)
LAST = (1 << 63) - 1


def row(pk: int, ck: int, v: int | None = 1) -> Row:
    given = {"pk": number(pk), "ck": number(ck), "v": None if v is None else number(v)}
    return tuple(given.get(column.name) for column in SHAPE.columns)


def partitions_of(*sizes: int) -> dict[Row, list[Row]]:
    """In the order of tokens."""
    keys = sorted(range(len(sizes)), key=lambda pk: token_of_key((number(pk),)))
    return {(number(pk),): [row(pk, ck) for ck in range(sizes[pk])] for pk in keys}


def uncut(kernel: Kernel, partitions: dict[Row, list[Row]], page: int = 3) -> UncutPartitions:
    """From pages that end anywhere, one of which somebody has cut."""
    rows = [each for partition in partitions.values() for each in partition]
    pages: list[Any] = [rows[at : at + page] for at in range(0, len(rows), page)]
    for at, each in enumerate(pages[1:], 1):
        pages[at] = kernel.scan_selected(b"before" + page_of(each), 6, len(SHAPE.columns), len(each), 0)
    return UncutPartitions.of(kernel, pages, len(SHAPE.columns), SHAPE.width)


def test_partitions_begin_where_the_key_changes(kernel: Kernel) -> None:
    rows = [row(1, 1), row(1, 2), row(2, 2), (None, *row(2, 2)[1:]), (b"", *row(2, 2)[1:]), row(3, 1), row(3, 1)]
    body = page_of(rows)
    found = kernel.scan_selected(body, 0, len(SHAPE.columns), len(rows), 1)
    assert found is not None and list(found) == rows
    assert list(found.firsts)[: found.batches + 1] == [0, 2, 3, 4, 5, 7]
    by_two = kernel.scan_selected(body, 0, len(SHAPE.columns), len(rows), 2)
    assert by_two is not None and list(by_two.firsts)[: by_two.batches + 1] == [0, 1, 2, 3, 4, 5, 7]
    for end in range(len(body)):
        assert kernel.scan_selected(body[:end], 0, len(SHAPE.columns), len(rows), 1) is None
    for count, keys in ((len(rows) + 1, 1), (-1, 1), (len(rows), -1), (len(rows), len(SHAPE.columns) + 1)):
        assert kernel.scan_selected(body, 0, len(SHAPE.columns), count, keys) is None


@pytest.mark.parametrize("seed", range(20))
def test_they_are_what_they_are_cut(kernel: Kernel, seed: int) -> None:
    """Whatever becomes of them, and whichever are gone."""
    pick = random.Random(seed)
    cut = partitions_of(*(pick.randint(1, 4) for _ in range(pick.randint(3, 12))))
    kept = uncut(kernel, cut, pick.randint(1, 5))
    assert kept.size == sum(map(len, map(page_of, cut.values()))) + 12 * sum(map(len, cut.values()))
    for key in [*reversed(kept)][: pick.randint(0, 2)]:
        del kept[key], cut[key]
    for _ in range(4):
        assert len(kept) == len(cut) and [*reversed(kept)] == [*reversed(cut)]
        for key in pick.sample([*cut], pick.randint(0, len(cut) // 2)):
            cut[key] = [row(int.from_bytes(key[0] or b"", "big"), 7, pick.randrange(9))] * pick.randint(0, 3)
            kept[key] = cut[key]
        assert [kept.get(key) for key in cut] == [*cut.values()]
        assert kept.get((number(99),)) is None and (number(99),) not in kept
        there = {key: rows for key, rows in cut.items() if rows}
        left = kept.left()
        assert list(left) == [*there] and list(left[1:]) == [*there][1:] and len(left[1:3][1:]) == len([*there][2:3])
        batches = WholeBatches.as_selected(straight_layout(PLAIN, True), SHAPE, (bytes(16), bytes(16)), True, left)
        assert [batch.rows for batch in batches] == [
            list(SHAPE.of_partition(rows, asked_for=True)) for rows in there.values()
        ]
        assert batches.counts == [len(rows) for rows in there.values()]
        assert kept.cut() == cut
        if not there:
            break
        some = left[: pick.randint(1, len(left))]
        kept.forget(some.numbers[-1])
        cut = dict([*cut.items()][[*cut].index(some[len(some) - 1]) + 1 :])


def held(partitions: Partitions, upto: int = LAST, inside: Inside | None = None) -> Chunk:
    return Chunk(partitions, upto, 100, 1, 0.01, inside)


def placed(stage: Stage) -> list[Any]:
    return [(each.stream_id, each.time, each.rows) for each in stage.consumer.placed]


def test_rows_that_nobody_cuts_are_placed_as_those_that_are(kernel: Kernel) -> None:
    """With what changed while they were read and while they were held, one by one, with waits between."""
    found = []
    for keep in (True, False):
        stage = Stage(description=PLAIN, takes_uncut=True)
        cut = partitions_of(1, 2, 1, 3, 1, 1)
        stage.to(10_005, written(9_970_000, pk=number(1), ck=1, v=number(5)))
        stage.chores.answer(held(uncut(kernel, cut) if keep else cut))
        changes = (
            written(9_990_000, pk=number(0), ck=0, v=number(8)),
            written(9_990_001, pk=number(3), ck=0, operation=3),
            written(9_990_002, pk=number(2), ck=0, operation=3),
            written(9_990_003, pk=number(77), ck=0, v=number(9)),
        )
        stage.consumer.away = True
        stage.to(10_060, *changes)
        stage.to(10_100, written(10_020_000, pk=number(4), ck=0, v=number(4)))
        stage.consumer.away = False
        stage.to(10_200, written(10_020_000, pk=number(0), ck=0, v=number(3)))
        found.append(placed(stage))
        assert all(isinstance(each, WholeBatches) for each in stage.consumer.given)
        assert stage.snapshots.counters.rows.total() == 7 and not stage.snapshots.held_bytes
    assert found[0] == found[1] and len(found[0]) == 5
    values = {(each[2][0][SHAPE.layout.columns.index("pk")]): each[2] for each in found[0]}
    assert [each[SHAPE.layout.columns.index("v")] for each in values[number(0)]] == [number(3)]
    assert number(2) not in values and len(values[number(3)]) == 2


def test_what_is_in_doubt_is_cut_with_its_chunk(kernel: Kernel) -> None:
    """And its neighbours are placed."""
    found = []
    for keep in (True, False):
        stage = Stage(description=PLAIN, takes_uncut=True)
        cut = partitions_of(1, 1, 1, 1)
        stage.chores.answer(held(uncut(kernel, cut) if keep else cut))
        stage.to(10_030, written(9_990_000, pk=number(2), ck=0, **{"cdc$deleted_v": b"\x01"}))
        stage.to(10_060)
        assert stage.snapshots.undecided(NAME) == 1 and len(placed(stage)) == 3
        stage.to(10_100)
        assert stage.snapshots.held_bytes
        stage.to(10_200, written(10_120_000, pk=number(2), ck=0, v=number(6)))
        found.append(placed(stage))
    assert found[0] == found[1] and len(found[0]) == 4


def test_rows_that_nobody_takes_uncut_are_cut(kernel: Kernel) -> None:
    stage = Stage(description=PLAIN)
    cut = partitions_of(2, 1)
    stage.chores.answer(held(uncut(kernel, cut)))
    stage.to(10_100)
    assert [len(rows) for _, _, rows in placed(stage)] == [*map(len, cut.values())]


def test_changes_concern_the_chunks_of_their_tokens_alone(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first and the last token, and that of a partition of which there is a part. No other is looked up."""
    looked_up: dict[tuple[int, Row], None] = {}
    get = UncutPartitions.get
    monkeypatch.setattr(
        UncutPartitions, "get", lambda self, key: looked_up.update({(id(self), key): None}) or get(self, key)
    )
    cut = partitions_of(1, 1, 1)
    first, middle, last = cut
    stage = Stage(description=PLAIN, takes_uncut=True)
    ends = Inside(middle, (number(0),), 1)
    stage.chores.answer(held(uncut(kernel, {first: cut[first]}), token_of_key(first)))
    stage.pump()
    stage.chores.answer(held(uncut(kernel, {middle: cut[middle]}), token_of_key(middle) - 1, ends))
    stage.pump()
    stage.chores.answer(held(uncut(kernel, {last: cut[last]})))
    for at, key in enumerate(cut):
        pk = int.from_bytes(key[0] or b"", "big")
        stage.to(10_030 + at, written(9_990_000 + at, pk=number(pk), ck=0, v=number(40 + at)))
    assert [key for _, key in looked_up] == [first, middle, middle, last]
    stage.to(10_100)
    shown = [each[SHAPE.layout.columns.index("v")] for _, _, rows in placed(stage) for each in rows]
    assert shown == [number(40), number(41), number(42)]


def test_a_change_that_cannot_be_read_leaves_its_partition_in_doubt(kernel: Kernel) -> None:
    stage = Stage(description=PLAIN, takes_uncut=True)
    stage.chores.answer(held(uncut(kernel, partitions_of(1, 1))))
    with pytest.MonkeyPatch.context() as patch:

        def poisoned(*_: object) -> None:
            raise PoisonRow("no such operation")

        patch.setattr("connector.changes.row_fold.FoldedPartition.apply", poisoned)
        stage.to(10_030, written(9_990_000, pk=number(1), ck=0, v=number(2)))
    stage.to(10_100)
    assert stage.snapshots.undecided(NAME) == 1 and len(placed(stage)) == 1
