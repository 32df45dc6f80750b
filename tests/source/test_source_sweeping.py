"""How often logs are swept, and what happens where a sweep is dear or does not get through."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from cassandra.cqltypes import BytesType, TimeUUIDType

from connector.errors import ReplicasAway, RetriableSourceError
from connector.source.failures import ReadTimedOut
from connector.source.log_reader import LogReader, LogTable, PageRead, ReadEvent, ReadFailed, SweepRequest
from connector.source.pages import RawPage
from connector.source.settings import ReadingSettings
from connector.source.sweeping import (
    AT_ONCE,
    DEAR_PAGES,
    DEAR_SECONDS,
    DIVIDED_SECONDS,
    LATE_MS,
    LONGEST_PAUSE,
    MOST_DIVIDED,
    PAUSE_SECONDS,
    Sweeping,
)
from connector.source.tables import Tables
from connector.table_name import TableName
from connector.topology import Sweep, token_of
from connector.topology.streams import RING
from tests.topology.single import CONFIDENCE, TABLE, Single, row, stream, tablets

STREAMS = [stream(place) for place in (32, 64, 96, 128)]


class Requests:
    """What a log reader was asked for."""

    def __init__(self) -> None:
        self.submitted: list[SweepRequest] = []

    def submit(self, request: SweepRequest) -> None:
        self.submitted.append(request)

    def cancel(self, group: Hashable) -> None:
        self.submitted = [each for each in self.submitted if each.group != group]


class Swept:
    """A planner with a few groups, and its sweeps."""

    def __init__(self, streams: Sequence[bytes] = STREAMS, rows_of_a_page: int = 5_000, **settings: Any) -> None:
        self.clock = 0.0
        self.one = Single(tablets(9_000, *streams), now=10_000)
        self.log = Requests()
        tables = cast(Tables, {TABLE: SimpleNamespace(log=LogTable("ks", "t_scylla_cdc_log"))})
        given = ReadingSettings(confidence_ms=CONFIDENCE, **settings)
        self.timing_out = False
        self.sweeping = Sweeping(
            self.one.planner,
            cast(LogReader, self.log),
            given,
            tables,
            lambda: self.clock,
            lambda _: self.timing_out,
            rows_of_a_page,
        )

    def later(self, seconds: float) -> None:
        self.clock += seconds
        self.one.to(self.one.now + round(seconds * 1000))
        self.sweeping.pump(self.one.now)

    def read_on(self, seconds: float) -> None:
        """All groups that may be read are, and have nothing; then as `later`."""
        self.one.read_all()
        self.later(seconds)

    def answer(self, *rows: tuple[bytes, bytes], last: bool = True) -> None:
        page = RawPage(("cdc$stream_id", "cdc$time"), (BytesType, TimeUUIDType), list(rows))
        self.tell(PageRead(self.log.submitted[-1], page, 1, last))

    def refuse(self, *streams: bytes) -> int:
        """Of what is asked for, and of its parts, whatever goes over the tokens of some streams is refused, the rest
        answered; how much that is."""
        tokens, told = [token_of(each) for each in streams], 0
        while self.log.submitted:
            told += 1
            request = self.log.submitted.pop(0)
            if any(request.first <= token <= request.last for token in tokens):
                self.tell(ReadFailed(request, ReplicasAway("Unavailable"), 0))
            else:
                self.tell(PageRead(request, RawPage((), (), []), 1, True))
        return told

    def answer_beside(self) -> None:
        """Of the look at a single group that goes with a sweep, if there is one."""
        for request in self.log.submitted[:-1]:
            self.log.submitted.remove(request)
            self.tell(PageRead(request, RawPage((), (), []), 1, True))

    def tell(self, event: ReadEvent) -> None:
        self.sweeping.handle(event, 1)

    @property
    def awake(self) -> int:
        return self.one.plan.awake


def test_a_sweep_wakes_who_has_rows_on_any_of_its_pages() -> None:
    swept = Swept()
    swept.sweeping.pump(swept.one.now)
    swept.answer((STREAMS[1], row(9_500)), last=False)
    assert swept.awake == 4 and not swept.one.reads()
    swept.answer((STREAMS[3], row(9_600)))
    assert set(swept.one.reads()) == {STREAMS[1], STREAMS[3]}
    assert swept.sweeping.swept == 1


def test_a_sweep_that_times_out_where_single_reads_do_not_is_not_tried_again_for_a_while() -> None:
    swept = Swept()
    swept.sweeping.pump(swept.one.now)
    swept.tell(ReadFailed(swept.log.submitted[0], ReadTimedOut("it timed out"), 0))
    for pause in (PAUSE_SECONDS, 2 * PAUSE_SECONDS):
        swept.read_on(2.0)
        swept.read_on(0.5)
        swept.answer_beside()
        swept.clock += 10.0
        swept.tell(ReadFailed(swept.log.submitted[0], ReadTimedOut("it timed out"), 0))
        assert swept.awake == 4
        assert set(swept.one.reads()) == set(STREAMS)
        swept.one.planner.aborted()
        swept.later(pause - 3)
        assert not swept.log.submitted
        assert len(swept.one.reads()) == 4
        swept.one.planner.aborted()
        swept.later(1.5)
    swept.later(2.0)
    swept.answer_beside()
    swept.answer()
    assert swept.awake == 0


@pytest.mark.parametrize("alone", ["answered, others time out", "times out", "not yet answered"])
def test_a_sweep_that_times_out_where_single_reads_do_as_well_is_soon_tried_again(alone: str) -> None:
    """A replica that hangs lets both time out: its sweeps cost nothing more for that once it is back."""
    swept = Swept()
    swept.timing_out = alone == "answered, others time out"
    swept.sweeping.pump(swept.one.now)
    for pause in (2, 4, 8, 16, 32, 60, 60):
        if alone == "answered, others time out":
            swept.answer_beside()
        elif alone == "times out" and len(swept.log.submitted) > 1:
            swept.tell(ReadFailed(swept.log.submitted[0], ReadTimedOut("it timed out"), 0))
        swept.tell(ReadFailed(swept.log.submitted[-1], ReadTimedOut("it timed out"), 0))
        for _ in range(2):
            swept.read_on(pause / 2 - 0.2)
            assert not swept.log.submitted
        swept.read_on(0.5)
        assert swept.log.submitted
    swept.answer_beside()
    swept.answer()
    assert swept.awake == 0


def test_a_sweep_that_is_refused_says_nothing_of_its_price_and_is_soon_tried_again() -> None:
    swept = Swept()
    swept.sweeping.pump(swept.one.now)
    swept.answer()
    for pause in (2, 4, 8, 16, 32, 60, 60):
        swept.later(2.0)
        swept.tell(ReadFailed(swept.log.submitted[0], RetriableSourceError("Unavailable"), 0))
        assert set(swept.one.reads()) == set(STREAMS), "others may be answered"
        swept.one.planner.aborted()
        for _ in range(2):
            swept.read_on(pause / 2 - 0.2)
            assert not swept.log.submitted
        swept.read_on(0.5)
        assert swept.log.submitted
    swept.answer()
    swept.later(2.0)
    swept.tell(ReadFailed(swept.log.submitted[0], RetriableSourceError("Unavailable"), 0))
    swept.read_on(2.0)
    swept.read_on(0.5)
    assert swept.log.submitted


MANY = [stream(place) for place in range(1, 129)]


def test_what_is_refused_is_asked_for_in_parts_and_the_next_sweeps_go_around_it() -> None:
    swept = Swept(MANY)
    swept.sweeping.pump(swept.one.now)
    assert swept.refuse(MANY[40]) == 2 * 7 + 1
    assert set(swept.one.reads()) == {MANY[40]}, "all others were answered"
    for _ in range(3):
        swept.later(2.0)
        assert swept.refuse(MANY[40]) == 2
        assert swept.awake == 1
    swept.one.planner.aborted()
    swept.read_on(1.0)
    swept.later(1.0)
    assert [(each.first, each.last) for each in swept.log.submitted] == [*RING], "a read of it was answered"


def test_where_much_is_refused_reads_of_single_groups_tell_what() -> None:
    gone = MANY[::3]
    swept = Swept(MANY)
    swept.sweeping.pump(swept.one.now)
    assert swept.refuse(*gone) <= 2 * MOST_DIVIDED + 1
    for _ in range(3):
        for first, read in swept.one.reads().items():
            if first not in gone:
                swept.one.planner.finish(read)
        swept.later(1.0)
        swept.refuse(*gone)
    swept.later(1.0)
    arcs = len(swept.log.submitted)
    assert arcs == len(gone), "what lies between them"
    assert swept.refuse(*gone) == arcs
    assert swept.awake == len(gone)


@pytest.mark.parametrize("why", ["slowly", "for another reason"])
def test_nothing_is_asked_for_in_parts_that_would_be_refused_slowly_or_as_well(why: str) -> None:
    swept = Swept(MANY)
    swept.sweeping.pump(swept.one.now)
    swept.clock += DIVIDED_SECONDS if why == "slowly" else 0.0
    error = ReplicasAway("away") if why == "slowly" else RetriableSourceError("too much to do")
    swept.tell(ReadFailed(swept.log.submitted.pop(), error, 0))
    assert not swept.log.submitted
    assert swept.awake == len(MANY)
    swept.later(2.5)
    assert bool(swept.log.submitted) is (why != "slowly"), "nothing is known of single groups: they need not be read"


def test_a_sweep_around_what_is_refused_says_nothing_of_what_a_whole_one_costs() -> None:
    swept = Swept(MANY)
    swept.sweeping.pump(swept.one.now)
    swept.clock += DEAR_SECONDS + 1
    swept.answer()
    swept.later(2.0)
    swept.answer_beside()
    swept.refuse(MANY[40])
    swept.later(2.0)
    assert len(swept.log.submitted) == 3, "two arcs, and a look at one group beside them: the last whole one was slow"
    swept.refuse(MANY[40])
    swept.read_on(3.0)
    assert [(each.first, each.last) for each in swept.log.submitted][1:] == [*RING]
    swept.answer_beside()
    swept.clock += DEAR_SECONDS + 1
    swept.answer()
    swept.later(2.0)
    assert not swept.log.submitted, "the second in a row"


@pytest.mark.parametrize(("budget", "every_ms"), [(40, 3_200), (500, CONFIDENCE + LATE_MS)])
def test_arcs_around_what_is_refused_are_not_dear_and_queries_like_others(budget: int, every_ms: int) -> None:
    """They are as far apart as nothing is later for it, and farther if the budget wants it."""
    gone = MANY[::2]
    swept = Swept(MANY, max_queries_per_second=budget)
    swept.sweeping.pump(swept.one.now)
    swept.refuse(*gone)
    assert swept.sweeping.every_ms == 300
    for _ in range(4):
        for first, read in swept.one.reads().items():
            if first not in gone:
                swept.one.planner.finish(read)
        swept.later(1.0)
        swept.refuse(*gone)
    assert swept.awake == len(gone)
    swept.later(10.0)
    assert len(swept.log.submitted) == len(gone)
    assert swept.sweeping.every_ms == every_ms
    swept.refuse(*gone)
    swept.later(10.0)
    assert swept.log.submitted, "not dear"


def test_a_dear_sweep_counts_and_is_not_tried_again_for_a_while() -> None:
    for seconds, pages in ((DEAR_SECONDS + 1, 1), (0.1, DEAR_PAGES + 1)):
        swept = Swept()
        swept.sweeping.pump(swept.one.now)
        if pages == 1:
            # Once is not enough, nor now and then: perhaps it was this process that was slow.
            for took in (seconds, 0.1, seconds):
                swept.answer_beside()
                swept.clock += took
                swept.answer()
                swept.later(2.0)
                assert swept.log.submitted and not swept.awake
        swept.answer_beside()
        swept.clock += seconds
        for number in range(pages):
            swept.answer(last=number == pages - 1)
        assert {swept.one.at(each) for each in STREAMS} == {swept.one.now - CONFIDENCE}
        swept.later(2.0)
        assert not swept.log.submitted
        assert set(swept.one.reads()) == set(STREAMS)


@pytest.mark.parametrize(("rows", "is_dear"), [(5_000, True), (100, False)])
def test_a_sweep_is_not_dear_for_pages_that_are_to_be_small(rows: int, is_dear: bool) -> None:
    swept = Swept(rows_of_a_page=rows)
    swept.sweeping.pump(swept.one.now)
    for number in range(DEAR_PAGES + 1):
        swept.answer(last=number == DEAR_PAGES)
    swept.later(2.0)
    assert bool(swept.log.submitted) is not is_dear


@pytest.mark.parametrize("alone", ["takes as long", "comes later", "fails"])
def test_where_everything_takes_long_groups_are_not_read_one_by_one(alone: str) -> None:
    """That would take all the more of what there is not enough of."""
    swept = Swept(streams=[stream(place) for place in range(4, 129, 4)])
    swept.sweeping.pump(swept.one.now)
    swept.clock += 2 * DEAR_SECONDS
    swept.answer()
    for _ in range(5):
        swept.later(2.0)
        beside, sweep = swept.log.submitted
        assert beside.first == beside.last and (sweep.first, sweep.last) == RING[0]
        swept.clock += 2 * DEAR_SECONDS
        if alone == "takes as long":
            swept.answer_beside()
        elif alone == "fails":
            swept.tell(ReadFailed(beside, RetriableSourceError("it timed out"), 0))
        swept.answer()
        assert swept.awake == 0
        # What comes of the look behind its sweep says nothing any more.
        swept.tell(PageRead(beside, RawPage((), (), []), 1, True))


def test_of_many_sweeps_some_are_under_way_and_none_is_dear_for_having_waited() -> None:
    """As at a start, where all tables want one."""
    tables = [TableName("ks", f"t{number}") for number in range(3 * AT_ONCE)]
    due = [Sweep(table, frozenset([0]), ((0, 1),), 0, 1, 2, 1, STREAMS[0]) for table in tables]
    asked, told, clock, log = [due], [], [0.0], Requests()
    planner = SimpleNamespace(
        tables=tables,
        sweeps=lambda *_: asked.pop() if asked else [],
        is_sweeping=lambda sweep: sweep is not due[-1],
        swept=lambda sweep, *_: told.append(sweep),
    )
    where = cast(Tables, {table: SimpleNamespace(log=LogTable(*table)) for table in tables})
    sweeping = Sweeping(cast(Any, planner), cast(Any, log), ReadingSettings(), where, lambda: clock[0])
    while len(told) < len(due) - 1:
        sweeping.pump(1_000)
        assert 0 < len(log.submitted) <= AT_ONCE
        assert due[-1] not in [request.group for request in log.submitted]
        clock[0] += DEAR_SECONDS * 0.9
        for request in list(log.submitted):
            sweeping.handle(PageRead(request, RawPage((), (), []), 1, True), 1)
        # Who was taken back while it waited is not begun.
        sweeping.forget_void()
    sweeping.pump(1_000)
    assert told == due[:-1]
    assert not log.submitted
    assert not sweeping._again, "no table is left alone"


def test_pauses_have_a_limit() -> None:
    swept = Swept()
    for _ in range(12):
        swept.later(LONGEST_PAUSE + 1)
        swept.read_on(0.5)
        swept.tell(ReadFailed(swept.log.submitted[0], RetriableSourceError("it timed out"), 0))


def test_few_tables_are_swept_often_many_as_rarely_as_nothing_is_later_for_it() -> None:
    def sweeping(tables: int, **settings: Any) -> Sweeping:
        planner = cast(Any, SimpleNamespace(tables=range(tables)))
        return Sweeping(planner, cast(Any, None), ReadingSettings(**settings), cast(Any, {}))

    def every(tables: int, **settings: Any) -> int:
        return sweeping(tables, **settings).every_ms

    assert every(1) == 1_000
    assert every(1, confidence_ms=500) == 500
    assert every(1, confidence_ms=100) == 300
    assert every(100) == 10_000
    assert every(100, confidence_ms=5_000) == 5_000 + LATE_MS
    assert every(50, confidence_ms=5_000) == 5_000
    assert every(100, confidence_ms=500) == 500 + LATE_MS
    assert every(5_000) == 30_000 + LATE_MS
    assert every(5_000, max_queries_per_second=100) == 100_000, "the budget is the budget"
    assert every(1, minimal_wait_ms=7_000) == 7_000
    assert sweeping(5_000).late_ms == 0
    assert sweeping(5_000, max_queries_per_second=100).late_ms == 100_000 - 30_000 - LATE_MS


def test_who_reads_to_an_end_does_not_wait_for_sweeps() -> None:
    swept = Swept(sweeps=False)
    swept.sweeping.pump(swept.one.now)
    assert not swept.log.submitted
    assert len(swept.one.reads()) == 4
