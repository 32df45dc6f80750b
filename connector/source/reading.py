"""The reading loop's middle: permissions of the planner become queries, pages become batches, batches go to a consumer.

In: a `Planner`, descriptions of its tables, events of the `LogReader`. Out: calls of `Consumer.deliver` with complete
batches, in each stream's order, followed by the planner being told. Owned by one thread; never waits.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast

from connector.changes import Batch, BatchAssembler, LogLayout, layout_of
from connector.errors import PoisonRow, RetriableSourceError, SourceError
from connector.source.connection import Connection
from connector.source.descriptions import DescribedTable
from connector.source.failures import ReadTimedOut
from connector.source.log_reader import LogReader, PageRead, ReadEvent, ReadFailed, ReadRequest
from connector.source.pages import RawPage
from connector.source.retries import Retries
from connector.source.settings import ReadingSettings
from connector.source.windows import WindowWidth
from connector.topology import GroupState, Planner, Read, TableName

log = logging.getLogger(__name__)

# Streams of one vnode lie on the same replicas, so one query for all of them is cheap, as long as they are few.
LARGEST_IN_QUERY = 16

# ScyllaDB refuses longer lists by default (max_partition_key_restrictions_per_query).
LARGEST_IN_LIST = 100

# Least pause between two reads of one group: what idle reading costs against what it adds to latency.
IDLE_PAUSE_MS = 300

# How often reads look whether the description that they wait for has come.
DESCRIBING_SECONDS = 0.05


class Consumer(Protocol):
    """Whoever delivers."""

    def deliver(self, read: Read, batches: Sequence[Batch]) -> int:
        """Called with complete batches, in each stream's order. How many of them, from the first, now count as
        produced: at least one.

        Raises PoisonRow if the first can never be delivered: its group is failed. Any other exception goes through to
        the caller of `Reading.handle`, and none of the batches counts.
        """


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
    """All reads of one process. ``describe`` is called with a table whose description should be read again."""

    def __init__(
        self,
        planner: Planner,
        connection: Connection,
        settings: ReadingSettings,
        sink: Callable[[ReadEvent], None],
        consumer: Consumer,
        describe: Callable[[TableName], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._planner = planner
        self._settings = settings
        self._consumer = consumer
        self._describe = describe
        self._monotonic = monotonic
        self.log = LogReader(connection, settings, sink, monotonic)
        self.retries = Retries(settings)
        self.counters = ReadingCounters()
        self.tables: dict[TableName, DescribedTable] = {}
        self._shapes: dict[TableName, tuple[str, ...]] = {}
        self._described_for: dict[TableName, tuple[str, ...]] = {}
        self._awaiting: set[TableName] = set()
        self._widths: dict[GroupState, WindowWidth] = {}
        self._active: dict[Read, _Active] = {}
        self._delayed: list[tuple[float, int, Read]] = []
        self._order = itertools.count()

    # -- starting reads --------------------------------------------------------------------------------------

    def pump(self, now_ms: int) -> float:
        """Ask the planner for work and start it; seconds until it is worth calling again."""
        now = self._monotonic()
        while self._delayed and self._delayed[0][0] <= now:
            read = heapq.heappop(self._delayed)[2]
            if self._planner.is_current(read):
                self._begin(read, now)
        room = self._settings.max_in_flight - self.log.in_flight - self.log.waiting
        if room > 0:
            for read in self._planner.plan(now_ms, room, self.pause_ms):
                self._begin(read, now)
        wait = self.log.pump()
        pauses = [self.pause_ms / 1000]
        if wait is not None:
            pauses.append(wait)
        if self._delayed:
            pauses.append(max(0.0, self._delayed[0][0] - now))
        return min(pauses)

    @property
    def pause_ms(self) -> int:
        """How long a group rests between reads: more groups than the query budget can serve rest longer."""
        budget = 1000 * self._groups / self._settings.max_queries_per_second
        return round(max(IDLE_PAUSE_MS, self._settings.minimal_wait_ms, budget))

    @property
    def _groups(self) -> int:
        planner = self._planner
        return sum(len(plan.lineage.groups(slot)) for plan in planner.tables.values() for slot in plan.active)

    def _begin(self, read: Read, now: float) -> None:
        retrying = self.retries.groups.get(read.state)
        if read.table in self._awaiting:
            # A row must not be read with a description that is older than its columns.
            heapq.heappush(self._delayed, (now + DESCRIBING_SECONDS, next(self._order), read))
        elif retrying is not None and retrying.not_before > now:
            heapq.heappush(self._delayed, (retrying.not_before, next(self._order), read))
        else:
            self._start(read)

    def _start(self, read: Read) -> None:
        width = self._widths.get(read.state)
        upper = read.limit if width is None else width.upper(read.read_to, read.limit)
        width_of_query = LARGEST_IN_LIST if self._together(read) else 1
        parts = [read.streams[at : at + width_of_query] for at in range(0, len(read.streams), width_of_query)]
        self._active[read] = _Active(read, upper, len(parts), len(parts))
        for streams in parts:
            self.log.submit(
                ReadRequest(
                    group=read,
                    table=self.tables[read.table].log,
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
        """Take in what the log reader says. Exceptions of the consumer go through; then call `interrupt_all`."""
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
            layout = self._layout(active, page)
            if layout is None:
                return
        active.pages += 1
        active.rows += len(page.rows)
        self.counters.pages += 1
        self.counters.rows += len(page.rows)
        if layout is not None:
            self._deliver(active, active.assembler.feed(layout, page.rows))
        if event.last and self._planner.is_current(read):
            active.outstanding -= 1
            if not active.outstanding:
                # A window's end never divides a time: what is still open is complete.
                self._deliver(active, active.assembler.finish())
                self._end(active)

    def _deliver(self, active: _Active, batches: Sequence[Batch]) -> None:
        read = active.read
        while batches and self._planner.is_current(read):
            count = self._consumer.deliver(read, batches)
            self.counters.batches += count
            # After, never before: a commit that came in between would promise what was not produced.
            newest = {batch.stream_id: batch.time for batch in batches[:count]}
            for stream in newest:
                self._planner.advance(read, stream, newest[stream])
            batches = batches[count:]

    def _end(self, active: _Active) -> None:
        read = active.read
        if not self._planner.is_current(read):
            return
        del self._active[read]
        self.retries.succeeded(read.state)
        self._learn_width(active)
        self._planner.finish(read, active.upper_ms)

    def _learn_width(self, active: _Active) -> None:
        state = active.read.state
        if active.pages > active.queries or state in self._widths:
            width = self._widths.setdefault(state, WindowWidth(self._settings.window_ms))
            width.finished(active.pages - active.queries + 1, active.rows)
            if width.cap_ms is None:
                del self._widths[state]

    def _layout(self, active: _Active, page: RawPage) -> LogLayout | None:
        """How to read the page's rows; None if the read was broken off to look at the table again first."""
        table = active.read.table
        described = self.tables[table]
        shape = page.shape
        if table in self._awaiting:
            # Another read found the columns changed; this page may hold what only the new description knows.
            self._again(active, shape)
            return None
        if self._shapes.setdefault(table, shape) != shape and self._described_for.get(table) != shape:
            self._again(active, shape)
            return None
        try:
            layout = layout_of(described.description, page.signature)
        except RetriableSourceError as error:
            self._described_for.pop(table, None)
            self._again(active, shape)
            log.debug("%s: %s", table, error)
            return None
        if layout.unknown and self._described_for.get(table) != shape:
            self._again(active, shape)
            return None
        return layout

    def _again(self, active: _Active, shape: tuple[str, ...]) -> None:
        """The log's columns changed: read the description anew, then this read again from where it stood."""
        read = active.read
        log.info("the columns of %s changed", read.table)
        self._shapes[read.table] = shape
        self._described_for[read.table] = shape
        self._drop(active)
        self.retries.failed(read.state, RetriableSourceError("the table's columns changed"), self._monotonic())
        self._planner.interrupt(read)
        self._awaiting.add(read.table)
        self._describe(read.table)

    def _failed(self, active: _Active, error: SourceError) -> None:
        read = active.read
        retrying = self.retries.failed(read.state, error, self._monotonic())
        if isinstance(error, ReadTimedOut):
            width = self._widths.setdefault(read.state, WindowWidth(self._settings.window_ms))
            width.timed_out(active.upper_ms - read.read_to)
        if self.retries.hopeless(retrying):
            self._fail(active, str(error))
            return
        log.log(
            logging.WARNING if retrying.attempts in (1, 10) else logging.DEBUG,
            "%s, slot %d: %s; attempt %d follows",
            read.table,
            read.slot,
            error,
            retrying.attempts + 1,
        )
        self._drop(active)
        self._planner.interrupt(read)

    def _fail(self, active: _Active, reason: str) -> None:
        read = active.read
        log.error("%s, slot %d: FAILED: %s", read.table, read.slot, reason)
        self._drop(active)
        self._planner.fail(read, reason)

    def _drop(self, active: _Active) -> None:
        self._active.pop(active.read, None)
        self.log.cancel(active.read)

    # -- interruptions ---------------------------------------------------------------------------------------

    def forget_void(self) -> None:
        """After an abort, a release or a claim: drop the reads that the planner has taken back."""
        for active in list(self._active.values()):
            if not self._planner.is_current(active.read):
                self._drop(active)
        self._delayed = [each for each in self._delayed if self._planner.is_current(each[2])]
        heapq.heapify(self._delayed)

    def interrupt(self, read: Read) -> None:
        """Break one read off; it will be planned again from where it stands."""
        active = self._active.get(read)
        if active is not None:
            self._drop(active)
        self._planner.interrupt(read)

    def described(self, table: TableName, found: DescribedTable | None) -> None:
        """A description was just read; None: nothing is new, or it could not be read."""
        self._awaiting.discard(table)
        if found is not None:
            self.tables[table] = found
