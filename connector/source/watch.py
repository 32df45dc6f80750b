"""Watching the server: stream sets, the servers' clocks, descriptions of tables (`Describing`), each at its own pace.

In: the planner's sets, the `Tables` and what they ask. Out: the planner observes each answer, the tables learn each
description, the `ServerClock` its samples; what fails is tried again with growing pauses, and told by `Background`.
Questions wait in chore threads; everything that changes state runs in the owner thread.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from connector.errors import RetriableSourceError
from connector.source.background import LONGEST_PAUSE, SOURCE, Background, Purpose, Task
from connector.source.chores import Chores
from connector.source.connection import Connection
from connector.source.describing import Describing
from connector.source.settings import ReadingSettings
from connector.source.stream_sets import AT_ONCE, Listed, StreamSets, TabletStreams, VnodeGenerations
from connector.source.tables import Tables
from connector.table_name import TableName
from connector.topology import Observed, SetsPlan, StreamSet, View, forget_transitions

log = logging.getLogger(__name__)

CLOCK_SECONDS = 10.0
# One small query, so that a cluster that is away is noticed before the next poll of stream sets.
ALIVE_SECONDS = 2.0
# Until the open transaction has ended, and with it what is known of a table that was created again.
ANEW_SECONDS = 1.0
# So often the next node is asked at once: it may know what the first did not.
OTHER_NODES = 3

STREAM_SETS = Purpose(
    "stream sets",
    "new stream sets are not seen",
    "changes from shortly before then on wait, in all streams",
    steady=True,
    behind=SOURCE,
)
CLOCK = Purpose(
    "clock",
    "the servers' time is not updated",
    "it is extrapolated from the last answers; a clock that falls behind goes unnoticed",
    holds=False,
    steady=True,
    behind=SOURCE,
)
CLOCK_OF_ONE = Purpose(
    "clock",
    "this server's time is not updated",
    "it is extrapolated from its last answer; a clock that falls behind goes unnoticed",
    holds=False,
    partial=True,
    steady=True,
    behind=SOURCE,
)
CLOCK_APART = Purpose(
    "wrong clock",
    "this node's clock is not as the others'",
    "changes are delivered later by as much, which the lag does not show: the clock that is most behind counts",
    holds=False,
    partial=True,
)
SLOW = Purpose(
    "slow node",
    "this node does not answer in time",
    "other nodes, if there are any, are asked in its place",
    holds=False,
    partial=True,
)
ALIVE = Purpose(
    SOURCE,
    "ScyllaDB does not answer",
    "nothing is read",
    steady=True,
)
NODES = Purpose(
    "nodes",
    "nodes that join, leave or move are not seen",
    "reads go to the previously known nodes",
    holds=False,
    steady=True,
    behind=SOURCE,
)


@dataclass(slots=True)
class Poll:
    """One place where stream sets are listed, and the tables that it serves."""

    sets: StreamSets
    tables: list[TableName]
    task: Task
    due: float = 0.0
    running: bool = False
    started_ms: int = 0
    listed: tuple[int, ...] = field(default=())
    #: Who has listed the streams of a former table, one after the other.
    behind: set[str] = field(default_factory=set)

    @property
    def of_tablets(self) -> bool:
        return isinstance(self.sets, TabletStreams)

    @property
    def error(self) -> str | None:
        return self.task.error

    @property
    def attempts(self) -> int:
        return self.task.attempts


class Watch:
    """Owned by one thread; `tick` is called every so often."""

    def __init__(
        self,
        *,
        planner: SetsPlan,
        connection: Connection,
        settings: ReadingSettings,
        chores: Chores,
        tables: Tables,
        background: Background,
        describing: Describing,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._planner = planner
        self._connection = connection
        self._settings = settings
        self._chores = chores
        self._tables = tables
        self._background = background
        self._monotonic = monotonic
        self.polls: list[Poll] = []
        background.expect(STREAM_SETS, SLOW)
        self._describing = describing
        self._clock = background.task(CLOCK)
        self._clocks: dict[str, Task] = {}
        # How many looks in a row each clock was another than most.
        self._apart = Counter[str]()
        self._nodes = background.task(NODES)
        self._alive = background.task(ALIVE)
        self._alive_due = 0.0
        self._slow = set[str]()
        self._asking = False
        self._clock_due = 0.0
        self._sampling = False

    def start(self) -> None:
        """Begin to poll."""
        for table in self._tables:
            self.take(table)

    def take(self, table: TableName) -> None:
        """Poll for a table, too; all vnode tables share one answer."""
        if self._tables[table].tablets:
            self._poll(TabletStreams(self._connection, table), [table])
            return
        shared = next((poll for poll in self.polls if isinstance(poll.sets, VnodeGenerations)), None)
        if shared is None:
            self._poll(VnodeGenerations(self._connection), [table])
        else:
            shared.due = self._monotonic()
            self._serve(shared, [*shared.tables, table])

    def drop(self, table: TableName) -> None:
        """Nobody reads it any more."""
        self._leave(table)
        self._describing.drop(table)

    def _leave(self, table: TableName) -> None:
        poll = next(poll for poll in self.polls if table in poll.tables)
        rest = [each for each in poll.tables if each != table]
        if rest:
            self._serve(poll, rest)
        else:
            poll.task.dismiss()
            poll.tables = []
            self.polls.remove(poll)

    def _poll(self, sets: StreamSets, tables: list[TableName]) -> None:
        self.polls.append(Poll(sets, tables, self._polling(tables)))

    def _serve(self, poll: Poll, tables: list[TableName]) -> None:
        """Other tables than before. What fails is said of them anew."""
        poll.task.dismiss()
        poll.tables, poll.task = tables, self._polling(tables)

    def _polling(self, tables: list[TableName]) -> Task:
        about = str(tables[0]) + (f" and {len(tables) - 1} more" if len(tables) > 1 else "")
        return self._background.task(STREAM_SETS, about)

    def tick(self) -> None:
        """Start what is due."""
        now, due = self._monotonic(), list[Poll]()
        self._go_where_it_is_listed(now)
        for poll in self.polls:
            if all(self._planner.tables[table].failure is not None for table in poll.tables):
                poll.task.dismiss()
            elif not poll.running and poll.due <= now:
                due.append(poll)
        self._ask_all(due, now)
        if self._clock_due <= now and not self._sampling:
            self._look_at_clocks(now)
        if self._alive_due <= now and not self._asking:
            self._asking = True
            self._chores.submit(self._connection.require_an_answer, self._answered)
        self._describing.tick(now)

    def look_again(self) -> None:
        """For tables that are gone, in the next round instead of when their time has come."""
        self._describing.look_again()

    # -- stream sets -----------------------------------------------------------------------------------------

    def _go_where_it_is_listed(self, now: float) -> None:
        """Tables that were created again with tablets, or without: their sets are listed elsewhere now."""
        due = [poll for poll in self.polls if poll.due <= now and not poll.running]
        for table, tablets in [(table, poll.of_tablets) for poll in due for table in poll.tables]:
            if self._tables[table].tablets is not tablets:
                log.warning("%s: was created again %s tablets", table, "without" if tablets else "with")
                self._leave(table)
                self.take(table)

    def _ask_all(self, due: Sequence[Poll], now: float) -> None:
        """Tablets tables of a keyspace share a question."""
        together: list[Poll] = []
        for poll in due:
            self._begin(poll, now)
            if isinstance(poll.sets, TabletStreams):
                together.append(poll)
            else:
                self._chores.submit(poll.sets.listed, partial(self._listed, poll))
        together.sort(key=lambda poll: poll.tables[0].keyspace)
        for begin in range(0, len(together), AT_ONCE):
            self._ask_together(together[begin : begin + AT_ONCE])

    def _begin(self, poll: Poll, now: float) -> None:
        poll.running = True
        poll.due = now + self._settings.poll_seconds
        # The answer vouches for the time before the question was sent, not for when it came.
        poll.started_ms = self._connection.clock.now_ms()
        poll.task.asked(self._connection.address)

    def _ask_together(self, polls: Sequence[Poll]) -> None:
        sets = [poll.sets for poll in polls if isinstance(poll.sets, TabletStreams)]
        if len(sets) == 1:
            self._chores.submit(sets[0].listed, partial(self._listed, polls[0]))
            return

        def listed(answers: list[Listed | Exception], error: BaseException | None) -> None:
            for poll, answer in zip(polls, answers if error is None else [error] * len(polls), strict=True):
                if isinstance(answer, BaseException):
                    self._poll_failed(poll, answer)
                else:
                    self._listed(poll, answer, None)

        self._chores.submit(lambda: TabletStreams.listed_together(sets), listed)

    def _listed(self, poll: Poll, listed: tuple[int, ...], error: BaseException | None) -> None:
        if error is not None:
            self._poll_failed(poll, error)
            return
        if listed and (former := self._former(poll)) is not None:
            self._poll_failed(poll, RetriableSourceError(f"{poll.sets.asked} lists streams of {former}"))
            return
        poll.listed = listed
        now = self._connection.clock.now_ms()
        wanted = sorted({at for table in self._served(poll) for at in self._planner.wanted(table, listed, now)})
        if not wanted:
            self._observe(poll, {})
        else:
            self._chores.submit(lambda: poll.sets.fetched(wanted), lambda sets, error: self._fetched(poll, sets, error))

    def _former(self, poll: Poll) -> str | None:
        """Whose streams a node lists that has not heard of the table which has the name now. What all of them say, one
        after the other, is true."""
        table = next((each for each in poll.tables if self._planner.is_former(each, poll.sets.log_id)), None)
        if table is None:
            poll.behind.clear()
            return None
        poll.behind.add(poll.sets.asked)
        everybody = {str(host.endpoint) for host in self._connection.hosts()}
        return None if poll.behind >= everybody else f"a table {table} that was dropped"

    def _served(self, poll: Poll) -> list[TableName]:
        """The tables whose sets were listed."""
        served: list[TableName] = []
        for table in poll.tables:
            if not poll.sets.serves(table):
                self._describing.ask(table)
                continue
            plan = self._planner.tables[table]
            was_known = not plan.anew
            if poll.listed and was_known and plan.log not in (None, poll.sets.log_id):
                # Its pages may look as those of the former one did.
                self._tables.stop(table)
            if not poll.listed or self._planner.identify(table, poll.sets.log_id, poll.listed):
                served.append(table)
                continue
            poll.due = self._monotonic() + ANEW_SECONDS
            if was_known:
                log.warning("%s: was created again: its streams are others, read from their beginning", table)
        return served

    def _fetched(self, poll: Poll, sets: dict[int, StreamSet], error: BaseException | None) -> None:
        if error is not None:
            self._poll_failed(poll, error)
        else:
            self._observe(poll, sets)

    def _observe(self, poll: Poll, sets: dict[int, StreamSet]) -> None:
        poll.running = False
        now = self._connection.clock.now_ms()
        # Once more: a commit may have begun a table anew since they were listed.
        for table in self._served(poll):
            plan, wanted = self._planner.tables[table], self._planner.wanted(table, poll.listed, now)
            if any(timestamp not in sets for timestamp in wanted):
                poll.due = self._monotonic()  # slots were restored meanwhile, more is wanted: ask once more
                return
            before = plan.newest
            view = View(poll.listed, {at: sets[at] for at in wanted})
            seen = self._planner.observe(table, view, poll.started_ms)
            if seen is Observed.EMPTY:
                poll.task.failed(f"{poll.sets.asked} lists no stream set of {table}")
                if poll.task.attempts <= OTHER_NODES:
                    poll.due = self._monotonic()
                # None yet, or none any more: a table that was dropped has no streams either, and no reads that fail.
                self._describing.ask(table)
                return
            if seen is Observed.STALE:
                late = f"{poll.sets.asked} does not list the newest stream set of {table} that was seen"
                self._poll_failed(poll, RetriableSourceError(late))
                return
            if plan.newest is not before and before is not None and plan.newest is not None:
                log.info("%s: new stream set at %d", table, plan.newest.timestamp)
        if sets:
            poll.sets.taken()
            forget_transitions()
        poll.task.worked()

    def _poll_failed(self, poll: Poll, error: BaseException) -> None:
        poll.running = False
        if not poll.tables:
            return  # nobody asks any more
        poll.task.failed(error)
        # Whatever it says, it is asked on: nodes that cannot list streams may be about to be upgraded.
        attempts = poll.task.attempts
        if attempts <= OTHER_NODES:
            poll.due = self._monotonic()
        else:
            pace = self._settings.poll_seconds
            poll.due = self._monotonic() + max(pace, poll.task.pause(pace / (1 << OTHER_NODES), LONGEST_PAUSE))

    # -- clocks and nodes ------------------------------------------------------------------------------------

    def _answered(self, _: None, error: BaseException | None) -> None:
        self._asking = False
        self._alive_due = self._monotonic() + ALIVE_SECONDS
        slow = self._connection.slow_hosts
        for host in self._slow | slow.keys():
            self._background.task(SLOW, host).is_now(slow.get(host))
        self._slow = set(slow)
        if error is None:
            self._alive.worked()
        else:
            self._alive_due = self._monotonic() + ALIVE_SECONDS / 4
            self._alive.failed(error)

    def _look_at_clocks(self, now: float) -> None:
        self._sampling = True
        self._clock_due = now + CLOCK_SECONDS
        self._clock.asked(self._connection.address)
        present = {str(host.endpoint) for host in self._connection.hosts()}
        for host in self._clocks.keys() - present:
            self._clocks.pop(host).dismiss()
            self._background.task(CLOCK_APART, host).dismiss()
        self._connection.clock.keep({str(host.endpoint) for host in self._connection.known_hosts()})
        for host in present - self._clocks.keys():
            self._clocks[host] = self._background.task(CLOCK_OF_ONE, host)
        self._chores.submit(self._connection.ask_a_clock, self._sampled)
        try:
            self._connection.raise_blindness()
        except Exception as error:
            self._nodes.failed(error)
        else:
            self._nodes.worked()

    def _look_at_their_times(self) -> None:
        apart = self._connection.clock.apart()
        self._apart = Counter({host: self._apart[host] + 1 for host in apart if host in self._clocks})
        for host in self._clocks:
            task = self._background.task(CLOCK_APART, host)
            # When each was asked once more: a machine that stood still knows none of them.
            if self._apart[host] > len(self._clocks):
                ahead = apart[host]
                task.failed(
                    f"it is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} them; set it right (NTP)"
                )
            elif task.error is not None:
                task.worked()

    def _sampled(self, asked: dict[str, Exception | None] | None, error: BaseException | None) -> None:
        self._sampling = False
        self._look_at_their_times()
        answers = list((asked or {}).items())
        last = answers[-1][1] if answers else error
        if last is None:
            self._clock.worked()
            for host, refused in answers:
                task = self._background.task(CLOCK_OF_ONE, host)
                if refused is None:
                    task.worked()
                elif host in self._clocks:
                    task.failed(refused)
        else:
            self._clock.failed(last)
            self._clock_due = min(self._clock_due, self._monotonic() + self._clock.pause(1.0))
