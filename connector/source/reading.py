"""The reading loop's middle: permissions of the planner become queries, pages become batches, batches go to a consumer.

In: the planner's reads, the `Tables`, events of the `LogReader`. Out: calls of `Consumer.deliver` with complete
batches, in each stream's order, followed by the planner being told. Owned by one thread; never waits.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from connector.changes import Batch, BatchAssembler, LogLayout, Row, UncutBatches, UncutRows, newest_of
from connector.errors import CdcError, PoisonRow, RetriableSourceError, SourceError
from connector.source.ahead import ReadAhead, Window
from connector.source.background import Background
from connector.source.connection import Connection
from connector.source.consumer import Consumer, Onlooker, Postponed
from connector.source.failures import ReadTimedOut
from connector.source.lagging import OlderSchema
from connector.source.log_reader import LogReader, PageRead, ReadEvent, ReadFailed, SweepRequest
from connector.source.places import Places
from connector.source.retries import GivenUp, Retries
from connector.source.settings import ReadingSettings
from connector.source.sweeping import LATE_MS, Sweeping
from connector.source.tables import Tables
from connector.source.windows import FLOOD_PAGES, Widths
from connector.topology import GroupState, Read, ReadsPlan

log = logging.getLogger(__name__)

# Streams of one vnode lie on the same replicas, so one query for all of them is cheap, as long as they are few.
LARGEST_IN_QUERY = 16

# ScyllaDB refuses longer lists by default (max_partition_key_restrictions_per_query).
LARGEST_IN_LIST = 100

# Least pause between two reads of one group: what idle reading costs against what it adds to latency.
IDLE_PAUSE_MS = 300

# How often the groups that are read are counted, and those looked through that are tried again.
COUNTING_SECONDS = 0.5

# How often reads look whether the description that they wait for has come.
DESCRIBING_SECONDS = 0.05


@dataclass(slots=True)
class _Active:
    """A permission that is being used, for one window: one query, or several. ``batches``: that were delivered."""

    read: Read
    window: Window
    outstanding: int
    assembler: BatchAssembler = field(default_factory=BatchAssembler)
    pages: int = 0
    rows: int = 0
    batches: int = 0


@dataclass(slots=True)
class ReadingCounters:
    """What `status` and metrics show of reading."""

    rows: int = 0
    bytes: int = 0
    pages: int = 0
    reads: int = 0
    batches: int = 0


class Reading:
    """All reads of one process."""

    def __init__(
        self,
        *,
        planner: ReadsPlan,
        connection: Connection,
        settings: ReadingSettings,
        sink: Callable[[ReadEvent], None],
        consumer: Consumer,
        tables: Tables,
        background: Background,
        onlooker: Onlooker | None = None,
        takes_uncut: Callable[[LogLayout], bool] | None = None,
    ) -> None:
        """``takes_uncut``: whether the consumer has a use for batches of a layout that nobody has cut."""
        self._planner = planner
        self._onlooker = onlooker
        self._takes_uncut = takes_uncut
        self._settings = settings
        self._sink = sink
        self._consumer = consumer
        self._tables = tables
        self.log = LogReader(connection, settings, sink)
        self.retries = Retries(settings, background)
        page = connection.settings.fetch_size
        self.sweeping = Sweeping(
            planner, self.log, settings, tables, times_out=self.retries.time_out, rows_of_a_page=page
        )
        self._settled_due = 0.0
        self.counters = ReadingCounters()
        self._voids = planner.voids
        self._given_up = GivenUp()
        self._widths = Widths(settings.window_ms, page)
        self._active: dict[Window, _Active] = {}
        self.ahead = ReadAhead(self.log, self._widths, settings)
        self._delayed: list[tuple[float, int, Read]] = []
        self._places = Places()
        self._order = itertools.count()
        self._counted = (float("-inf"), 0)
        self._claimed = False

    # -- starting reads --------------------------------------------------------------------------------------

    def pump(self, now_ms: int) -> float:
        """Ask the planner for work and start it; seconds until it is worth calling again."""
        self.forget_void()
        now = time.monotonic()
        if self._settled_due <= now:
            self._settled_due = now + COUNTING_SECONDS
            self.retries.forget_settled(self._planner.tables)
            self._widths.forget_drained()
        self._try_again(now)
        self._hurry(self.retries.back(now), now)
        busy = ((active.read.table, active.outstanding) for active in self._active.values())
        queries = itertools.chain(busy, self.ahead.queries())
        self._places.count(self._room, queries, alone=len(self._planner.tables) == 1)
        for read in self._places.waited():
            self._begin(read, now)
        while self._delayed and self._delayed[0][0] <= now:
            self._begin(heapq.heappop(self._delayed)[2], now)
        # Sweeps first: what they take in is not read.
        self.sweeping.pump(now_ms)
        while self._room > 0 and (reads := self._planner.plan(now_ms, self._room, self.pause_ms)):
            for read in reads:
                self._begin(read, now)
        self._read_ahead()
        wait = self.log.pump()
        if wait is None and self.log.waiting:
            # Memory is full, or all places are taken: what has its turn goes first.
            self.ahead.clear()
        pauses = [self.pause_ms / 1000]
        if wait is not None:
            pauses.append(wait)
        if self._delayed:
            pauses.append(max(0.0, self._delayed[0][0] - now))
        return min(pauses)

    def try_again(self) -> None:
        """Whatever is FAILED, in the next round instead of when its time has come."""
        self._given_up.hurry(time.monotonic())

    def go_on(self) -> None:
        """What is postponed, in the next round: what it waits for may be over."""
        now = time.monotonic()
        self._hurry(self.retries.go_on(now), now)

    def _hurry(self, hurried: Collection[GroupState], now: float) -> None:
        if not hurried:
            return
        self._delayed = [(now if read.state in hurried else at, order, read) for at, order, read in self._delayed]
        heapq.heapify(self._delayed)

    def _try_again(self, now: float) -> None:
        due = self._given_up.due(now)
        if due:
            self._consumer.forgive()
        for read in due:
            if self._planner.try_again(read):
                log.info("%s, slot %d: trying again what is FAILED", read.table, read.slot)
                self.retries.over(read.state)
            else:
                self._given_up.forget(read.state)

    @property
    def pause_ms(self) -> int:
        """How long a group rests between reads: more groups than the query budget can serve rest longer."""
        return round(max(IDLE_PAUSE_MS, self._settings.minimal_wait_ms, self._within_budget))

    @property
    def quiet(self) -> bool:
        """All groups that can be ours are, and are silent, as far as anybody knows."""
        return not self._active and not self._groups and self._claimed

    @property
    def late_ms(self) -> int:
        """By how much the budget of queries makes changes later than they would be with a larger one."""
        return max(self.sweeping.late_ms, round(self._within_budget) - LATE_MS, 0)

    @property
    def _within_budget(self) -> float:
        return 1000 * self._groups / self._settings.max_queries_per_second

    @property
    def _groups(self) -> int:
        """Those that are read over and over, counted every so often; not the silent ones, nor those that have ended."""
        now = time.monotonic()
        if not self._counted[0] <= now < self._counted[0] + COUNTING_SECONDS:
            plans, owned = self._planner.tables.values(), len(self._planner.owned)
            self._counted = (now, sum(plan.awake for plan in plans))
            self._claimed = all(len(plan.active) == owned for plan in plans)
        return self._counted[1]

    def _begin(self, read: Read, now: float) -> None:
        retrying = self.retries.groups.get(read.state)
        if not self._planner.is_current(read):
            return
        if self._tables.stopped(read.table) or not self._tables.knows(read.table, read.limit):
            heapq.heappush(self._delayed, (now + DESCRIBING_SECONDS, next(self._order), read))
        elif retrying is not None and retrying.not_before > now:
            heapq.heappush(self._delayed, (retrying.not_before, next(self._order), read))
        elif self._places.admits(read):
            self._start(read)

    @property
    def _room(self) -> int:
        return self._settings.max_in_flight - self.log.in_flight - self.log.waiting

    def _start(self, read: Read) -> None:
        self.counters.reads += 1
        window = self.ahead.take(read)
        if window is not None:
            self._active[window] = _Active(read, window, len(window.parts))
            # By the way that all events come, behind those that are on it.
            for event in window.came:
                self._sink(event)
            return
        upper = self._widths.upper(read.state, read.read_to, read.limit)
        width_of_query = LARGEST_IN_LIST if self._together(read) else 1
        parts = [read.streams[at : at + width_of_query] for at in range(0, len(read.streams), width_of_query)]
        window = Window(read.table, read.state, read.streams, read.read_to, upper, parts)
        self._active[window] = _Active(read, window, len(parts))
        self._ask(window, read.after)

    def _ask(self, window: Window, after: bytes | None = None) -> None:
        self._places.take(window.table, len(window.parts))
        for request in window.requests(self._tables[window.table].log, after):
            self.log.submit(request)

    def _read_ahead(self) -> None:
        """More windows of groups with much to read, where nobody else wants the places."""
        if self._room <= 0 or self.log.waiting:
            return
        self.ahead.forget_unread()
        for active in list(self._active.values()):
            while self._room > 0 and self._places.has_room(active.read.table):
                window = self.ahead.next(active.window, active.read, self.pause_ms)
                if window is None:
                    break
                self._ask(window)

    def _together(self, read: Read) -> bool:
        if self._settings.in_query is None:
            return len(read.streams) <= LARGEST_IN_QUERY
        return self._settings.in_query

    # -- answers ---------------------------------------------------------------------------------------------

    def handle(self, event: ReadEvent) -> None:
        """Take in what the log reader says. Exceptions of the consumer go through; take back what was produced."""
        if isinstance(event.request, SweepRequest):
            try:
                self.sweeping.handle(event, self.pause_ms)
                if isinstance(event, ReadFailed) or event.page.rows:
                    self._counted = (float("-inf"), 0)  # somebody is awake now
            finally:
                self.log.consumed(event)
            return
        window = cast(Window, event.request.group)
        active = self._active.get(window)
        if active is None and self.ahead.keep(window, event):
            return
        if active is None or not self._planner.is_current(active.read):
            # An abort, a revocation or a new claim came in between: these rows belong to nobody any more.
            self.log.consumed(event)
            if active is not None:
                self._drop(active)
            return
        if window.came:
            if event is not window.came[0]:
                # What came before the window's turn is still on its way.
                window.came.append(event)
                self._sink(event)
                return
            window.came.popleft()
        try:
            if isinstance(event, ReadFailed):
                self._failed(active, event.error)
            else:
                self._page(active, event)
        except PoisonRow as poison:
            self._fail(active, str(poison))
        finally:
            self.log.consumed(event)

    def _page(self, active: _Active, event: PageRead) -> None:
        page, read = event.page, active.read
        layout = None
        if page.rows:
            try:
                layout = self._tables.layout(read.table, page)
            except OlderSchema as error:
                self.log.avoid(page.node)
                self._failed(active, error)
                return
            if layout is None:
                self._again(active)
                return
        active.pages += 1
        active.rows += len(page.rows)
        self.counters.pages += 1
        self.counters.rows += len(page.rows)
        if layout is not None:
            for batches in self._batches(active.assembler, layout, page.rows):
                self._deliver(active, batches)
                if not self._planner.is_current(read):
                    return
        if event.last and self._planner.is_current(read):
            active.outstanding -= 1
            if not active.outstanding:
                # A window's end never divides a time: what is still open is complete.
                self._deliver(active, active.assembler.finish())
                self._end(active)
        elif active.pages >= FLOOD_PAGES:
            self._break_off(active)

    def _batches(self, assembler: BatchAssembler, layout: LogLayout, rows: Sequence[Row]) -> Iterator[Sequence[Batch]]:
        """The batches that a page's rows complete, in their order: those within an uncut page stay uncut."""
        if not (isinstance(rows, UncutRows) and self._takes_uncut is not None and self._takes_uncut(layout)):
            yield assembler.feed(layout, rows)
            return
        first = 0
        while assembler.unfinished and first < rows.batches:
            yield assembler.feed(layout, rows[rows.firsts[first] : rows.firsts[first + 1]])
            first += 1
        if first < rows.batches:
            yield UncutBatches(layout, rows, first)
        if rows.complete < len(rows):
            yield assembler.feed(layout, rows[rows.complete :])

    def _deliver(self, active: _Active, batches: Sequence[Batch]) -> None:
        read = active.read
        while batches and self._planner.is_current(read):
            try:
                count = self._consumer.deliver(read, batches)
            except Postponed as error:
                self.postpone(read, error)
                return
            self.counters.batches += count
            active.batches += count
            # After, never before: a commit that came in between would promise what was not produced.
            for stream, time_of_newest in newest_of(batches[:count]).items():
                self._planner.advance(read, stream, time_of_newest)
            if self._onlooker is not None:
                self._onlooker.delivered(read, batches[:count])
            batches = batches[count:]

    def _end(self, active: _Active) -> None:
        read, window = active.read, active.window
        if not self._planner.is_current(read):
            return
        del self._active[window]
        self.retries.over(read.state)
        pages_of_a_query = active.pages - len(window.parts) + 1
        self._widths.finished(read.state, window.upper - window.lower, pages_of_a_query, active.rows)
        self._planner.finish(read, window.upper)

    def _break_off(self, active: _Active) -> None:
        """More is to come than anybody has foreseen: what follows is read in windows, several at once."""
        read = active.read
        # A time that fills all these pages by itself would not come to its end otherwise.
        if len(active.window.parts) > 1 or not active.batches or not self._widths.may_narrow(read.state):
            return
        alone = len(read.streams) == 1
        reached = read.state.position(read.streams[0]).read_to - read.read_to if alone else None
        self._drop(active)
        self._widths.broken_off(read.state, reached, active.pages)
        self._planner.interrupt(read)

    def _again(self, active: _Active) -> None:
        """The log's columns changed: this read is begun again from where it stood, once the table is described."""
        read = active.read
        log.info("the columns of %s changed", read.table)
        self._drop(active)
        self.retries.failed(read, RetriableSourceError("the table's columns changed"), time.monotonic())
        self._planner.interrupt(read)

    def _failed(self, active: _Active, error: SourceError) -> None:
        read = active.read
        retrying = self.retries.failed(read, error, time.monotonic())
        if isinstance(error, ReadTimedOut):
            self._widths.timed_out(read.state, active.window.upper - active.window.lower)
        if self.retries.hopeless(retrying):
            self._fail(active, str(error))
            return
        log.debug("%s, slot %d: %s; attempt %d follows", read.table, read.slot, error, retrying.attempts + 1)
        self.retries.tell(retrying)
        self._drop(active)
        self._planner.interrupt(read)

    def _fail(self, active: _Active, reason: str) -> None:
        read = active.read
        log.error("%s, slot %d: FAILED: %s", read.table, read.slot, reason)
        self._given_up.failed(read, time.monotonic())
        self._drop(active)
        self._planner.fail(read, reason)
        self.retries.over(read.state, worked=False)

    def _drop(self, active: _Active) -> None:
        self._active.pop(active.window, None)
        self.log.cancel(active.window)
        self.ahead.forget(active.read.state)

    # -- interruptions ---------------------------------------------------------------------------------------

    def forget_void(self) -> None:
        """After an abort, a release or a claim: drop the reads that the planner has taken back."""
        if self._voids == self._planner.voids:
            return
        self._voids = self._planner.voids
        self.sweeping.forget_void()
        self.ahead.clear()
        for active in list(self._active.values()):
            if not self._planner.is_current(active.read):
                self._drop(active)
        self._delayed = [each for each in self._delayed if self._planner.is_current(each[2])]
        heapq.heapify(self._delayed)
        self._places.keep(self._planner.is_current)
        self.retries.forget_settled(self._planner.tables)

    def postpone(self, read: Read, error: CdcError) -> None:
        """Nothing of a read can be delivered at present: break it off, and begin it anew after a pause."""
        self.retries.failed(read, error, time.monotonic())
        self.interrupt(read)

    def interrupt(self, read: Read) -> None:
        """Break one read off; it will be planned again from where it stands."""
        active = next((active for active in self._active.values() if active.read is read), None)
        if active is not None:
            self._drop(active)
        self._planner.interrupt(read)
