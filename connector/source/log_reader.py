"""Reading logs: paged queries over one group of streams each, within the limits.

In: `ReadRequest`s and `SweepRequest`s of the owner thread. Out: through ``sink``, which the driver's threads call:
`PageRead` for each page in order, or `ReadFailed`. Up to two pages wait unprocessed per read; the next is asked for
when one is `consumed`.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
import uuid
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from connector.changes import UncutRows
from connector.cql_names import qualified
from connector.errors import RetriableSourceError, SourceError
from connector.source.connection import Connection
from connector.source.failures import translated
from connector.source.limits import TokenBucket
from connector.source.pages import RawPage
from connector.source.routing import aim, release
from connector.source.settings import ReadingSettings
from connector.timeuuid import lowest_uuid
from connector.topology import Sweep, token_of

PAGES_AHEAD = 2

# Of the budget of queries, what looks for late changes may take at most: a new generation makes two for every group.
LOOKS_SHARE = 0.2

# A node that fails, or that says nothing, is not asked again for a stream so soon if there are others: the driver takes
# a minute to call a silent node down.
ELSEWHERE_SECONDS = 30.0

# What pages may take that lie unprocessed in memory, give or take one for each read: beyond it no read is started and
# no page is asked for ahead. A row takes its bytes and, in small rows most of all, the objects that they are in.
BYTES_AHEAD = 64 << 20
BYTES_OF_A_ROW = 800


@dataclass(frozen=True, slots=True)
class LogTable:
    keyspace: str
    name: str

    @property
    def cql(self) -> str:
        return qualified(self.keyspace, self.name)


@dataclass(frozen=True, slots=True, eq=False)
class ReadRequest:
    """Everything in ``streams`` from ``lower_ms`` (or, inside a read, behind ``after``) and before ``upper_ms``.

    ``group`` is what the requests of one read share: the owner recognises by it pages of a read that it no longer
    wants. ``urgency`` orders waiting reads, least first (the position: the most behind goes first).
    """

    group: Hashable
    table: LogTable
    streams: tuple[bytes, ...]
    lower_ms: int
    upper_ms: int
    after: bytes | None = None
    urgency: int = 0

    @property
    def place(self) -> Hashable:
        """Requests of one place go to the same nodes."""
        return self.streams[0]


@dataclass(frozen=True, slots=True, eq=False)
class SweepRequest:
    """The first row from ``lower_ms`` and before ``upper_ms`` of every stream from one token to another, both
    included; of rows only their stream and time."""

    group: Sweep
    table: LogTable
    first: int
    last: int
    lower_ms: int
    upper_ms: int
    urgency: int = 0

    @property
    def place(self) -> Hashable:
        return self.table, self.first


Request = ReadRequest | SweepRequest


@dataclass(frozen=True, slots=True)
class PageRead:
    request: Request
    page: RawPage
    number: int
    last: bool


@dataclass(frozen=True, slots=True)
class ReadFailed:
    request: Request
    error: SourceError
    pages: int


ReadEvent = PageRead | ReadFailed


@dataclass(slots=True)
class _Running:
    """One read under way; shared between the owner and the driver's threads under ``lock``."""

    request: Request
    statement: Any
    lock: threading.Lock = field(default_factory=threading.Lock)
    state: bytes | None = None
    number: int = 0
    unprocessed: int = 0
    asking: bool = False
    ended: bool = False
    retried: bool = False


class LogReader:
    """All reads of one worker. `submit`, `pump`, `consumed` and `cancel` belong to the owner thread."""

    def __init__(
        self,
        connection: Connection,
        settings: ReadingSettings,
        sink: Callable[[ReadEvent], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._sink = sink
        self._clock = clock
        self._bucket = TokenBucket(settings.max_queries_per_second, clock())
        self._for_looks = TokenBucket(settings.max_queries_per_second * LOOKS_SHARE, clock())
        self._waiting: list[tuple[int, int, Request]] = []
        self._running: dict[Request, _Running] = {}
        self._order = itertools.count()
        self._bytes_per_page = 1.0
        self._ahead_lock = threading.Lock()
        # Until when, by place.
        self._elsewhere: dict[Hashable, float] = {}
        self._elsewhere_due = 0.0
        self.bytes_ahead = 0

    def submit(self, request: Request) -> None:
        heapq.heappush(self._waiting, (request.urgency, next(self._order), request))

    def pump(self) -> float | None:
        """Start what the limits allow; seconds until it is worth calling again, None if nothing waits for time."""
        while self._waiting:
            if len(self._running) >= self._room:
                return None
            now = self._clock()
            if not self._bucket.take(now):
                return self._bucket.wait(now)
            self._start(heapq.heappop(self._waiting)[2])
        return None

    def consumed(self, event: ReadEvent) -> None:
        """The owner is done with a page (or a failure): let the next one come, or the read end."""
        if isinstance(event, PageRead):
            self._count(-_memory(event.page))
        running = self._running.get(event.request)
        if isinstance(event, ReadFailed) or event.last:
            self._running.pop(event.request, None)
            return
        if running is not None:
            with running.lock:
                running.unprocessed -= 1
                ask = not running.asking and not running.ended
                running.asking = running.asking or ask
            if ask:
                self._ask(running)

    def cancel(self, group: Hashable) -> None:
        """Forget a group's reads; pages that still arrive are recognised by it and dropped by the owner."""
        self._waiting = [waiting for waiting in self._waiting if waiting[2].group != group]
        heapq.heapify(self._waiting)
        for request, running in list(self._running.items()):
            if request.group == group:
                with running.lock:
                    running.ended = True
                del self._running[request]

    def avoid(self, node: Any) -> None:
        """Others are asked for a while, if there are any."""
        if node is not None:
            self._connection.avoid(node, ELSEWHERE_SECONDS)

    @property
    def may_look(self) -> bool:
        """Whether looks for late changes, which are queries of the log too, may ask one more now."""
        return self._for_looks.wait(self._clock()) <= 0

    def charge_look(self) -> None:
        """Called for every query of a look, in any thread: it is part of the budget and not on top of it."""
        self._for_looks.charge()
        self._bucket.charge()

    @property
    def most_ahead(self) -> int:
        """Reads whose turn has not come that may wait in memory: with pages as full as the last ones, half of it."""
        return int(BYTES_AHEAD / (2 * PAGES_AHEAD * self._bytes_per_page))

    @property
    def _room(self) -> int:
        """Reads that may run at once: each may bring a page as full as the last ones were."""
        free = BYTES_AHEAD - self.bytes_ahead
        return min(self._settings.max_in_flight, max(1, int(free / self._bytes_per_page)))

    def _count(self, size: int) -> None:
        with self._ahead_lock:
            self.bytes_ahead += size
            if size > 0:
                self._bytes_per_page += (size - self._bytes_per_page) * 0.2
            elif size == 0:
                self._bytes_per_page = max(1.0, self._bytes_per_page * 0.98)

    @property
    def in_flight(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    # -- inside ----------------------------------------------------------------------------------------------

    def _start(self, request: Request) -> None:
        try:
            statement = self._statement(request) if isinstance(request, ReadRequest) else self._sweep(request)
        except Exception as error:
            self._sink(ReadFailed(request, translated(error, f"preparing a read of {request.table.cql}"), 0))
            return
        running = _Running(request, statement, asking=True)
        self._running[request] = running
        self._ask(running)

    def _statement(self, request: ReadRequest) -> Any:
        several = len(request.streams) > 1
        which = "IN ?" if several else "= ?"
        # Behind the last batch that was delivered inside a read, else from the first instant of a millisecond.
        lower = ">" if request.after is not None else ">="
        query = (
            f'SELECT * FROM {request.table.cql} WHERE "cdc$stream_id" {which} '
            f'AND "cdc$time" {lower} ? AND "cdc$time" < ? BYPASS CACHE'
        )
        streams = list(request.streams) if several else request.streams[0]
        start = _uuid(request.after or lowest_uuid(request.lower_ms))
        statement = self._connection.statement(query, [streams, start, _uuid(lowest_uuid(request.upper_ms))])
        if self._elsewhere and self._goes_elsewhere(request.place):
            return statement
        # The streams of a group lie together.
        return aim(statement, token_of(request.streams[0]), request.table.keyspace, request.table.name)

    def _goes_elsewhere(self, place: Hashable) -> bool:
        now = self._clock()
        if self._elsewhere_due <= now:
            self._elsewhere_due = now + ELSEWHERE_SECONDS
            # Streams end, and nobody asks for them again. `list`: the driver's threads add to it.
            for old in [place for place, until in list(self._elsewhere.items()) if until <= now]:
                self._elsewhere.pop(old, None)
        return now < self._elsewhere.get(place, 0.0)

    def _sweep(self, request: SweepRequest) -> Any:
        # ScyllaDB cuts the time out of each partition before it looks at a row: nothing is filtered one by one.
        query = (
            f'SELECT "cdc$stream_id", "cdc$time" FROM {request.table.cql} '
            'WHERE token("cdc$stream_id") >= ? AND token("cdc$stream_id") <= ? '
            'AND "cdc$time" >= ? AND "cdc$time" < ? PER PARTITION LIMIT 1 ALLOW FILTERING BYPASS CACHE'
        )
        lower, upper = (_uuid(lowest_uuid(ms)) for ms in (request.lower_ms, request.upper_ms))
        return self._connection.statement(query, [request.first, request.last, lower, upper])

    def _ask(self, running: _Running) -> None:
        self._connection.page_async(
            running.statement,
            lambda page, state: self._arrived(running, page, state),
            lambda error: self._failed(running, error),
            running.state,
        )

    def _arrived(self, running: _Running, page: RawPage, state: bytes | None) -> None:
        with running.lock:
            if running.ended:
                return
            running.number += 1
            running.retried = False
            running.state = state
            running.ended = not state
            running.unprocessed += 1
            self._count(_memory(page))
            ahead = PAGES_AHEAD if self.bytes_ahead < BYTES_AHEAD else 1
            running.asking = ask = not running.ended and running.unprocessed < ahead
            event = PageRead(running.request, page, running.number, last=running.ended)
        self._sink(event)
        if ask:
            self._bucket.charge()
            self._ask(running)

    def _failed(self, running: _Running, error: SourceError) -> None:
        with running.lock:
            if running.ended:
                return
            again = not running.retried and isinstance(error, RetriableSourceError) and running.number > 0
            running.retried = True
            running.ended = not again
            pages = running.number
        self._elsewhere[running.request.place] = self._clock() + ELSEWHERE_SECONDS
        if again:
            release(running.statement)
            # A page in the middle is asked for once more with its own paging state; if that fails too, the owner
            # reads again from the position, since a paging state may be what the server cannot use any more.
            self._ask(running)
        else:
            self._sink(ReadFailed(running.request, error, pages))


def _memory(page: RawPage) -> int:
    if isinstance(page.rows, UncutRows):
        return page.size
    return page.size + BYTES_OF_A_ROW * len(page.rows) if page.rows else 0


def _uuid(raw: bytes) -> uuid.UUID:
    return uuid.UUID(bytes=raw)
