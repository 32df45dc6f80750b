"""The reading loop's middle: permissions of the planner become queries, pages become batches, batches go to a consumer.

In: the planner's reads, the `Tables`, events of the `LogReader`. Out: calls of `Consumer.deliver` with complete
batches, in each stream's order, followed by the planner being told. Owned by one thread; never waits.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast

from connector.changes import Batch, BatchAssembler, LogLayout, Row, UncutBatches, UncutRows, newest_of
from connector.errors import CdcError, PoisonRow, RetriableSourceError, SourceError
from connector.source.background import Background
from connector.source.connection import Connection
from connector.source.failures import ReadTimedOut
from connector.source.log_reader import LogReader, PageRead, ReadEvent, ReadFailed, ReadRequest, SweepRequest
from connector.source.places import Places
from connector.source.retries import GivenUp, Retries
from connector.source.settings import ReadingSettings
from connector.source.sweeping import Sweeping
from connector.source.tables import Tables
from connector.source.windows import WindowWidth
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


class Postponed(CdcError):
    """Nothing of a read can be delivered at present: it is begun anew after a pause, and others go on."""


class Consumer(Protocol):
    """Whoever delivers."""

    def deliver(self, read: Read, batches: Sequence[Batch]) -> int:
        """Called with complete batches, in each stream's order. How many of them, from the first, now count as
        produced: at least one.

        Raises Postponed, or PoisonRow if the first cannot be delivered unless somebody mends what is wrong: its group
        is FAILED, and tried again much later. Any other exception goes through to the caller of `Reading.handle`, and
        none of the batches counts.
        """

    def forgive(self) -> None:
        """FAILED groups are tried again: what made them fail may be mended."""


class Onlooker(Protocol):
    """Whoever has to know every change that is delivered."""

    def delivered(self, read: Read, batches: Sequence[Batch]) -> None:
        """These now count as produced."""


@dataclass(slots=True)
class _Active:
    """A permission that is being used: one query, or one per stream."""

    read: Read
    upper_ms: int
    queries: int
    outstanding: int
    assembler: BatchAssembler = field(default_factory=BatchAssembler)
    pages: int = 0
    rows: int = 0


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
        self._consumer = consumer
        self._tables = tables
        self.log = LogReader(connection, settings, sink)
        self.sweeping = Sweeping(planner, self.log, settings, tables)
        self.retries = Retries(settings, background)
        self._settled_due = 0.0
        self.counters = ReadingCounters()
        self._voids = planner.voids
        self._given_up = GivenUp()
        self._widths: dict[GroupState, WindowWidth] = {}
        self._active: dict[Read, _Active] = {}
        self._delayed: list[tuple[float, int, Read]] = []
        self._places = Places(alone=len(planner.tables) == 1)
        self._order = itertools.count()
        self._counted = (float("-inf"), 0)

    # -- starting reads --------------------------------------------------------------------------------------

    def pump(self, now_ms: int) -> float:
        """Ask the planner for work and start it; seconds until it is worth calling again."""
        self.forget_void()
        now = time.monotonic()
        if self._settled_due <= now:
            self._settled_due = now + COUNTING_SECONDS
            self.retries.forget_settled(self._planner.tables)
            self._widths = {state: width for state, width in self._widths.items() if not state.drained}
        self._try_again(now)
        self._places.count(self._room, ((active.read.table, active.outstanding) for active in self._active.values()))
        for read in self._places.waited():
            self._begin(read, now)
        while self._delayed and self._delayed[0][0] <= now:
            self._begin(heapq.heappop(self._delayed)[2], now)
        # Sweeps first: what they take in is not read.
        self.sweeping.pump(now_ms)
        while self._room > 0 and (reads := self._planner.plan(now_ms, self._room, self.pause_ms)):
            for read in reads:
                self._begin(read, now)
        wait = self.log.pump()
        pauses = [self.pause_ms / 1000]
        if wait is not None:
            pauses.append(wait)
        if self._delayed:
            pauses.append(max(0.0, self._delayed[0][0] - now))
        return min(pauses)

    def try_again(self) -> None:
        """Whatever is FAILED, in the next round instead of when its time has come."""
        self._given_up.hurry(time.monotonic())

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
        budget = 1000 * self._groups / self._settings.max_queries_per_second
        return round(max(IDLE_PAUSE_MS, self._settings.minimal_wait_ms, budget))

    @property
    def _groups(self) -> int:
        """Those that are read over and over, counted every so often; not the silent ones, nor those that have ended."""
        now = time.monotonic()
        if not self._counted[0] <= now < self._counted[0] + COUNTING_SECONDS:
            self._counted = (now, sum(plan.awake for plan in self._planner.tables.values()))
        return self._counted[1]

    def _begin(self, read: Read, now: float) -> None:
        retrying = self.retries.groups.get(read.state)
        if not self._planner.is_current(read):
            return
        if self._tables.stopped(read.table):
            heapq.heappush(self._delayed, (now + DESCRIBING_SECONDS, next(self._order), read))
        elif retrying is not None and retrying.not_before > now:
            heapq.heappush(self._delayed, (retrying.not_before, next(self._order), read))
        elif self._places.admits(read):
            self._start(read)

    @property
    def _room(self) -> int:
        return self._settings.max_in_flight - self.log.in_flight - self.log.waiting

    def _start(self, read: Read) -> None:
        width = self._widths.get(read.state)
        upper = read.limit if width is None else width.upper(read.read_to, read.limit)
        width_of_query = LARGEST_IN_LIST if self._together(read) else 1
        parts = [read.streams[at : at + width_of_query] for at in range(0, len(read.streams), width_of_query)]
        self._active[read] = _Active(read, upper, len(parts), len(parts))
        self._places.take(read.table, len(parts))
        for streams in parts:
            self.log.submit(
                ReadRequest(
                    group=read,
                    table=self._tables[read.table].log,
                    streams=streams,
                    lower_ms=read.read_to,
                    upper_ms=upper,
                    after=read.after,
                    urgency=read.read_to,
                )
            )
        self.counters.reads += 1

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
            finally:
                self.log.consumed(event)
            return
        active = self._active.get(cast(Read, event.request.group))
        if active is None or not self._planner.is_current(active.read):
            # An abort, a revocation or a new claim came in between: these rows belong to nobody any more.
            self.log.consumed(event)
            if active is not None:
                self._drop(active)
            return
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
            layout = self._tables.layout(read.table, page)
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
            # After, never before: a commit that came in between would promise what was not produced.
            for stream, time_of_newest in newest_of(batches[:count]).items():
                self._planner.advance(read, stream, time_of_newest)
            if self._onlooker is not None:
                self._onlooker.delivered(read, batches[:count])
            batches = batches[count:]

    def _end(self, active: _Active) -> None:
        read = active.read
        if not self._planner.is_current(read):
            return
        del self._active[read]
        self.retries.over(read.state)
        self._learn_width(active)
        self._planner.finish(read, active.upper_ms)

    def _learn_width(self, active: _Active) -> None:
        state = active.read.state
        if active.pages > active.queries or state in self._widths:
            width = self._widths.setdefault(state, WindowWidth(self._settings.window_ms))
            width.finished(active.pages - active.queries + 1, active.rows)
            if width.cap_ms is None:
                del self._widths[state]

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
            width = self._widths.setdefault(read.state, WindowWidth(self._settings.window_ms))
            width.timed_out(active.upper_ms - read.read_to)
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
        self._active.pop(active.read, None)
        self.log.cancel(active.read)

    # -- interruptions ---------------------------------------------------------------------------------------

    def forget_void(self) -> None:
        """After an abort, a release or a claim: drop the reads that the planner has taken back."""
        if self._voids == self._planner.voids:
            return
        self._voids = self._planner.voids
        self.sweeping.forget_void()
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
        active = self._active.get(read)
        if active is not None:
            self._drop(active)
        self._planner.interrupt(read)
