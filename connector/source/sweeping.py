"""Sweeps of logs: one query that tells which of a table's many silent streams have rows, and that all others have none.

In: the planner's sweeps, pages of the `LogReader`. Out: the planner is told of the first row of each stream that has
one, and which parts of a sweep did not get through. Owned by one thread; never waits.

A sweep passes by every partition of a log. Where a log holds much of the last hours in many files, that can cost the
server more than reading the groups one by one: what takes long for that reason, or does not end, is not tried again for
a while. Where this process or the server has no time, everything takes long, and single reads would take all the more
of it; so beside a sweep whose last one was slow, or timed out, a single group is looked at, to tell the two apart. What
times out is dear only where single reads do not: replicas that hang let both time out.

Of a sweep that is refused, as where a replica is away, parts are asked for. Sweeps then go around the groups that
nobody answers for, until reads of those are answered.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from connector.errors import ReplicasAway, RetriableSourceError, SourceError
from connector.pauses import doubled
from connector.source.failures import ReadTimedOut
from connector.source.log_reader import LogReader, PageRead, ReadEvent, ReadFailed, SweepRequest
from connector.source.settings import ReadingSettings
from connector.source.tables import Tables
from connector.table_name import TableName
from connector.timeuuid import millis_of
from connector.topology import ReadsPlan, Sweep, token_of

log = logging.getLogger(__name__)

# A young row is seen by a sweep that follows it by up to this more than the confidence window, and delivered at once.
LATE_MS = 700

# So many sweeps a second are nothing to anybody, as long as no table is swept more often than this. One that goes
# around what is refused counts for as many as its arcs, once nearly all that can be swept is.
USUAL_PER_SECOND = 10
LEAST_MS, MOST_OFTEN_MS = 300, 1_000
NEARLY_ALL = 8

# Of the budget of queries, what sweeps may take at most.
SHARE = 0.5

# So many tables are swept at once: all at once, as at a start, each would take as long as all of them, and seem dear.
AT_ONCE = 8

# A sweep that takes longer is looked at more closely, one of more pages is dear: it finds rows nearly everywhere. Of
# smaller pages than usual, as a configuration may want them of logs, as many more say as little.
DEAR_SECONDS = 5.0
DEAR_PAGES = 64
ROWS_OF_A_PAGE = 5_000

# Of the groups of a table that are read one by one, so many are under way at a time.
SIDE_BY_SIDE = 8

# After a dear sweep the table's groups are read one by one for so long, after the next one for twice as long, up to:
PAUSE_SECONDS = 60.0
LONGEST_PAUSE = 3_600.0

# A sweep that was refused (a node ended, a replica is away or hangs, there is too much to do) says nothing of its cost:
# while groups are read one by one, the cluster is asked a hundred times as much, and that just then.
REFUSED_SECONDS = 2.0
LONGEST_REFUSED = 60.0

# What of one sweep is refused for replicas that are away is asked for in parts so often: one group of a thousand is
# found by ten. Where it is every third one, reads of single groups tell which, and parts would be in vain.
MOST_DIVIDED = 32
# Not where a refusal takes long: all groups wait for the sweep.
DIVIDED_SECONDS = 2.0


@dataclass(slots=True)
class _Active:
    """``beside``: the look at a single group that goes with the sweep; ``alone``: seconds that it took. ``through``:
    arcs that were read to their ends; ``error``: the last one of those that were not."""

    sweep: Sweep
    outstanding: int
    began: float = 0.0
    through: list[tuple[int, int]] = field(default_factory=list)
    divided: int = 0
    error: SourceError | None = None
    pages: int = 0
    found: dict[bytes, int] = field(default_factory=dict)
    beside: Sweep | None = None
    alone: float | None = None


class Sweeping:
    """All sweeps of one process. ``swept`` counts those that got through."""

    def __init__(
        self,
        planner: ReadsPlan,
        log_reader: LogReader,
        settings: ReadingSettings,
        tables: Tables,
        clock: Callable[[], float] = time.monotonic,
        times_out: Callable[[TableName], bool] = lambda _: False,
        rows_of_a_page: int = ROWS_OF_A_PAGE,
    ) -> None:
        """``times_out``: whether single reads of a table do at present."""
        self._planner = planner
        self._log = log_reader
        self._times_out = times_out
        self._dear_pages = DEAR_PAGES * max(1, ROWS_OF_A_PAGE // (rows_of_a_page or ROWS_OF_A_PAGE))
        self._settings = settings
        self._tables = tables
        self._clock = clock
        # Under way, and those that wait for it: their groups are not read meanwhile.
        self._active: dict[Sweep, _Active] = {}
        self._waiting: deque[Sweep] = deque()
        self._beside: dict[Sweep, _Active] = {}
        self._dear: Counter[TableName] = Counter()
        self._refused: Counter[TableName] = Counter()
        # Those whose last sweep was slow, or timed out.
        self._slow: set[TableName] = set()
        self._again: dict[TableName, float] = {}
        # Of how many queries the sweeps are that go around what was refused; and of those, where nearly all was swept.
        self._arcs: dict[TableName, int] = {}
        self._calm: dict[TableName, int] = {}
        self.swept = 0

    @property
    def every_ms(self) -> int:
        """How long it takes until each table is swept again. Few tables are swept often, for the lag that is shown;
        many as rarely as rows are delivered no later for it; and never more often than the budget allows."""
        confidence = self._settings.confidence_ms
        least = max(LEAST_MS, min(MOST_OFTEN_MS, confidence))
        usual = min(max(least, 1000 * self._queries(self._calm) / USUAL_PER_SECOND), confidence + LATE_MS)
        return round(max(usual, self._within_budget, self._settings.minimal_wait_ms))

    @property
    def late_ms(self) -> int:
        """By how much the budget makes the first change after a silence later than sweeps usually do."""
        within = self._within_budget if self._settings.sweeps else 0
        return max(0, round(within - self._settings.confidence_ms - LATE_MS))

    @property
    def _within_budget(self) -> float:
        return 1000 * self._queries(self._arcs) / (self._settings.max_queries_per_second * SHARE)

    def _queries(self, arcs: Mapping[TableName, int]) -> int:
        """Of a sweep of each table."""
        tables = self._planner.tables
        return sum(arcs.get(table, 1) for table in tables) if arcs else len(tables)

    def pump(self, now_ms: int) -> None:
        """Begin what is due."""
        if not self._settings.sweeps:
            return
        now = self._clock()
        for table in [table for table, again in self._again.items() if again <= now]:
            del self._again[table]
        self._waiting.extend(self._planner.sweeps(now_ms, self.every_ms, self._again))
        while self._waiting and len(self._active) < AT_ONCE:
            self._begin(self._waiting.popleft(), now)

    def handle(self, event: ReadEvent, narrowest: int) -> None:
        """Take in what the log reader says of a sweep; ``narrowest``: see `ReadsPlan.swept`."""
        assert isinstance(event.request, SweepRequest)
        sweep = event.request.group
        if sweep in self._beside:
            self._looked_at_one(sweep, event)
            return
        active = self._active.get(sweep)
        if active is None or not self._planner.is_sweeping(sweep):
            self._drop(sweep)
        elif isinstance(event, ReadFailed):
            self._failed(active, event.request, event.error, narrowest)
        else:
            self._page(active, event, narrowest)

    def forget_void(self) -> None:
        """After an abort, a release, a claim or new streams: drop the sweeps that do not stand any more."""
        for sweep in [sweep for sweep in self._active if not self._planner.is_sweeping(sweep)]:
            self._drop(sweep)
        self._waiting = deque(filter(self._planner.is_sweeping, self._waiting))

    # -- inside ----------------------------------------------------------------------------------------------

    def _begin(self, sweep: Sweep, now: float) -> None:
        active = self._active[sweep] = _Active(sweep, len(sweep.arcs), now)
        self._arcs.pop(sweep.table, None)
        self._calm.pop(sweep.table, None)
        if sweep.around:
            self._arcs[sweep.table] = len(sweep.arcs)
            plan = self._planner.tables[sweep.table]
            if (plan.awake - len(plan.refused)) * NEARLY_ALL < plan.groups:
                self._calm[sweep.table] = len(sweep.arcs)
        if sweep.table in self._slow or sweep.table in self._dear:
            token = token_of(sweep.stream)
            active.beside = replace(sweep, arcs=((token, token),), groups=1)
            self._beside[active.beside] = active
            self._ask(active.beside, active.beside.arcs)
        self._ask(sweep, sweep.arcs)

    def _ask(self, sweep: Sweep, arcs: Sequence[tuple[int, int]]) -> None:
        where = self._tables[sweep.table].log
        for first, last in arcs:
            self._log.submit(SweepRequest(sweep, where, first, last, sweep.lower, sweep.upper, sweep.lower))

    def _looked_at_one(self, beside: Sweep, event: ReadEvent) -> None:
        """What it finds is found by the sweep as well; one that fails says nothing for single reads."""
        if isinstance(event, ReadFailed) or event.last:
            active = self._beside.pop(beside)
            active.alone = None if isinstance(event, ReadFailed) else self._clock() - active.began

    def _page(self, active: _Active, event: PageRead, narrowest: int) -> None:
        active.pages += 1
        for stream, at in event.page.rows:
            if stream is not None and at is not None:
                ms = millis_of(at)
                active.found[stream] = min(ms, active.found.get(stream, ms))
        if event.last:
            request = event.request
            assert isinstance(request, SweepRequest)
            active.through.append((request.first, request.last))
            self._ended(active, narrowest)

    def _ended(self, active: _Active, narrowest: int) -> None:
        """One of its arcs was read, or refused for good."""
        active.outstanding -= 1
        if active.outstanding:
            return
        self._drop(active.sweep)
        if active.error is not None:
            if active.through or isinstance(active.error, ReplicasAway):
                self._partly(active, active.error, narrowest)
            else:
                self._given_up(active.sweep, active.error)
            return
        # What was asked for in parts has to be all of it.
        through = active.through if active.divided else None
        self._planner.swept(active.sweep, active.found, narrowest, through)
        self.swept += 1
        table, took = active.sweep.table, self._clock() - active.began
        self._refused.pop(table, None)
        slow = took > max(DEAR_SECONDS, self.every_ms / 4000)
        # A look at one group that takes longer than the sweep, or fails, speaks for the sweep.
        dearer = active.alone is not None and took * SIDE_BY_SIDE > active.alone * active.sweep.groups
        # Of each arc the first page has to be.
        if active.pages - len(active.through) >= self._dear_pages or (slow and dearer):
            self._dearer(table, f"a sweep of its log took {took:.1f} s and {active.pages} pages")
        elif slow:
            self._slow.add(table)
        elif not active.sweep.around:
            # One that left groups out says nothing of what all of them cost.
            self._slow.discard(table)
            self._dear.pop(table, None)

    def _failed(self, active: _Active, request: SweepRequest, error: SourceError, narrowest: int) -> None:
        sweep, table = active.sweep, active.sweep.table
        timed_out = isinstance(error, ReadTimedOut)
        dear = timed_out and active.alone is not None and not self._times_out(table)
        if dear or not isinstance(error, RetriableSourceError):
            self._drop(sweep)
            if dear:
                self._planner.unswept(sweep)
                self._dearer(table, f"its log could not be swept: {error}")
            else:
                self._given_up(sweep, error)
            return
        if timed_out:
            self._slow.add(table)
        soon = isinstance(error, ReplicasAway) and self._clock() - active.began < DIVIDED_SECONDS
        parts: Sequence[tuple[int, int]] = ()
        if soon and active.divided < MOST_DIVIDED:
            parts = self._planner.parts(sweep, (request.first, request.last))
        if parts:
            active.divided += 1
            active.outstanding += len(parts)
            self._ask(sweep, parts)
        else:
            active.error = error
        self._ended(active, narrowest)

    def _partly(self, active: _Active, error: SourceError, narrowest: int) -> None:
        """What did not get through is read by itself, and left out until it was answered and some time has passed."""
        sweep, table = active.sweep, active.sweep.table
        plan = self._planner.tables[table]
        left_out = len(plan.refused)
        # From now on, and not from when it began.
        pause = self._refused_again(table) + self._clock() - active.began
        self._planner.swept(sweep, active.found, narrowest, active.through, round(pause * 1000))
        self.swept += bool(active.through)
        if len(plan.refused) > left_out:
            told = (table, error, len(plan.refused), plan.groups)
            log.info("%s: its log could not be swept: %s; of its groups of streams %d of %d are read one by one", *told)

    def _given_up(self, sweep: Sweep, error: SourceError) -> None:
        """It says nothing of single groups: not all of them have to be read before they are swept again."""
        self._planner.unswept(sweep)
        self._rest(sweep.table, f"its log could not be swept: {error}", self._refused_again(sweep.table))

    def _refused_again(self, table: TableName) -> float:
        """How long it is not tried, in seconds."""
        self._refused[table] += 1
        return doubled(REFUSED_SECONDS, self._refused[table], LONGEST_REFUSED)

    def _dearer(self, table: TableName, why: str) -> None:
        self._slow.discard(table)
        self._dear[table] += 1
        self._rest(table, why, doubled(PAUSE_SECONDS, self._dear[table], LONGEST_PAUSE))

    def _rest(self, table: TableName, why: str, pause: float) -> None:
        self._again[table] = self._clock() + pause
        log.info("%s: %s; all of its streams are read one by one for %.0f s", table, why, pause)

    def _drop(self, sweep: Sweep) -> None:
        active = self._active.pop(sweep, None)
        if active is not None and active.beside is not None:
            self._beside.pop(active.beside, None)
            self._log.cancel(active.beside)
        self._log.cancel(sweep)
