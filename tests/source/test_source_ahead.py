"""A group with much to read: later windows are asked for before their turn, and nobody can tell from what is delivered.

The planner, the reading and the log reader are the product's; answers of the log come in the order that the test wants.
"""

from __future__ import annotations

import itertools
import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from connector.changes import Batch
from connector.errors import RetriableSourceError, SourceError
from connector.source import Background, Connection, ReadEvent, Reading, ReadingSettings, Tables
from connector.source.ahead import Window
from connector.source.consumer import Consumer
from connector.source.log_reader import BYTES_AHEAD, LogTable, ReadRequest
from connector.source.pages import RawPage
from connector.source.windows import WindowWidth
from connector.timeuuid import lowest_uuid, millis_of
from connector.topology import Read
from tests.formats.rows import Log, table
from tests.topology.single import CONFIDENCE, TABLE, WHOLE, Single, stream, tablets

LOG = Log(table({"pk": "int", "v": "int"}))
BEGAN = 9_000
PAGE = 3


class Asked:
    """One page that was asked for, and not given yet."""

    def __init__(self, statement: Any, done: Any, failed: Any, place: bytes | None) -> None:
        self.stream = statement.values[0]
        self.lower, self.upper = (millis_of(each.bytes) for each in statement.values[1:])
        self.behind = millis_of(place) if place else None
        self.done, self.failed = done, failed


class Table:
    """A log of one stream with rows at known times, in place of a connection, and whoever takes its batches."""

    def __init__(self, *times: int, size: int = 1) -> None:
        self.times, self.size = times, size
        self.settings = SimpleNamespace(fetch_size=PAGE)
        self.asked: list[Asked] = []
        self.delivered: list[int] = []
        self.refuse_at: int | None = None

    def statement(self, query: str, values: Any) -> Any:
        # Behind a time that was delivered, which is the first instant of its millisecond.
        exclusive = "> ?" in query
        return SimpleNamespace(values=[values[0], _next(values[1]) if exclusive else values[1], values[2]])

    def page_async(self, statement: Any, done: Any, failed: Any, paging_state: bytes | None = None) -> None:
        self.asked.append(Asked(statement, done, failed, paging_state))

    def answer(self, page: Asked) -> None:
        self.asked.remove(page)
        lower = page.lower if page.behind is None else page.behind + 1
        times = [at for at in self.times if page.stream == WHOLE and lower <= at < page.upper]
        rows = [LOG.row(2, 0, True, uuid.UUID(bytes=lowest_uuid(at)), WHOLE, pk=at) for at in times[:PAGE]]
        more = lowest_uuid(times[PAGE - 1]) if len(times) > PAGE else None
        page.done(RawPage(LOG.layout.columns, (None,) * len(LOG.layout.columns), rows, self.size), more)

    def deliver(self, read: Read, batches: Sequence[Batch]) -> int:
        times = [millis_of(batch.time) for batch in batches]
        if self.refuse_at in times:
            raise RetriableSourceError("the transaction was aborted")
        self.delivered += times
        return len(batches)

    def forgive(self) -> None:
        """Nothing is refused."""


def _next(time: uuid.UUID) -> uuid.UUID:
    return uuid.UUID(bytes=lowest_uuid(millis_of(time.bytes) + 1))


class Hot:
    """One group that is far behind."""

    def __init__(self, *times: int, now: int = 30_000, **settings: Any) -> None:
        size = settings.pop("size", 1)
        self.table = Table(*times, size=size)
        self.one = Single(tablets(BEGAN, WHOLE), now=now)
        self.events: deque[ReadEvent] = deque()
        known: Any = Known({TABLE: SimpleNamespace(log=LogTable("ks", "t_scylla_cdc_log"))})
        self.reading = Reading(
            planner=self.one.planner,
            connection=cast(Connection, self.table),
            settings=ReadingSettings(
                confidence_ms=CONFIDENCE, window_ms=5_000, sweeps=False, retry_base_ms=0, **settings
            ),
            sink=self.events.append,
            consumer=cast(Consumer, self.table),
            tables=cast(Tables, known),
            background=Background(),
        )

    def take(self) -> None:
        while self.events:
            self.reading.handle(self.events.popleft())

    def turn(self) -> None:
        self.take()
        # The budget of queries counts real time.
        self.reading.log._bucket._tokens = 100.0
        self.reading.pump(self.one.now)

    def answer_first(self) -> None:
        """The page of the earliest time, as a server would that is asked for one after the other."""
        self.table.answer(min(self.table.asked, key=lambda page: page.behind or page.lower))
        self.turn()

    def until_ahead(self) -> None:
        for _ in range(40):
            self.turn()
            if self.reading.log.in_flight > 1:
                return
            self.answer_first()
        raise AssertionError("nothing was read ahead")

    def end_the_read(self) -> None:
        """The next one is not planned yet."""
        self.take()
        while self.table.asked and any(state.reading for state in self.one.plan.states()):
            self.table.answer(min(self.table.asked, key=lambda page: page.lower))
            self.take()

    def finish(self) -> None:
        for _ in range(2_000):
            self.turn()
            if not self.table.asked and not self.events:
                return
            while self.table.asked:
                self.answer_first()
        raise AssertionError("it did not come to an end")


class Known(dict[Any, Any]):
    def stopped(self, table: Any) -> bool:
        return False

    def knows(self, table: Any, until_ms: int) -> bool:
        return True

    def layout(self, table: Any, page: Any) -> Any:
        return LOG.layout


TIMES = tuple(range(10_000, 20_000, 50))


def test_several_windows_are_asked_for_at_once_and_delivered_in_order() -> None:
    hot = Hot(*TIMES)
    hot.until_ahead()
    most = 0
    while hot.table.asked:
        most = max(most, len(hot.table.asked))
        # The last first: of every window as much as may lie in memory, before the one whose turn it is.
        for page in sorted(hot.table.asked, key=lambda page: -page.lower):
            hot.table.answer(page)
        hot.turn()
    assert hot.table.delivered == list(TIMES)
    assert most >= 4 and hot.reading.ahead.used > 10
    assert hot.reading.log.bytes_ahead == 0
    assert hot.one.at(WHOLE) > TIMES[-1]


def test_a_page_that_comes_while_a_window_gets_its_turn_waits_for_those_before_it() -> None:
    hot = Hot(*TIMES)
    hot.until_ahead()
    while hot.table.asked:
        for page in sorted(hot.table.asked, key=lambda page: page.lower)[1:]:
            hot.table.answer(page)
        hot.end_the_read()
        # Second pages of later windows are on the queue when the first of these gets its turn.
        for page in list(hot.table.asked):
            hot.table.answer(page)
        hot.reading.pump(hot.one.now)
        hot.turn()
    assert hot.table.delivered == list(TIMES)


def test_slots_that_went_away_leave_nothing_behind() -> None:
    hot = Hot(*TIMES)
    hot.until_ahead()
    while hot.reading.ahead.used == 0:
        for page in sorted(hot.table.asked, key=lambda page: -page.lower):
            hot.table.answer(page)
        hot.turn()
    hot.end_the_read()
    assert hot.reading.log.in_flight
    hot.one.planner.release([0])
    hot.reading.forget_void()
    hot.take()
    assert (hot.reading.log.in_flight, hot.reading.log.bytes_ahead) == (0, 0)


def test_a_window_is_only_for_the_read_that_it_was_read_for() -> None:
    one = Single(tablets(BEGAN, WHOLE), now=30_000)
    [read] = one.reads().values()
    window = Window(TABLE, read.state, read.streams, read.read_to, read.limit, [read.streams])
    assert window.is_for(read)
    other = Single(tablets(BEGAN, WHOLE)).plan.lineage.groups(0)
    for change in (
        {"read_to": read.read_to + 1},
        {"streams": (WHOLE, stream(64))},
        {"after": lowest_uuid(read.read_to)},
        {"limit": read.limit - 1},
        {"state": next(iter(other))},
    ):
        assert not window.is_for(replace(read, **change))


def test_widths_follow_what_windows_held() -> None:
    width = WindowWidth(1_000, page_rows=8)
    assert width.upper(0, 9_999) == 9_999
    width.finished(9_999, 2, 10)
    assert width.cap_ms == 1_000
    width.finished(1_000, 5, 25)
    assert width.cap_ms == 400
    width.finished(400, 2, 10)
    assert width.cap_ms == 400
    width.finished(400, 1, 5)
    assert width.cap_ms == 800
    width.finished(800, 1, 5)
    assert width.cap_ms == 1_000
    width.finished(1_000, 1, 0)
    assert width.cap_ms == 4_000
    width.broken_off(100, 8)
    assert width.cap_ms == 25


def test_windows_that_hold_half_a_page_become_wider_than_configured() -> None:
    width = WindowWidth(1_000, page_rows=8)
    width.broken_off(None, 8)
    for cap_ms in (500, 1_000, 2_000, 4_000):
        width.finished(250, 1, 4)
        assert width.cap_ms == cap_ms
    width.finished(4_000, 1, 5)
    assert width.cap_ms == 4_000
    width.finished(4_000, 2, 9)
    assert width.cap_ms == 1_000


def test_a_server_that_needs_long_for_a_few_rows_is_asked_for_no_more_than_configured() -> None:
    width = WindowWidth(1_000, page_rows=8)
    width.timed_out(2_000)
    for cap_ms in (1_000, 1_000):
        width.finished(500, 1, 1)
        assert width.cap_ms == cap_ms


def test_behind_a_flood_of_a_few_rows_each_windows_end() -> None:
    width = WindowWidth(1_000, page_rows=8)
    width.broken_off(None, 8)
    while width.cap_ms is not None:
        before = width.cap_ms
        width.finished(before, 1, 1)
    assert before == 1_000 * 4**8 // 2 * 2


def test_nothing_is_read_ahead_where_nobody_wants_it() -> None:
    hot = Hot(*TIMES, windows_ahead=0)
    hot.turn()
    while hot.table.asked:
        assert hot.reading.log.in_flight == 1
        hot.answer_first()
    assert hot.table.delivered == list(TIMES)


def is_delivered_again_after_an_abort(hot: Hot) -> None:
    hot.one.planner.commit_entries(hot.one.now)
    hot.one.planner.aborted()
    hot.table.delivered.clear()
    hot.finish()
    assert hot.table.delivered == list(TIMES)
    assert hot.reading.log.bytes_ahead == 0


def test_what_an_abort_takes_back_is_delivered_again_whatever_was_read_ahead() -> None:
    hot = Hot(*TIMES)
    hot.until_ahead()
    for page in sorted(hot.table.asked, key=lambda page: -page.lower):
        hot.table.answer(page)
    is_delivered_again_after_an_abort(hot)


def test_an_exception_of_the_consumer_takes_the_held_pages_back() -> None:
    hot = Hot(*TIMES)
    hot.until_ahead()
    hot.table.refuse_at = TIMES[60]
    with pytest.raises(SourceError, match="aborted"):
        hot.finish()
    hot.table.refuse_at = None
    is_delivered_again_after_an_abort(hot)


def test_nothing_behind_the_end_of_a_stream_is_delivered_that_was_read_before_it_was_known() -> None:
    hot = Hot(*TIMES)
    hot.until_ahead()
    ahead = [page for page in hot.table.asked if page.lower > hot.table.delivered[-1]]
    closed = ahead[1].lower + 1
    for page in ahead:
        hot.table.answer(page)
    hot.turn()
    hot.one.poll(tablets(closed, stream(64), stream(128, 2)))
    hot.finish()
    assert hot.table.delivered == [at for at in TIMES if at < closed]


def test_a_window_that_fails_before_its_turn_is_read_in_its_turn() -> None:
    hot = Hot(*TIMES)
    hot.until_ahead()
    last = max(hot.table.asked, key=lambda page: page.lower)
    hot.table.asked.remove(last)
    last.failed(RetriableSourceError("it timed out"))
    hot.turn()
    assert hot.reading.log.in_flight == 1, "for a while, it is read in turn only"
    hot.finish()
    assert hot.table.delivered == list(TIMES)
    assert hot.reading.retries.total == 0


def test_a_full_memory_leaves_no_room_to_read_ahead() -> None:
    hot = Hot(*TIMES, size=BYTES_AHEAD // 2)
    hot.turn()
    running, submit, submitted = [], hot.reading.log.submit, itertools.count()
    hot.reading.log.submit = lambda request: (next(submitted), submit(request))[1]  # type: ignore[method-assign]
    while hot.table.asked:
        hot.answer_first()
        running.append(hot.reading.log.in_flight)
    assert hot.table.delivered == list(TIMES)
    assert max(running) == 1
    assert next(submitted) == hot.reading.counters.reads - 1, "none for nothing"


def test_who_waits_for_a_place_goes_before_what_was_read_ahead() -> None:
    hot = Hot(*TIMES)
    hot.until_ahead()
    log = hot.reading.log
    for page in sorted(hot.table.asked, key=lambda page: -page.lower)[:-1]:
        hot.table.answer(page)
    hot.turn()
    assert log.in_flight > 1 and log.bytes_ahead
    log.bytes_ahead += 2 * BYTES_AHEAD
    log.submit(ReadRequest("other", LogTable("ks", "t"), (stream(64),), 0, 1))
    hot.turn()
    assert log.in_flight == 1, "the window whose turn it is"


def test_a_time_that_fills_many_pages_is_read_to_its_end() -> None:
    """Broken off inside, it would be begun again and again."""

    class OneTime(Table):
        rows, pages = 100, 0

        def answer(self, page: Asked) -> None:
            self.asked.remove(page)
            OneTime.pages += 1
            at = page.behind or 0
            here = list(range(at, self.rows))[:PAGE] if page.lower <= 12_000 < page.upper else []
            time = uuid.UUID(bytes=lowest_uuid(12_000))
            rows = [LOG.row(2, number, number == self.rows - 1, time, WHOLE, pk=number) for number in here]
            more = lowest_uuid(here[-1] + 1) if here and here[-1] + 1 < self.rows else None
            page.done(RawPage(LOG.layout.columns, (None,) * len(LOG.layout.columns), rows, 1), more)

    hot = Hot()
    hot.table.__class__ = OneTime
    hot.finish()
    assert hot.table.delivered == [12_000]
    assert OneTime.pages == 34


@pytest.mark.parametrize("gap", [1, 7, 200, 3_000])
def test_windows_become_as_narrow_as_a_few_pages_and_wide_again(gap: int) -> None:
    """However dense the rows are, and whatever the order of answers."""
    times = [*range(10_000, 10_400), *range(11_000, 25_000, gap)]
    hot = Hot(*times)
    order = itertools.cycle([0, -1, 1])
    for _ in range(40_000):
        hot.turn()
        if not hot.table.asked and not hot.events:
            break
        pages = sorted(hot.table.asked, key=lambda page: page.lower)
        if pages:
            hot.table.answer(pages[next(order) % len(pages)])
    assert hot.table.delivered == times


def test_a_row_now_and_then_behind_a_flood_does_not_cost_a_read_per_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.PAGE", 20)
    hot = Hot(*range(10_000, 12_000, 5), *range(20_000, 4_000_000, 2_000), now=4_000_000)
    hot.finish()
    assert hot.table.delivered == list(hot.table.times)
    # Windows as configured hold two or three of these rows each; they need not hold more than half a page.
    assert hot.reading.counters.reads < len(hot.table.times) / 5
