"""Rows of a snapshot between the changes: when they are read, what is noted meanwhile, where they are placed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from connector.changes import Batch, Row, TableDescription, WholeBatches
from connector.errors import RetriableSourceError
from connector.source import snapshots
from connector.source.background import Background
from connector.source.chunks import Chunk, token_of_key
from connector.source.consumer import Postponed
from connector.source.lagging import OtherSchema
from connector.source.settings import ChunkSize, SnapshotSettings
from connector.source.snapshots import Snapshots
from connector.table_name import TableName
from connector.topology import Inside, Wish
from connector.values import encode, parse_type
from embedded.scylla.tokens import murmur3_token
from tests.changes.test_changes_row_fold import DATED, LAYOUT, SHAPE, TABLE, number, selected, written
from tests.topology.single import WHOLE, Single, tablets

NAME = TableName("ks", "t")
KEY = (number(1),)
#: Of each chunk.
BYTES = 100


@dataclass
class Described:
    description: TableDescription = TABLE


@dataclass
class Tables:
    described: Described = field(default_factory=Described)
    halted: bool = False
    asked: int = 0

    def __getitem__(self, table: TableName) -> Described:
        return self.described

    def stopped(self, table: TableName) -> bool:
        return self.halted

    def ask(self, table: TableName) -> None:
        self.asked += 1


class Chores:
    """What is submitted is done when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], Any], Callable[[Any, BaseException | None], None]]] = []

    def submit(self, call: Callable[[], Any], then: Callable[[Any, BaseException | None], None]) -> None:
        self.waiting.append((call, then))

    def answer(self, result: Any, error: BaseException | None = None) -> None:
        self.waiting.pop(0)[1](result, error)


@dataclass
class Consumer:
    placed: list[Batch] = field(default_factory=list)
    given: list[Sequence[Batch]] = field(default_factory=list)
    away: bool = False

    def place(self, read: Any, batches: Sequence[Batch]) -> int:
        if self.away:
            raise Postponed("no topic")
        self.given.append(batches)
        self.placed += batches[:1]
        return 1


@dataclass
class Read:
    state: Any


class Stage:
    """One group, a snapshot of its table, and everything beside it in the test's hands."""

    def __init__(
        self,
        clocks_apart_ms: int = 0,
        description: TableDescription = TABLE,
        takes_uncut: bool = False,
        ending: bool = False,
        streams: Sequence[bytes] = (WHOLE,),
        max_bytes: int = 64 << 20,
    ) -> None:
        self.one = Single(tablets(5_000, *streams), lookback_ms=100, initial_snapshot=True)
        self.one.read_all()
        self.chores, self.tables, self.consumer = Chores(), Tables(Described(description)), Consumer()
        self.background = Background()
        self.ahead_ms = 0
        connection: Any = self
        self.snapshots = Snapshots(
            planner=self.one.planner,
            connection=connection,
            settings=SnapshotSettings(
                max_queries_per_second=1e6,
                clocks_apart_ms=clocks_apart_ms,
                dated=ending,
                max_bytes=max_bytes,
                chunk=ChunkSize(5_000, BYTES),
            ),
            chores=self.chores,  # type: ignore[arg-type]
            tables=self.tables,  # type: ignore[arg-type]
            consumer=self.consumer,
            background=self.background,
            takes_uncut=lambda layout: takes_uncut and layout.snapshot == "true",
        )
        self.snapshots.doubt_seconds = 0.0
        self.pump()

    @property
    def clock(self) -> Stage:
        return self

    def latest_ms(self) -> int:
        return self.one.now + self.ahead_ms

    def ask_a_clock(self) -> dict[str, None]:
        return {"a": None}

    def pump(self) -> None:
        """As often as there is more to be placed."""
        self.snapshots._openings_due = 0.0
        while self.snapshots.pump(self.one.now):
            pass

    def to(self, now: int, *batches: Batch) -> None:
        """The time is ``now``, and all that may be delivered is."""
        self.deliver(now, *batches)
        self.pump()

    def deliver(self, now: int, *batches: Batch) -> None:
        """The time is ``now``, and all changes that may be delivered are."""
        self.one.to(now)
        for read in self.one.reads().values():
            self.snapshots.delivered(read, batches)
            self.one.planner.finish(read)

    def read(self, *rows: Row, upto: int | None = None) -> None:
        """The chunk comes: the rows of one partition, or none."""
        there = {KEY: list(rows)} if rows else {}
        self.chores.answer(Chunk(there, upto if upto is not None else (1 << 63) - 1, BYTES, 1, 0.01))

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [dict(zip(LAYOUT.columns, row, strict=True)) for each in self.consumer.placed for row in each.rows]


def test_rows_are_placed_when_all_that_is_older_than_the_end_of_their_read_is_delivered() -> None:
    stage = Stage()
    stage.to(10_010)
    stage.read(selected(ck=1, v=1))
    stage.to(10_049)
    assert not stage.rows
    stage.to(10_050)
    (shown,) = stage.rows
    assert (shown["ck"], shown["v"]) == (number(1), number(1))
    assert stage.consumer.placed[0].timestamp_us == 10_010 * 1000 - 1
    assert not stage.snapshots.held_bytes
    stage.one.commit(move_marks=True)
    stage.one.commit(move_marks=True)
    stage.pump()
    assert not stage.chores.waiting


def test_rows_wait_for_the_fastest_clock_of_who_may_have_written_them() -> None:
    """What was read shows writes with times up to there: with those of them that are delivered later behind it a
    consumer would see the row go back."""
    stage = Stage(clocks_apart_ms=7)
    stage.to(10_010)
    stage.ahead_ms = 20
    stage.read(selected(ck=1, v=1))
    stage.to(10_076)
    assert not stage.rows
    stage.to(10_077)
    assert len(stage.rows) == 1
    assert stage.consumer.placed[0].timestamp_us == 10_037 * 1000 - 1


def test_a_server_is_asked_for_its_time_behind_each_read(monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []
    monkeypatch.setattr("connector.source.snapshots.read_chunk", lambda *_: happened.append("read"))
    monkeypatch.setattr(Stage, "ask_a_clock", lambda _: happened.append("clock") or {"a": None})
    ((call, _),) = Stage().chores.waiting
    call()
    assert happened == ["read", "clock"]


def test_changes_have_their_turn_between_what_is_ripe_at_once() -> None:
    stage = Stage()
    chunks = 5
    for number_of_chunk in range(chunks):
        last = number_of_chunk == chunks - 1
        stage.read(selected(ck=number_of_chunk, v=1), upto=None if last else number_of_chunk * 1_000)
        stage.pump()
    stage.deliver(10_050)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "ROWS_A_ROUND", 2)
        assert stage.snapshots.pump(stage.one.now) and len(stage.rows) == 2
        assert stage.snapshots.pump(stage.one.now) and len(stage.rows) == 4
        assert not stage.snapshots.pump(stage.one.now) and len(stage.rows) == chunks
    assert not stage.snapshots.held_bytes


def test_changes_since_before_the_read_are_in_the_rows() -> None:
    stage = Stage()
    stage.to(10_010, written(9_970_000, v=number(5)))
    stage.read(selected(ck=1, v=1), selected(ck=2, v=2))
    stage.to(10_030, written(9_990_000, ck=2, operation=3))
    stage.to(10_050)
    assert [row["v"] for row in stage.rows] == [number(5)]


def test_what_cannot_be_told_is_read_again_and_placed_later() -> None:
    stage = Stage()
    stage.read(selected(ck=1, v=1))
    stage.to(10_030, written(9_990_000, **{"cdc$deleted_v": b"\x01"}))
    stage.to(10_050)
    assert not stage.rows
    stage.to(10_070, written(10_020_000, v=number(6)), written(10_020_001, **{"cdc$deleted_v": b"\x01"}))
    stage.chores.answer({KEY: [selected(ck=1)]})
    stage.to(10_090)
    assert not stage.rows
    stage.to(10_110)
    assert [(row["v"], row["cdc$deleted_v"]) for row in stage.rows] == [(None, b"\x01")]
    assert stage.snapshots.counters.rereads.total() == 1


def test_what_changes_all_the_time_is_read_again_until_it_is_known() -> None:
    """And what is decided in front of it is not held up."""
    stage = Stage()
    elements = encode(parse_type("frozen<map<timeuuid, int>>"), [])
    other = selected(pk=5, ck=1, v=2)
    assert token_of_key(other[:1]) < token_of_key(KEY)
    there = {other[:1]: [other], KEY: [selected(ck=1, l=[1])]}
    stage.chores.answer(Chunk(there, (1 << 63) - 1, 100, 1, 0.01))
    for _ in range(2 * snapshots.TRIES):
        stage.to(stage.one.now + 60, written(9_990_000, l=elements))
        stage.to(stage.one.now + 60)
        stage.chores.answer({KEY: [selected(ck=1, l=[1, 2])]})
    assert [row["pk"] for row in stage.rows] == [number(5)]
    assert stage.snapshots.undecided(NAME) == 1
    stage.to(stage.one.now + 60)
    assert [row["pk"] for row in stage.rows] == [number(5), number(1)]
    assert stage.snapshots.undecided(NAME) == 0
    stage.one.commit(move_marks=True)
    assert not stage.one.planner.openings(stage.one.now)


def test_what_is_in_doubt_is_placed_when_a_change_has_told_what_it_is() -> None:
    stage = Stage()
    stage.read(selected(ck=1, v=1))
    stage.to(10_030, written(9_990_000, **{"cdc$deleted_v": b"\x01"}))
    stage.to(10_050)
    assert len(stage.chores.waiting) == 1
    stage.to(10_070, written(10_010_000, v=number(5)))
    assert [row["v"] for row in stage.rows] == [number(5)]
    stage.chores.answer({KEY: [selected(ck=1, v=9)]})
    stage.to(10_200)
    assert len(stage.rows) == 1


def test_a_partition_that_is_too_large_is_placed_part_by_part() -> None:
    """Whoever goes on begins inside it, and static columns are shown once."""
    for takes_uncut in (True, False):
        stage = Stage(takes_uncut=takes_uncut)
        token = token_of_key(KEY)
        cut = Inside(KEY, (number(2),), 1)
        stage.chores.answer(Chunk({KEY: [selected(ck=3, s=9), selected(ck=2, s=9)]}, token - 1, 100, 1, 0.01, cut))
        stage.pump()
        stage.to(10_100)
        assert [row["ck"] for row in stage.rows] == [None, number(3), number(2)]
        stage.one.commit(move_marks=True)
        stage.one.planner.aborted()
        stage.pump()
        (opening,) = stage.one.planner.openings(stage.one.now)
        assert opening.left == [(token - 1, (1 << 63) - 1)]
        assert opening.inside == {(token - 1, None): cut}
        del stage.chores.waiting[0]
        stage.pump()
        assert stage.chores.waiting[0][0].args[0].args[3] == cut  # type: ignore[attr-defined]
        stage.chores.answer(Chunk({KEY: [selected(ck=1, s=9)]}, token, 100, 1, 0.01))
        stage.to(10_200)
        assert [row["ck"] for row in stage.rows][3:] == [number(1)]
        stage.one.commit(move_marks=True)
        (opening,) = stage.one.planner.openings(stage.one.now)
        assert opening.left == [(token, (1 << 63) - 1)]


def test_a_partition_of_a_table_that_had_the_name_before_is_begun_anew() -> None:
    """Its clustering key may have been another one, which no server takes as one of the table that is there now. How
    far that one is placed counts, however many parts the former one had."""
    stage, token = Stage(), token_of_key(KEY)
    for cut, ck in (
        (Inside(KEY, (number(2), b"x"), 7, "the former one"), 2),
        (Inside(KEY, (number(5),), 1, TABLE.table_id), 5),
    ):
        assert stage.chores.waiting[0][0].args[0].args[3] is None  # type: ignore[attr-defined]
        stage.chores.answer(Chunk({KEY: [selected(ck=ck)]}, token - 1, 100, 1, 0.01, cut))
        stage.to(stage.one.now + 100)
        stage.one.commit(move_marks=True)
        stage.one.planner.aborted()
        while stage.chores.waiting:
            stage.read()
        stage.pump()
    assert stage.chores.waiting[0][0].args[0].args[3] == cut  # type: ignore[attr-defined]


def test_changes_of_a_part_are_in_it() -> None:
    """Its token is behind the last one that it is read up to, and the first one of what follows."""
    stage = Stage()
    token, cut = token_of_key(KEY), Inside(KEY, (number(2),), 1)
    stage.chores.answer(Chunk({KEY: [selected(ck=2, v=2)]}, token - 1, 100, 1, 0.01, cut))
    stage.pump()
    stage.chores.answer(Chunk({KEY: [selected(ck=1, v=1)]}, token, 100, 1, 0.01))
    stage.to(10_030, written(9_990_000, ck=2, v=number(7)), written(9_990_001, ck=1, v=number(8)))
    stage.to(10_100)
    assert [row["v"] for row in stage.rows] == [number(7), number(8)]


def test_what_is_held_is_dropped_with_what_is_taken_back() -> None:
    stage = Stage()
    stage.read(selected(ck=1, v=1))
    stage.one.planner.aborted()
    stage.pump()
    stage.to(10_100)
    assert not stage.rows
    stage.read(selected(ck=1, v=2))
    stage.to(10_200)
    assert [row["v"] for row in stage.rows] == [number(2)]


def test_an_answer_to_a_question_of_before_is_nobodys() -> None:
    stage = Stage()
    stage.one.planner.aborted()
    stage.pump()
    stage.read(selected(ck=1, v=1))
    stage.to(10_100)
    assert not stage.rows


def test_a_row_is_not_shown_by_a_description_that_is_older_than_its_columns() -> None:
    stage = Stage()
    stage.read(selected(ck=1, v=1))
    stage.tables.described = Described(TableDescription("ks", "t", "id", TABLE.columns[:5]))
    stage.to(10_100)
    assert not stage.rows
    assert len(stage.chores.waiting) == 1


def test_a_description_that_says_the_same_again_is_the_same() -> None:
    stage = Stage()
    stage.read(selected(ck=1, v=1))
    # As after a change that was taken back.
    stage.tables.described = Described(replace(TABLE))
    stage.to(10_100)
    assert [row["v"] for row in stage.rows] == [number(1)]


@pytest.mark.parametrize("ending", [False, True])
def test_rows_that_nobody_makes_objects_of_are_the_same(ending: bool) -> None:
    """Static values, with rows and alone, lists, collections, what is left of cells."""
    placed = []
    for takes_uncut in (True, False):
        stage = Stage(takes_uncut=takes_uncut, ending=ending)
        rows: dict[Row, list[Row]] = {
            (number(0),): [
                found(ending, pk=0, ck=2, s=3),
                found(ending, pk=0, ck=1, s=3, v=5, m={"k": 7}.items(), l=[1, 2], a=("x", None)),
            ],
            KEY: [found(ending, ck=1, v=1, e=[4], l=[])],
            (number(2),): [],
            (number(3),): [found(ending, pk=3, s=6)],
        }
        rows = {key: rows[key] for key in sorted(rows, key=token_of_key)}
        stage.chores.answer(Chunk(rows, (1 << 63) - 1, 100, 1, 0.01))
        stage.to(10_060, written(10_000_500, v=number(8)))
        placed.append([(each.stream_id, each.time, each.rows) for each in stage.consumer.placed])
        assert [type(each) for each in stage.consumer.given] == [WholeBatches if takes_uncut else list] * 3
        assert stage.snapshots.counters.rows.total() == 5
        assert stage.one.planner.openings(stage.one.now) == []
    assert placed[0] == placed[1]
    assert sum(len(rows) for _, _, rows in placed[0]) == 5
    lefts = sorted(row[-2] for _, _, each in placed[0] for row in each if ending and row[-2] is not None)
    assert lefts == ([b'{"s":99990}', b'{"s":99990}', b'{"v":99990}'] if ending else [])
    times = sorted(row[-1] for _, _, each in placed[0] for row in each if ending and row[-1] is not None)
    assert times == ([b'{"s":7}', b'{"s":7}', b'{"v":10000500}', b'{"v":7}'] if ending else [])


def found(ending: bool, **cells: Any) -> Row:
    """As it is selected: what it holds of `s` and `v` was written in microsecond 7, and ends in second 100,000."""
    timed = {SHAPE.columns.index(column) for column in SHAPE.columns if column.name in {"s", "v"} & {*cells}}
    return (
        *selected(**cells),
        *(DATED.times(dict.fromkeys(timed, 100_000), dict.fromkeys(timed, 7)) if ending else ()),
    )


def test_a_part_that_shows_nothing_more_than_static_values_has_no_rows() -> None:
    """The part in front of it has told of them, and its own rows are gone by now."""
    for takes_uncut in (True, False):
        stage = Stage(takes_uncut=takes_uncut)
        token, cut = token_of_key(KEY), Inside(KEY, (number(2),), 1)
        stage.chores.answer(Chunk({KEY: [selected(ck=2, s=9)]}, token - 1, 100, 1, 0.01, cut))
        stage.pump()
        stage.chores.answer(Chunk({KEY: [selected(ck=1, s=9)]}, token, 100, 1, 0.01))
        stage.to(10_060, written(10_000_500, ck=1, operation=3))
        assert [row["ck"] for row in stage.rows] == [None, number(2)]
        assert len(stage.consumer.given) == 1, "a batch without rows was placed"


def test_what_has_no_topic_waits_and_follows_with_what_changed_meanwhile() -> None:
    stage = Stage()
    stage.read(selected(ck=1, v=1))
    stage.consumer.away = True
    stage.to(10_100)
    stage.to(10_150, written(10_080_000, v=number(7)))
    stage.consumer.away = False
    stage.to(10_200, written(10_130_000, v=number(8)))
    assert [row["v"] for row in stage.rows] == [number(8)]


def test_a_table_whose_rows_all_nodes_show_by_another_schema_is_described_again() -> None:
    stage, node = Stage(), SimpleNamespace(endpoint="10.0.0.1:9042")
    stage.chores.answer(None, OtherSchema("ks.t", "column v of type int", node))
    assert stage.tables.asked == 1
    assert "column v of type int in ks.t" in str(stage.background.failing())


def test_what_is_stopped_fails_no_longer() -> None:
    stage = Stage()
    stage.chores.answer(None, RetriableSourceError("no such column"))
    stage.pump()
    assert [each.about for each in stage.background.failing()] == ["ks.t"]
    stage.one.planner.hear_from(0)
    stage.one.planner.wish(NAME, Wish(1, "stop", "s", None))
    stage.one.commit(move_marks=True)
    stage.pump()
    assert not stage.background.failing()


def test_rows_are_counted_for_each_snapshot_of_a_table() -> None:
    stage = Stage()
    stage.read(selected(ck=1, v=1))
    stage.to(10_100)
    stage.one.commit(move_marks=True)
    stage.one.planner.hear_from(0)
    stage.one.planner.wish(NAME, Wish(1, "start", "again", None))
    stage.one.commit(move_marks=True)
    stage.pump()
    stage.read(selected(ck=1, v=1), selected(ck=2, v=1))
    stage.to(10_200)
    first, second = sorted(name for _, name in stage.snapshots.counters.rows)
    assert stage.snapshots.counters.rows == {(NAME, first): 1, (NAME, second): 2}
    assert stage.snapshots.counters.chunks == {(NAME, first): 1, (NAME, second): 1}


def test_chunks_follow_each_other_and_are_placed_in_order() -> None:
    stage = Stage()
    stage.read(selected(ck=1, v=1), upto=token_of_key(KEY))
    stage.pump()
    assert len(stage.chores.waiting) == 1
    stage.to(10_060)
    assert len(stage.rows) == 1
    stage.read()
    stage.to(10_150)
    stage.one.commit(move_marks=True)
    assert not stage.one.planner.openings(stage.one.now)


@pytest.mark.parametrize("key", [(number(1),), (b"",), (number(1), b"a"), (b"", b"", b"ab")])
def test_tokens_of_keys_are_the_servers(key: tuple[bytes, ...]) -> None:
    parts = (len(cell).to_bytes(2, "big") + cell + b"\x00" for cell in key)
    assert token_of_key(key) == murmur3_token(key[0] if len(key) == 1 else b"".join(parts))
