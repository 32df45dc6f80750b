"""The plan of one table: what of its log may be read now, by this worker, and how far.

In: stream sets as they are observed, slots as they are claimed, progress as rows are produced, the time. Out:
`Read`s, each a permission for one query. What must be committed is computed by `commits.py` from the same
state.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from connector.timeuuid import made_ticks
from connector.topology import claims, commits, looks, snapshots
from connector.topology.groups import GroupState, Read
from connector.topology.ledger import start_of
from connector.topology.lineage import Observed, View
from connector.topology.offsets import Position
from connector.topology.sets import StreamGroup
from connector.topology.table_state import Staged, TableState


class TableReader(TableState):
    """Changes the state of a table; owned by one thread."""

    # -- stream sets -----------------------------------------------------------------------------------------

    def identify(self, log: str, listed: Iterable[int]) -> bool:
        """Take the listed timestamps for those of ``log``. False: this table is another one than the one that is read,
        and its sets do not come after those, as where one of the old ones was still ahead."""
        if self.anew:
            return False
        newest = self.lineage.newest
        if newest is not None and log != self.log and any(at <= newest.timestamp for at in listed):
            self.anew = True
            self.book.stirs += 1
            return False
        self.log = log
        return True

    def is_former(self, log: str) -> bool:
        """Whether a log is of a table that had the name before: of one that was made later somebody has read."""
        made = made_ticks(log)
        marks = (ledger.mark for ledger in self.book.ledgers(self.table))
        known = {self.log, *(mark.log for mark in marks if mark is not None)} - {None, log}
        later = [since for each in known if (since := made_ticks(each or "")) is not None]
        return made is not None and any(made < since for since in later)

    def wanted(self, timestamps: Iterable[int], now: int) -> tuple[int, ...]:
        """Of the timestamps that a node lists, those whose sets `observe` needs. Fewest once all slots are
        known."""
        return self.lineage.wanted(timestamps, claims.horizon(self, now) if self.newest is None else None)

    def observe(self, view: View, polled_at: int) -> Observed:
        """Take in the answer to a poll that *started* at ``polled_at``; only a FRESH one counts as a
        successful poll."""
        before = self.lineage.newest
        news = before is not None and any(at > before.timestamp for at in view.timestamps)
        # Where a mark knew of sets that we did not, nothing was read: groups stand where it says, beyond ends that only
        # its writer knew of. Taken for read, what came late into them would be in no look.
        unread = {slot for slot in self.active if not self.knows_enough(slot)} if news else set()
        observed, added = self.lineage.observe(view)
        if observed is not Observed.FRESH:
            return observed
        self.polled_at = polled_at
        if self.lineage.newest is not before:
            looks.end(self)
            snapshots.new_set(self)
            for state in (*added, *(state for slot in unread for state in self.lineage.groups(slot))):
                if state.slot in self.active:
                    self._place(state)
            self._prune()
            self._sort_anew()
        return observed

    # -- slots -----------------------------------------------------------------------------------------------

    def release(self, slots: Iterable[int]) -> None:
        """The slots belong to somebody else. The open transaction was committed or aborted before."""
        looks.end(self)
        slots = list(slots)
        snapshots.close(self, slots)
        for slot in slots:
            self.active.discard(slot)
            self.silences.pop(slot, None)
            self.orphans.pop(slot, None)
            for state in self.lineage.groups(slot):
                state.reading = None
                state.worked()
                state.delivered = {}
                state.recorded = set()
                state.late, state.looked, state.look_at, state.look_past = {}, False, 0, 0
                state.stir()
                self._undo.pop(state, None)
                self.fresh.pop(state, None)
        self._sort_anew()

    def doubt(self) -> None:
        """The last commit may not have happened: the gates that it opened are shut again."""
        for state, gate in self._taken_down:
            state.gates = sorted([gate, *state.gates], key=lambda each: each.at)
        self._taken_down.clear()

    def followed(self, slots: Iterable[int]) -> None:
        """Other workers' slots moved on: look again at whoever waits for streams in them."""
        for slot in slots:
            for witness in self._parked.pop(slot, ()):
                self._wake(witness)

    def _activate(self, slots: Iterable[int]) -> None:
        looks.end(self)
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
        if state.close is not None:
            looks.place(state, ledger, self.as_ours(ledger.mark), state.close)

    # -- what may be read ------------------------------------------------------------------------------------

    def plan(self, now: int, count: int, narrowest: int = 1) -> list[Read]:
        """At most ``count`` reads, the most behind first, none narrower than ``narrowest`` ms while more is
        to come."""
        limit = self.limit(now)
        if limit is None:
            return []
        self.last_limit = limit
        if limit == self.until_ms:
            narrowest = 1  # nothing more is to come
        reads: list[Read] = []
        while self._heap and len(reads) < count and self._heap[0][0] + narrowest <= limit:
            at, _, state = heapq.heappop(self._heap)
            state.queued = False
            cap = self._cap(state, limit)
            if state.turn != at or not self._ready(state) or state.read_to >= cap:
                self.settle(state)
                continue
            streams, start, upto = state.next_read(cap)
            read = Read(self.table, state.slot, state, streams, start.read_to, start.after, upto)
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

    def _wake(self, witness: GroupState) -> None:
        waiters, witness.waiters = witness.waiters, []
        for state in waiters:
            self.settle(state)

    def _sort_anew(self) -> None:
        """Sort all groups anew after sets, claims or an abort have changed what waits for what."""
        self._heap.clear()
        self._parked.clear()
        self.announced.clear()
        # A sweep was begun for other groups, or other slots.
        self.sweep, self.sweep_due, self._arcs, self.pieces = None, 0, None, None
        self.refused = {state for state in self.refused if state.slot in self.active and state.close is None}
        self._enough = self._groups = self.oldest_mark = self.silent_to = None
        self.book.stirs += 1
        by_slot = {
            slot: {state: None for state in self.lineage.groups(slot) if state.silence is None} for slot in self.active
        }
        self._awake = {slot: awake for slot, awake in by_slot.items() if awake}
        for state in self.states():
            state.queued = False
            state.swept = None
            state.waiters = []
            for gate in state.gates:
                for source in gate.before:
                    source.waiters = []
        for slot in self.active:
            for state in self.awake_in(slot):
                self.settle(state)
                self._announce(state)

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
        self.touch(state)
        if read.late:
            state.delivered_late(stream, time)
        else:
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
        # What is known to be silent stays known after an abort, where nothing was produced and nobody had to be waited
        # for: whoever waits for this group takes its place for that of all who came before it.
        if state.gates or state.again or state in self._undo or state in self._undo_later:
            self.touch(state)
        state.reading = None
        state.read_ended(read.streams, read.limit if read_to is None else min(read_to, read.limit))
        state.cap_at_close()
        self._progressed(state)
        self.settle(state)
        return True

    def interrupt(self, read: Read) -> None:
        """The query broke off. What `advance` was told stays; the rest will be planned again."""
        looks.interrupt(self, read)

    def fail(self, read: Read, reason: str) -> None:
        """The group is FAILED: nothing more of it is read, unless it is tried again; whoever waits for it goes on
        waiting and names the reason."""
        if read.state.reading is read:
            read.state.reading = None
            read.state.failure, read.state.again = reason, False
            looks.let_go(self, read)

    def try_again(self, state: GroupState) -> bool:
        """Plan reads of a FAILED group, which stays FAILED until one of them gets on. False: it is not FAILED here."""
        here = state.slot in self.active and any(state is each for each in self.lineage.groups(state.slot))
        if state.failure is None or not here:
            return False
        state.again = True
        self.settle(state)
        return True

    def fail_table(self, reason: str, gone: bool = False) -> None:
        """All groups of the table are FAILED, as when it is gone."""
        self.failure, self.gone = reason, gone

    def revive(self) -> None:
        """It is there again."""
        self.failure, self.gone = None, False
        self._sort_anew()

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
            self.book.stirs += 1

    # -- transactions ----------------------------------------------------------------------------------------

    def stage(self, now: int, move_marks: bool, idle_ms: int = 0) -> Staged:
        """Compute a commit. What is produced from here on belongs to the next transaction."""
        assert self._staged is None, "the last commit has neither been committed nor aborted"
        self._staged = commits.stage(self, now, move_marks, idle_ms)
        self.fresh = {}
        self.announced = set()
        return self._staged

    def committed(self) -> None:
        """The staged commit is known to have happened."""
        staged, self._staged = self._staged, None
        for state in self._undo:
            if state.again:
                state.worked()
        self._undo, self._undo_later = self._undo_later, {}
        if staged is None:
            return
        if staged.positions or staged.marks:
            # Nobody commits behind a commit that may not have happened: from here on the one before stands.
            self._taken_down.clear()
        commits.settle(self, staged)
        snapshots.committed(self)
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
        snapshots.aborted(self)
        self._undo, self._undo_later = {}, {}
        self.fresh = {}
        for state in self.states():
            state.reading = None
            state.holds = 0
        self.holding.clear()
        self._sort_anew()

    def _prune(self) -> None:
        """Forget groups that are closed, drained by what is committed, and covered by their slot's mark
        alone."""
        self._finished += self.lineage.forget(self._forgets)
        self._groups = None

    def _forgets(self, state: GroupState) -> bool:
        if not self._is_done(state):
            return False
        self._no_more_awake(state)
        return True

    def _is_done(self, state: GroupState) -> bool:
        if state.close is None or not self.committed_to(state, state.close):
            return False
        mark = self.mark_of(state.slot)
        if mark is None or mark.rechecked < state.close:
            return False  # a look is owed, by whoever owns the slot
        if state.slot not in self.active:
            return True
        return not state.recorded and state.reading is None and state not in self._undo

    def finished(self) -> list[StreamGroup]:
        """The groups that were forgotten since the last call."""
        finished, self._finished = self._finished, []
        return finished
