"""The plan of one table: what of its log may be read now, by this worker, and how far.

In: stream sets as they are observed, slots as they are claimed, progress as rows are produced, the time. Out:
`Read`s, each a permission for one query. What must be committed is computed by `commits.py` from the same
state.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator

from connector.topology import claims, commits
from connector.topology.book import SlotBook
from connector.topology.commits import Staged
from connector.topology.gates import blocking
from connector.topology.groups import Gate, GroupState, Read, Saved
from connector.topology.ledger import Ledger, start_of
from connector.topology.lineage import Lineage, Observed, View
from connector.topology.offsets import Mark, Position
from connector.topology.sets import StreamGroup, StreamSet
from connector.topology.slots import TableName, home_slot


class TablePlan:
    """Owned by one thread. Times are ms since 1970 by one clock, which may step.

    A group more than ``laggard_ms`` behind does not hold the mark of its slot back, as long as the streams that then
    need a position of their own are no more than ``laggard_streams``, or a tenth of the slot's.
    """

    laggard_ms = 10_000
    laggard_streams = 256

    def __init__(self, table: TableName, book: SlotBook, confidence_ms: int, lookback_ms: int = 0) -> None:
        self.table = table
        self.book = book
        self.confidence_ms = confidence_ms
        self.lookback_ms = lookback_ms
        self.home = home_slot(table, book.slots)
        self.lineage = Lineage(table, book.slots)
        self.polled_at: int | None = None
        self.last_limit: int | None = None
        self.failure: str | None = None
        self.active: set[int] = set()
        self.announced: set[GroupState] = set()
        self.fresh: dict[GroupState, set[bytes]] = {}
        self.orphans: dict[int, set[bytes]] = {}
        self._finished: list[StreamGroup] = []
        self._heap: list[tuple[int, int, GroupState]] = []
        self._parked: dict[int, set[GroupState]] = {}
        self._numbers = itertools.count(1)
        self._undo: dict[GroupState, Saved] = {}
        self._staged: Staged | None = None
        self._undo_later: dict[GroupState, Saved] = {}

    # -- stream sets -----------------------------------------------------------------------------------------

    @property
    def newest(self) -> StreamSet | None:
        return self.lineage.newest

    def wanted(self, timestamps: Iterable[int], now: int) -> tuple[int, ...]:
        """Of the timestamps that a node lists, those whose sets `observe` needs. Fewest once all slots are
        known."""
        return self.lineage.wanted(timestamps, claims.horizon(self, now))

    def observe(self, view: View, polled_at: int) -> Observed:
        """Take in the answer to a poll that *started* at ``polled_at``; only a FRESH one counts as a
        successful poll."""
        before = self.lineage.newest
        observed, added = self.lineage.observe(view)
        if observed is not Observed.FRESH:
            return observed
        self.polled_at = polled_at
        if self.lineage.newest is not before:
            for state in added:
                if state.slot in self.active:
                    self._place(state)
            self._prune()
            self._sort_anew()
        return observed

    # -- slots -----------------------------------------------------------------------------------------------

    def claimable(self) -> list[int]:
        """Slots that were restored and in which this table is not claimed yet."""
        return [slot for slot in sorted(self.book.own) if slot not in self.active]

    def release(self, slots: Iterable[int]) -> None:
        """The slots belong to somebody else. The open transaction was committed or aborted before."""
        for slot in slots:
            self.active.discard(slot)
            self.orphans.pop(slot, None)
            for state in self.lineage.groups(slot):
                state.reading = None
                state.failure = None
                state.delivered = {}
                state.recorded = set()
                self._undo.pop(state, None)
                self.fresh.pop(state, None)
        self._sort_anew()

    def followed(self, slots: Iterable[int]) -> None:
        """Other workers' slots moved on: look again at whoever waits for streams in them."""
        for slot in slots:
            for witness in self._parked.pop(slot, ()):
                self._wake(witness)

    def _activate(self, slots: Iterable[int]) -> None:
        for slot in slots:
            ledger = self.own_ledger(slot)
            if ledger is None:
                continue
            self.active.add(slot)
            self.orphans[slot] = set(ledger.positions)
            for state in self.lineage.groups(slot):
                self._place(state)
        self._prune()
        self._sort_anew()

    def _place(self, state: GroupState) -> None:
        """Put a group to where the committed entries say that its streams start."""
        ledger = self.own_ledger(state.slot)
        if ledger is None or ledger.mark is None:
            return
        usual = start_of(ledger, b"", state.opened, state.close, state.opened_known)
        assert usual is not None
        recorded = (
            {stream for stream in state.group.streams if stream in ledger.positions} if ledger.positions else set()
        )
        positions: dict[bytes, Position] = {}
        for stream in recorded:
            start = start_of(ledger, stream, state.opened, state.close, state.opened_known)
            assert start is not None
            positions[stream] = start
        state.place(usual.read_to, positions)
        state.recorded = recorded
        # A position may be there because rows up to it were delivered: no mark below may replace it.
        state.delivered = {s: at.read_to - (at.after is None) for s, at in positions.items()}
        if recorded:
            self.orphans[state.slot] -= recorded

    def own_ledger(self, slot: int) -> Ledger | None:
        own = self.book.own.get(slot)
        return None if own is None else own.table(self.table)

    def mark_of(self, slot: int) -> Mark | None:
        ledger = self.book.ledger(slot, self.table)
        return None if ledger is None else ledger.mark

    # -- what may be read ------------------------------------------------------------------------------------

    def limit(self, now: int) -> int | None:
        """Nothing at or after this ms is read yet; None: nothing at all, until a poll answers.

        Behind ``now - confidence`` rows may still arrive out of order. Behind the start of the last good poll
        there may be a stream set that we do not know: a stream that grows at T and is read past T before T is
        learnt delivers rows of keys whose earlier rows still wait in the stream that closed. A quarter of the
        confidence window is left to nodes that learn of a set late; while polls succeed at their usual pace (every
        half of it) the first bound is the lower one, and this costs no latency.
        """
        # A poll that started "later than now" was timed by a clock that has since stepped back: it vouches for nothing.
        if self.polled_at is None or self.polled_at > now:
            return None
        return min(now - self.confidence_ms, self.polled_at - self.confidence_ms // 4)

    def knows_enough(self, slot: int) -> bool:
        """What we know of the stream sets suffices to go on where the slot's mark stands.

        Not while its ``stream_set`` is newer than all we know: the predecessor knew a set that the nodes
        asked so far hide from us. We do not know the streams it opened; were we to move the mark on, they
        would later start at it, and their rows below would be lost.
        """
        mark, newest = self.mark_of(slot), self.lineage.newest
        if mark is None or newest is None or newest.timestamp < mark.stream_set:
            return False
        # Older sets were left out by our own idea of the lookback, and the table was started further back.
        return not self.lineage.trimmed or mark.read_to >= self.lineage.base

    def readable(self, slot: int) -> bool:
        """The slot is ours, the claim is committed, and nothing stands against reading the table in it."""
        return slot in self.active and self.failure is None and self.knows_enough(slot)

    def plan(self, now: int, count: int, narrowest: int = 1) -> list[Read]:
        """At most ``count`` reads, the most behind first, none narrower than ``narrowest`` ms while more is
        to come."""
        limit = self.limit(now)
        if limit is None:
            return []
        self.last_limit = limit
        reads: list[Read] = []
        while self._heap and len(reads) < count and self._heap[0][0] + narrowest <= limit:
            at, _, state = heapq.heappop(self._heap)
            state.queued = False
            cap = self._cap(state, limit)
            if state.read_to != at or not self._ready(state) or at >= cap:
                self._settle(state)
                continue
            streams, start, upto = state.next_read(cap)
            number = next(self._numbers)
            read = Read(self.table, state.slot, state, streams, start.read_to, start.after, upto, number)
            state.reading = read
            reads.append(read)
        return reads

    def _cap(self, state: GroupState, limit: int) -> int:
        if state.close is not None:
            limit = min(limit, state.close)
        shut = self.blocking(state)
        return limit if shut is None else min(limit, shut[0].at)

    def oldest(self) -> int | None:
        """Where the most behind of the groups stands that could be read."""
        return self._heap[0][0] if self._heap else None

    def blocking(self, state: GroupState) -> tuple[Gate, GroupState] | None:
        """The first gate in front of a group that is still shut, and one group that keeps it shut."""
        return blocking(state, self.reached, self.committed_to)

    def reached(self, source: GroupState, at: int) -> bool:
        """``source`` is delivered up to ``at``: produced by us, in front of whatever waits for it, or
        committed by others.

        What others have produced is not enough: their transaction may yet abort, and come again behind our
        rows.
        """
        if source.slot in self.active:
            return source.read_to >= at
        return self.committed_to(source, at)

    def committed_to(self, source: GroupState, at: int) -> bool:
        """All streams of ``source`` start at ``at`` or later by what is committed. Only ``read_to`` counts,
        not ``after``."""
        ledger = self.book.ledger(source.slot, self.table)
        if ledger is None:
            return False
        # Without positions all streams of a group start at the same place.
        streams = source.group.streams if ledger.positions else source.group.streams[:1]
        return all(
            start is not None and start.read_to >= at
            for start in (
                start_of(ledger, stream, source.opened, source.close, source.opened_known) for stream in streams
            )
        )

    def _ready(self, state: GroupState) -> bool:
        return state.reading is None and state.failure is None and self.readable(state.slot)

    def _settle(self, state: GroupState) -> None:
        """Put a group where it belongs: into the queue, or behind the group that it waits for, or nowhere."""
        if state.queued or state.drained or not self._ready(state):
            return
        shut = self.blocking(state)
        if shut is not None and state.read_to >= shut[0].at:
            witness = shut[1]
            witness.waiters.append(state)
            if witness.slot not in self.active:
                self._parked.setdefault(witness.slot, set()).add(witness)
            return
        state.queued = True
        heapq.heappush(self._heap, (state.read_to, next(self._numbers), state))

    def _wake(self, witness: GroupState) -> None:
        waiters, witness.waiters = witness.waiters, []
        for state in waiters:
            self._settle(state)

    def _sort_anew(self) -> None:
        """Sort all groups anew after sets, claims or an abort have changed what waits for what."""
        self._heap.clear()
        self._parked.clear()
        self.announced.clear()
        for state in self.states():
            state.queued = False
            state.waiters = []
            for gate in state.gates:
                for source in gate.before:
                    source.waiters = []
        for slot in self.active:
            for state in self.lineage.groups(slot):
                self._settle(state)
                self._announce(state)

    def states(self) -> Iterator[GroupState]:
        return itertools.chain.from_iterable(self.lineage.by_slot.values())

    # -- progress --------------------------------------------------------------------------------------------

    def is_current(self, read: Read) -> bool:
        """The read still stands; pages of one that does not are dropped."""
        return read.state.reading is read

    def advance(self, read: Read, stream: bytes, time: bytes) -> bool:
        """A whole batch of ``stream`` at ``time`` was produced in the open transaction. False: the read is
        void."""
        state = read.state
        if state.reading is not read:
            return False
        self._touch(state)
        state.delivered_row(stream, time)
        self.fresh.setdefault(state, set()).add(stream)
        if state.waiters or state.watched:
            self._progressed(state)
        return True

    def finish(self, read: Read, read_to: int | None = None) -> bool:
        """The whole paged query has ended, and everything of it before ``read_to`` (default: its limit) was
        produced."""
        state = read.state
        if state.reading is not read:
            return False
        self._touch(state)
        state.reading = None
        state.read_ended(read.streams, read.limit if read_to is None else min(read_to, read.limit))
        state.cap_at_close()
        self._progressed(state)
        self._settle(state)
        return True

    def interrupt(self, read: Read) -> None:
        """The query broke off. What `advance` was told stays; the rest will be planned again."""
        if read.state.reading is read:
            read.state.reading = None
            self._settle(read.state)

    def fail(self, read: Read, reason: str) -> None:
        """The group is FAILED: nothing more of it is read; whoever waits for it goes on waiting and names the
        reason."""
        if read.state.reading is read:
            read.state.reading = None
            read.state.failure = reason

    def fail_table(self, reason: str) -> None:
        """All groups of the table are FAILED, as when its topic refuses records."""
        self.failure = reason

    def _progressed(self, state: GroupState) -> None:
        if state.waiters:
            self._wake(state)
        self._announce(state)

    def _announce(self, state: GroupState) -> None:
        """Note a group that has passed a change which others wait for, until a commit lets them see it."""
        passed = self.passed(state)
        if passed is None:
            return
        if self.committed_to(state, passed):
            state.watched = [at for at in state.watched if at > passed]
        else:
            self.announced.add(state)

    def passed(self, state: GroupState) -> int | None:
        """The newest change that others wait for and that the group has passed."""
        if not state.watched:
            return None
        read_to = state.read_to
        return max((at for at in state.watched if at <= read_to), default=None)

    def _touch(self, state: GroupState) -> None:
        undo = self._undo if self._staged is None else self._undo_later
        if state not in undo:
            undo[state] = state.save()

    # -- transactions ----------------------------------------------------------------------------------------

    def touched(self) -> list[GroupState]:
        """Groups that have something to say in the next commit even where no mark moves."""
        return list(dict.fromkeys([*self.fresh, *self.announced]))

    def visible_to(self, state: GroupState) -> int:
        """Everything of the group before this ms is committed; its rows in the open transaction are not."""
        saved = self._undo.get(state) if state in self.fresh else None
        return state.read_to if saved is None else min(state.read_to, state.stood_at(saved))

    def stage(self, now: int, move_marks: bool) -> Staged:
        """Compute a commit. What is produced from here on belongs to the next transaction."""
        assert self._staged is None, "the last commit has neither been committed nor aborted"
        self._staged = commits.stage(self, now, move_marks)
        self.fresh = {}
        self.announced = set()
        return self._staged

    def committed(self) -> None:
        """The staged commit is known to have happened."""
        staged, self._staged = self._staged, None
        self._undo, self._undo_later = self._undo_later, {}
        if staged is None:
            return
        commits.settle(self, staged)
        if staged.claimed:
            self._activate(staged.claimed)
        elif staged.marks:
            self._prune()

    def aborted(self) -> None:
        """Only now, and only after a confirmed abort, the positions from before the transaction are true
        again."""
        for undo in (self._undo_later, self._undo):
            for state, saved in undo.items():
                state.put_back(saved)
                state.cap_at_close()
        self._staged = None
        self._undo, self._undo_later = {}, {}
        self.fresh = {}
        for state in self.states():
            state.reading = None
        self._sort_anew()

    def _prune(self) -> None:
        """Forget groups that are closed, drained by what is committed, and covered by their slot's mark
        alone."""
        self._finished += self.lineage.forget(self._is_done)

    def _is_done(self, state: GroupState) -> bool:
        if state.close is None or not self.committed_to(state, state.close):
            return False
        if state.slot not in self.active:
            return True
        return not state.recorded and state.reading is None and state not in self._undo

    def finished(self) -> list[StreamGroup]:
        """The groups that were forgotten since the last call."""
        finished, self._finished = self._finished, []
        return finished
