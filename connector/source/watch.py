"""Watching the server: stream sets, descriptions of tables, the server's clock, each asked for at its own pace.

In: a `Planner` and its tables. Out: `TablePlan.observe` for each answer, ``described`` for each description, samples
for the `ServerClock`. Questions wait in chore threads; everything that changes state runs in the owner thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from connector.errors import CdcError, FatalSourceError, RetriableSourceError, UnsupportedServer
from connector.source.chores import Chores
from connector.source.connection import Connection
from connector.source.descriptions import DescribedTable, describe_table
from connector.source.settings import ReadingSettings
from connector.source.stream_sets import StreamSets, TabletStreams, VnodeGenerations
from connector.topology import Observed, Planner, StreamSet, TableName, TablePlan, View

log = logging.getLogger(__name__)

CLOCK_SECONDS = 10.0
DESCRIBE_SECONDS = 30.0
GONE_ATTEMPTS = 5
UNSUPPORTED_ATTEMPTS = 3
GONE_SECONDS = 5.0


@dataclass(slots=True)
class Poll:
    """One place where stream sets are listed, and the tables that it serves."""

    sets: StreamSets
    plans: list[TablePlan]
    due: float = 0.0
    running: bool = False
    started_ms: int = 0
    attempts: int = 0
    error: str | None = None
    listed: tuple[int, ...] = field(default=())


class Watch:
    """Owned by one thread; `tick` is called every so often."""

    def __init__(
        self,
        planner: Planner,
        connection: Connection,
        settings: ReadingSettings,
        chores: Chores,
        described: Callable[[TableName, DescribedTable | None], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._planner = planner
        self._connection = connection
        self._settings = settings
        self._chores = chores
        self._described = described
        self._monotonic = monotonic
        self.polls: list[Poll] = []
        self._describing: set[TableName] = set()
        self._clock_due = 0.0
        self._clock_turn = 0
        self._describe_due = monotonic() + DESCRIBE_SECONDS
        self._known: dict[TableName, DescribedTable] = {}
        self._missing: dict[TableName, tuple[int, float]] = {}

    def start(self, tables: Iterable[DescribedTable]) -> None:
        """Begin to poll; all vnode tables share one answer."""
        vnodes: list[TablePlan] = []
        for table in tables:
            self._known[table.table] = table
            plan = self._planner.tables[table.table]
            if table.tablets:
                self.polls.append(Poll(TabletStreams(self._connection, table.table), [plan]))
            else:
                vnodes.append(plan)
        if vnodes:
            self.polls.append(Poll(VnodeGenerations(self._connection), vnodes))

    def tick(self) -> None:
        """Start what is due."""
        now = self._monotonic()
        for poll in self.polls:
            if not poll.running and poll.due <= now:
                self._ask(poll, now)
        if self._clock_due <= now:
            self._clock_due = now + CLOCK_SECONDS
            self._chores.submit(self._sample_clock, lambda _, error: None)
        if self._describe_due <= now:
            # A column that nobody writes does not show in pages; landing wants to hear of it all the same.
            self._describe_due = now + DESCRIBE_SECONDS
            for table in self._known:
                self.describe(table)

    # -- stream sets -----------------------------------------------------------------------------------------

    def _ask(self, poll: Poll, now: float) -> None:
        poll.running = True
        poll.due = now + self._settings.poll_seconds
        # The answer vouches for the time before the question was sent, not for when it came.
        poll.started_ms = self._connection.clock.now_ms()
        self._chores.submit(poll.sets.listed, lambda listed, error: self._listed(poll, listed, error))

    def _listed(self, poll: Poll, listed: tuple[int, ...], error: BaseException | None) -> None:
        if error is not None:
            self._poll_failed(poll, error)
            return
        poll.listed = listed
        now = self._connection.clock.now_ms()
        wanted = sorted({timestamp for plan in poll.plans for timestamp in plan.wanted(listed, now)})
        if not wanted:
            self._observe(poll, {})
        else:
            self._chores.submit(lambda: poll.sets.fetched(wanted), lambda sets, error: self._fetched(poll, sets, error))

    def _fetched(self, poll: Poll, sets: dict[int, StreamSet], error: BaseException | None) -> None:
        if error is not None:
            self._poll_failed(poll, error)
        else:
            self._observe(poll, sets)

    def _observe(self, poll: Poll, sets: dict[int, StreamSet]) -> None:
        poll.running = False
        now = self._connection.clock.now_ms()
        for plan in poll.plans:
            wanted = plan.wanted(poll.listed, now)
            if any(timestamp not in sets for timestamp in wanted):
                poll.due = self._monotonic()  # slots were restored meanwhile, more is wanted: ask once more
                return
            before = plan.newest
            seen = plan.observe(View(poll.listed, {at: sets[at] for at in wanted}), poll.started_ms)
            if seen is Observed.EMPTY:
                poll.error = "no stream set is listed"
                # None yet, or none any more: a table that was dropped has no streams either, and no reads that fail.
                self.describe(plan.table)
                return
            if plan.newest is not before and before is not None and plan.newest is not None:
                log.info("%s: new stream set at %d", plan.table, plan.newest.timestamp)
        poll.error = None
        poll.attempts = 0

    def _poll_failed(self, poll: Poll, error: BaseException) -> None:
        poll.running = False
        poll.attempts += 1
        poll.error = str(error)
        log.log(logging.WARNING if poll.attempts in (1, 10) else logging.DEBUG, "asking for stream sets: %s", error)
        if isinstance(error, UnsupportedServer) and poll.attempts >= UNSUPPORTED_ATTEMPTS:
            # Not if any node ever answered: the others are older, and about to be upgraded.
            for plan in poll.plans:
                if plan.polled_at is None:
                    plan.fail_table(str(error))
        elif isinstance(error, RetriableSourceError | UnsupportedServer) and poll.attempts <= 3:
            poll.due = self._monotonic()  # another node may know

    # -- descriptions and the clock --------------------------------------------------------------------------

    def describe(self, table: TableName) -> None:
        """Read a table's description anew; ``described`` is called with it, or with None where nothing is new."""
        if table in self._describing:
            return
        self._describing.add(table)
        self._chores.submit(
            lambda: describe_table(self._connection, table), lambda found, error: self._found(table, found, error)
        )

    def _found(self, table: TableName, found: DescribedTable | None, error: BaseException | None) -> None:
        self._describing.discard(table)
        if error is not None and not isinstance(error, CdcError):
            raise error
        if isinstance(error, FatalSourceError):
            self._gone(table, error)
        else:
            self._missing.pop(table, None)
        changed = found is not None and found != self._known.get(table)
        if found is not None:
            self._known[table] = found
        self._described(table, found if changed else None)

    def _gone(self, table: TableName, error: FatalSourceError) -> None:
        """A table that is missing may be a schema change on its way; one that stays missing is gone."""
        attempts, since = self._missing.get(table, (0, self._monotonic()))
        self._missing[table] = (attempts + 1, since)
        if attempts == 0:
            log.warning("%s", error)
        if attempts + 1 >= GONE_ATTEMPTS and self._monotonic() - since >= GONE_SECONDS:
            self._planner.tables[table].fail_table(str(error))

    def _sample_clock(self) -> None:
        hosts = self._connection.hosts()
        if hosts:
            self._clock_turn = (self._clock_turn + 1) % len(hosts)
            self._connection.sample_clock(hosts[self._clock_turn])
