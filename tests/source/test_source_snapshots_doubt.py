"""Partitions of a snapshot of which no SELECT tells what they are: what waits for them, and what does not.

`Snapshots` with everything beside it in the test's hands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from connector.changes import Batch
from connector.errors import PoisonRow, ReplicasAway
from connector.source import snapshots
from connector.source.chunks import Chunk, token_of_key
from connector.topology import Inside
from connector.values import encode, parse_type
from tests.source.test_source_snapshots import KEY, NAME, Stage, found, number, selected, written

IN_DOUBT = {"cdc$deleted_v": b"\x01"}
BEHIND = selected(pk=2, ck=1, v=2)
LAST_TOKEN = (1 << 63) - 1


def test_what_is_in_doubt_holds_up_itself_alone() -> None:
    """It is a hole in what is done: all behind it is placed, and whoever goes on reads the hole alone."""
    stage = Stage()
    hole = token_of_key(KEY)
    stage.chores.answer(Chunk({KEY: [selected(ck=1, v=1)], BEHIND[:1]: [BEHIND]}, LAST_TOKEN - 5, 100, 1, 0.01))
    stage.to(10_060, written(10_010_000, **IN_DOUBT))
    assert [row["v"] for row in stage.rows] == [number(2)]
    assert stage.snapshots.undecided(NAME) == 1 and stage.snapshots.held_bytes
    (opening,) = stage.one.planner.openings(stage.one.now)
    assert opening.left == [(hole - 1, hole), (LAST_TOKEN - 5, LAST_TOKEN)]
    # Its partition is read again, and what is behind all of it is read.
    again = stage.chores.waiting.pop(0)
    stage.read(selected(pk=3, ck=1, v=4))
    stage.to(10_120)
    assert [row["v"] for row in stage.rows] == [number(2), number(4)]
    assert not stage.chores.waiting
    stage.chores.waiting.append(again)
    stage.to(10_180, written(10_130_000, v=number(3)))
    assert [row["v"] for row in stage.rows] == [number(2), number(4), number(3)]
    stage.one.commit(move_marks=True)
    assert not stage.one.planner.openings(stage.one.now)
    assert not stage.snapshots.held_bytes


def test_who_goes_on_reads_the_holes_alone() -> None:
    stage = Stage()
    hole = token_of_key(KEY)
    stage.chores.answer(Chunk({KEY: [selected(ck=1, v=1)], BEHIND[:1]: [BEHIND]}, LAST_TOKEN, 100, 1, 0.01))
    stage.to(10_060, written(10_010_000, **IN_DOUBT))
    stage.one.commit(move_marks=True)
    stage.one.planner.aborted()
    stage.chores.waiting.clear()
    stage.snapshots._under_way.clear()
    stage.pump()
    ((call, _),) = stage.chores.waiting
    assert call.args[0].args[2] == (hole - 1, hole)  # type: ignore[attr-defined]
    stage.read(selected(ck=1, v=7))
    stage.to(10_200)
    assert [row["v"] for row in stage.rows] == [number(2), number(7)]
    stage.one.commit(move_marks=True)
    assert not stage.one.planner.openings(stage.one.now)


def test_what_shares_the_token_of_what_is_in_doubt_waits_with_it() -> None:
    stage = Stage()
    with pytest.MonkeyPatch.context() as patch:
        for module in ("held_chunk", "snapshots"):
            patch.setattr(f"connector.source.{module}.token_of_key", lambda key: 77)
        stage.chores.answer(Chunk({KEY: [selected(ck=1, v=1)], BEHIND[:1]: [BEHIND]}, LAST_TOKEN, 100, 1, 0.01))
        stage.to(10_060, written(10_010_000, **IN_DOUBT))
        assert not stage.rows
        assert stage.one.planner.openings(stage.one.now)[0].left == [(76, 77)]
        stage.to(10_120, written(10_070_000, v=number(3)))
    assert [row["v"] for row in stage.rows] == [number(3), number(2)]


def test_no_more_than_so_many_holes_are_left() -> None:
    stage = Stage()
    stage.chores.answer(Chunk({KEY: [selected(ck=1, v=1)]}, 1 << 62, 100, 1, 0.01))
    stage.pump()
    stage.chores.answer(Chunk({BEHIND[:1]: [BEHIND]}, LAST_TOKEN, 100, 1, 0.01))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "MOST_ASIDE", 0)
        stage.to(10_060, written(10_010_000, **IN_DOUBT))
    assert not stage.rows
    stage.to(10_120, written(10_070_000, v=number(3)))
    assert [row["v"] for row in stage.rows] == [number(3), number(2)]


def test_what_is_read_again_is_nobodys_once_a_change_has_told_what_it_is() -> None:
    """Others of its chunk wait on."""
    stage = Stage()
    rows = {KEY: [selected(ck=1, v=1)], BEHIND[:1]: [BEHIND]}
    stage.chores.answer(Chunk(rows, LAST_TOKEN, 100, 1, 0.01))
    stage.to(10_060, written(10_010_000, **IN_DOUBT), written(10_010_001, **{**IN_DOUBT, "pk": number(2)}))
    assert not stage.rows
    stage.to(10_120, written(10_070_000, v=number(3)))
    assert [row["v"] for row in stage.rows] == [number(3)]
    stage.chores.answer({KEY: [selected(ck=1, v=3)], BEHIND[:1]: [selected(pk=2, ck=1)]})
    stage.to(10_300)
    stage.to(10_400)
    assert [(row["pk"], row["v"]) for row in stage.rows] == [(number(1), number(3)), (number(2), None)]


def test_a_part_in_doubt_holds_up_the_rest_of_its_partition_alone() -> None:
    stage = Stage()
    token, cut = token_of_key(KEY), Inside(KEY, (number(2),), 1)
    stage.chores.answer(Chunk({KEY: [selected(ck=3, v=3)]}, token - 1, 100, 1, 0.01, cut))
    stage.pump()
    stage.chores.answer(Chunk({KEY: [selected(ck=1, v=1)]}, token, 100, 1, 0.01))
    stage.pump()
    stage.chores.answer(Chunk({BEHIND[:1]: [BEHIND]}, LAST_TOKEN, 100, 1, 0.01))
    stage.to(10_060, written(10_010_000, ck=3, **IN_DOUBT))
    assert [row["v"] for row in stage.rows] == [number(2)]
    assert stage.one.planner.openings(stage.one.now)[0].left == [(token - 1, token)]
    stage.to(10_120, written(10_070_000, ck=3, v=number(4)))
    assert [row["v"] for row in stage.rows] == [number(2), number(4)]
    stage.chores.waiting = stage.chores.waiting[-1:]
    assert stage.chores.waiting[0][0].args[0].args[2:4] == ((token - 1, token), cut)  # type: ignore[attr-defined]
    stage.chores.answer(Chunk({KEY: [selected(ck=1, v=1)]}, token, 100, 1, 0.01))
    stage.to(10_200)
    assert [row["v"] for row in stage.rows] == [number(2), number(4), number(1)]
    stage.one.commit(move_marks=True)
    assert not stage.one.planner.openings(stage.one.now)


def test_a_change_that_nobody_understands_leaves_its_partition_in_doubt() -> None:
    """Until it is read again, behind that change."""
    stage = Stage()
    stage.read(selected(ck=1, v=1))
    stage.to(10_050, written(9_990_000, operation=77))
    assert not stage.rows and stage.snapshots.undecided(NAME) == 1
    stage.chores.answer({KEY: [selected(ck=1, v=2)]})
    stage.to(10_110)
    assert [row["v"] for row in stage.rows] == [number(2)] and not stage.snapshots.undecided(NAME)


def test_where_a_value_has_ended_since_it_was_read_another_read_tells_what_is_left() -> None:
    """In second 100,000 the value ends by which the row may live alone."""
    stage = Stage(ending=True)
    stage.to(99_999_000)
    stage.read(found(True, ck=1, v=1))
    stage.to(100_000_500)
    assert not stage.consumer.placed and stage.snapshots.undecided(NAME) == 1
    stage.chores.answer({KEY: []})
    stage.to(100_000_600)
    assert not stage.consumer.placed and not stage.snapshots.undecided(NAME)


class InDoubt:
    """One group, and in front of its rows a partition that is read again and again and stays in doubt."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = snapshots.time.monotonic()
        patch.setattr(snapshots.time, "monotonic", lambda: self.now)
        self.stage = Stage()
        self.stage.snapshots.doubt_seconds = snapshots.DOUBT_SECONDS
        patch.setattr(self.stage.background, "monotonic", lambda: self.now)
        self.hole = token_of_key(KEY)
        self.stage.chores.answer(Chunk({KEY: [selected(ck=1, l=[1])]}, self.hole + 5, 100, 1, 0.01))

    def next(self) -> Any:
        """The next that is asked is the first that waits: what it is."""
        elements = encode(parse_type("frozen<map<timeuuid, int>>"), [])
        while True:
            self.now += 0.1
            self.stage.to(self.stage.one.now + 60, written(9_990_000, l=elements))
            for at, (call, _) in enumerate(self.stage.chores.waiting):
                self.stage.chores.waiting.insert(0, self.stage.chores.waiting.pop(at))
                read: Any = call
                return read.args[0].func.__name__

    def again(self) -> None:
        self.stage.chores.answer({KEY: [selected(ck=1, l=[1, 2])]})

    @property
    def said(self) -> list[str]:
        return [failing.error for failing in self.stage.background.failing()]


def test_rows_that_are_refused_are_told_while_others_of_their_group_are_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    doubt, refusals = InDoubt(monkeypatch), 0
    end = doubt.now + 200
    while doubt.now < end:
        if doubt.next() == "read_chunk":
            doubt.stage.chores.answer(None, ReplicasAway("no replica"))
            refusals += 1
        else:
            doubt.again()
        assert doubt.said == ([f"rows from token(pk) > {doubt.hole + 5} on: no replica"] if refusals else [])
    assert 4 < refusals < 15


def test_of_what_is_in_doubt_and_refused_the_token_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    doubt = InDoubt(monkeypatch)
    while doubt.next() == "read_chunk":
        doubt.stage.read(upto=doubt.hole + 6)
    doubt.stage.chores.answer(None, ReplicasAway("no replica"))
    assert doubt.said == [f"rows of the partition with token(pk) = {doubt.hole}: no replica"]


def test_a_row_that_cannot_be_delivered_is_told_while_others_of_its_group_are(monkeypatch: pytest.MonkeyPatch) -> None:
    doubt = InDoubt(monkeypatch)

    def place(read: object, batches: Sequence[Batch]) -> int:
        raise PoisonRow("no record can be made of it")

    while doubt.next() != "read_chunk":
        doubt.again()
    monkeypatch.setattr(doubt.stage.consumer, "place", place)
    behind = next(row for pk in range(100) if token_of_key((row := selected(pk=pk, ck=1, v=2))[:1]) > doubt.hole + 5)
    doubt.stage.chores.answer(Chunk({behind[:1]: [behind]}, LAST_TOKEN, 100, 1, 0.01))
    for _ in range(20):
        doubt.next()
        doubt.again()
        assert doubt.said == ["no record can be made of it"]
