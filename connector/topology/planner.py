"""The planner of one worker: all tables of the connector over the slots that the worker owns or follows.

In: slots restored, followed, released; the time. Out: reads, fair between tables (`turns.py`); and, per transaction,
the ordered entries for the offsets topic. The steps and their order are told in the room's docstring
(`connector.topology`); which of them belong to whom, in `roles.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from connector.offsets_entry import OffsetsEntry
from connector.table_name import TableName
from connector.topology import arcs, looks, snapshots, sweeps
from connector.topology.arcs import Arc
from connector.topology.book import SlotBook
from connector.topology.commits import Commit, entries
from connector.topology.groups import Read, Sweep
from connector.topology.lineage import Observed, View
from connector.topology.looks import Held
from connector.topology.offsets import Inside
from connector.topology.sets import StreamGroup
from connector.topology.snapshot_state import Event, Opening, Span, Wish
from connector.topology.standing import slots_stand
from connector.topology.table_reader import TableReader
from connector.topology.table_state import TableState
from connector.topology.turns import Turns
from connector.topology.waiting import Waiting, waiting_in


class Planner:
    """``owner`` is this process's ``client.id``, written into the marks; ``slots`` the P that rules (see
    `noted_slots`). ``voids`` counts how often reads were taken back. With ``initial_snapshot`` a table that is started
    gets a snapshot, with ``snapshot_start``, the name of this start of the connector, every one, and with
    ``snapshot_when_needed`` one of which changes expired unread. Nothing from ``until_ms`` on is read."""

    def __init__(
        self,
        tables: Iterable[TableName],
        *,
        slots: int,
        owner: str,
        confidence_ms: int,
        lookback_ms: int = 0,
        grace_ms: int | None = None,
        initial_snapshot: bool = False,
        snapshot_start: str | None = None,
        snapshot_when_needed: bool = False,
        until_ms: int | None = None,
    ) -> None:
        self.book = SlotBook(slots, owner)
        self.voids = 0
        self._hears_from: int | None = None
        self._hears: str | None = None
        self._events: list[Event] = []

        def plan_of(table: TableName) -> TableReader:
            plan = TableReader(table, self.book, confidence_ms, lookback_ms, grace_ms, initial_snapshot)
            plan.snapshots.start, plan.snapshots.when_needed = snapshot_start, snapshot_when_needed
            plan.snapshots.hears_from, plan.snapshots.hears = self._hears_from, self._hears
            plan.until_ms = until_ms
            # One list for all of them: it is looked at in every round.
            plan.snapshots.events = self._events
            return plan

        self._plan_of = plan_of
        self._plans = {table: plan_of(table) for table in tables}
        self._turns = Turns(self._plans, self.book)

    @property
    def tables(self) -> Mapping[TableName, TableState]:
        """Each table's plan, to look at; it is changed through this class alone."""
        return self._plans

    # -- which tables ----------------------------------------------------------------------------------------

    def take_table(self, table: TableName) -> None:
        """One more: it is claimed in the slots that are ours, and goes on where it stood when it was read before."""
        self._plans[table] = self._plan_of(table)
        self.book.stirs += 1

    def drop_table(self, table: TableName) -> None:
        """One less, after the open transaction was committed or aborted: its reads are taken back, and what is
        committed of it stays."""
        self.voids += 1
        plan = self._plans.pop(table)
        plan.release(list(plan.active))

    def stored(self, table: TableName) -> list[OffsetsEntry]:
        """What is committed of a table in the slots that are ours, whether it is read or not."""
        return [entry for slot, ledger in self.book.own.items() for entry in ledger.entries(slot, table)]

    # -- stream sets -----------------------------------------------------------------------------------------

    def identify(self, table: TableName, log: str, listed: Iterable[int]) -> bool:
        """Of which log the timestamps are that a node lists; asked before all else. False: of another one than before,
        whose sets cannot follow those that are known. All of the table stands until the next commit or abort, from
        where on it is read as if this process had just started."""
        return self._plans[table].identify(log, listed)

    def is_former(self, table: TableName, log: str) -> bool:
        """Whether that is the log of a table that had the name before the one that is read; as a node says that has not
        heard of it yet."""
        return self._plans[table].is_former(log)

    def wanted(self, table: TableName, listed: Iterable[int], now: int) -> tuple[int, ...]:
        """Of the timestamps that a node lists, those whose sets `observe` needs."""
        return self._plans[table].wanted(listed, now)

    def observe(self, table: TableName, view: View, polled_at: int) -> Observed:
        """Take in the answer to a poll that *started* at ``polled_at``."""
        return self._plans[table].observe(view, polled_at)

    def fail_table(self, table: TableName, reason: str, gone: bool = False) -> None:
        """Nothing of the table is read any more. ``gone``: unless it is there again, which is looked for."""
        self._plans[table].fail_table(reason, gone)

    def revive_table(self, table: TableName) -> None:
        """It is read again, from where it stood."""
        self._plans[table].revive()

    # -- slots -----------------------------------------------------------------------------------------------

    def restore(self, slot: int, records: Iterable[OffsetsEntry]) -> None:
        """A newly assigned slot: everything committed in its partition, oldest first. Its claim becomes part
        of the next commit; nothing of it is read before that commit has succeeded."""
        self.release([slot])
        self.book.restore(slot, records)

    def follow(self, records: Iterable[OffsetsEntry], caught_up: Collection[int]) -> None:
        """What became visible in any slots, in each partition's order, from its beginning.

        ``caught_up`` are the slots that have been read to their end (an end-of-partition event, not a high watermark
        that was noted before); records of others wait. Own slots may be included, but after a release they count only
        when they are followed again.
        """
        changed = self.book.follow(records, caught_up)
        for plan in self._plans.values():
            plan.followed(changed)

    def follow_anew(self) -> None:
        """What was followed may have holes, since it was read late: nothing of it counts until it is followed again."""
        self.book.follow_anew()

    def release(self, slots: Iterable[int]) -> None:
        """Slots that were revoked or lost, after the open transaction was committed or aborted (and
        `committed` or `aborted` called). After an unknown outcome or a fatal producer error: `forget`."""
        gone = [slot for slot in slots if slot in self.book.own]
        self.voids += 1
        if not gone:
            return
        for slot in gone:
            self.book.release(slot)
        for plan in self._plans.values():
            plan.release(gone)

    def forget(self) -> list[int]:
        """No position in memory is valid any more: release all slots; they are returned, to be restored."""
        slots = sorted(self.book.own)
        self.aborted()
        for plan in self._plans.values():
            plan.doubt()
        self.release(slots)
        return slots

    @property
    def owned(self) -> frozenset[int]:
        return frozenset(self.book.own)

    # -- reading ---------------------------------------------------------------------------------------------

    def plan(self, now: int, count: int, narrowest: int = 1) -> list[Read]:
        """Up to ``count`` reads, the most behind of all tables first. Each stands until `finish`, `interrupt`
        or `fail`."""
        return self._turns.reads(now, count, narrowest)

    def sweeps(self, now: int, every_ms: int, but: Collection[TableName] = ()) -> list[Sweep]:
        """Those that are due, of each table one every ``every_ms``; each stands until `swept` or `unswept`. In the
        tables ``but``, and for who asks for none, no group is silent."""
        return self._turns.sweeps(now, every_ms, but)

    def is_sweeping(self, sweep: Sweep) -> bool:
        """The sweep still stands."""
        plan = self._plans.get(sweep.table)
        return plan is not None and plan.sweep is sweep

    def parts(self, sweep: Sweep, arc: Arc) -> Sequence[Arc]:
        """What to ask for in place of one of its arcs that was refused; nothing, if it cannot be divided."""
        return arcs.parts(self._plans[sweep.table], arc)

    def swept(
        self,
        sweep: Sweep,
        found: Mapping[bytes, int],
        narrowest: int = 1,
        through: Sequence[Arc] | None = None,
        pause_ms: int = 0,
    ) -> bool:
        """The whole sweep was read, or the arcs ``through``; ``found`` is the ms of the first row of each stream that
        has one. The others are read one by one, for so long at least."""
        return sweeps.finish(self._plans[sweep.table], sweep, found, narrowest, through, pause_ms)

    def unswept(self, sweep: Sweep) -> None:
        """The sweep did not get through: its groups are read one by one."""
        sweeps.give_up(self._plans[sweep.table], sweep)

    def looks(self, now: int, count: int) -> list[Read]:
        """Up to ``count`` reads beyond the ends of closed streams; each stands until `finish_look`, `interrupt` or
        `fail`."""
        return self._turns.looks(now, count)

    def hold(self, read: Read, now: int) -> Held | None:
        """Let those stand still that may deliver later rows of what a look found; None: it is not the time."""
        self.voids += 1
        return looks.hold(self._plans[read.table], read, now)

    def finish_look(self, read: Read, found: bool, now: int) -> bool:
        return looks.finish(self._plans[read.table], read, found, now)

    def look_later(self, read: Read, at: int) -> None:
        """A look that came to nothing is begun anew, not before ``at``."""
        read.state.look_at = at
        self.interrupt(read)

    def is_current(self, read: Read) -> bool:
        """The read still stands; pages of one that does not are dropped."""
        plan = self._plans.get(read.table)
        return plan is not None and plan.is_current(read)

    def advance(self, read: Read, stream: bytes, time: bytes) -> bool:
        return self._plans[read.table].advance(read, stream, time)

    def finish(self, read: Read, read_to: int | None = None) -> bool:
        return self._plans[read.table].finish(read, read_to)

    def interrupt(self, read: Read) -> None:
        self._plans[read.table].interrupt(read)

    def fail(self, read: Read, reason: str) -> None:
        self._plans[read.table].fail(read, reason)

    def try_again(self, read: Read) -> bool:
        """The group of this read, which failed, may be mended: False where there is nothing to be tried."""
        plan = self._plans.get(read.table)
        return plan is not None and plan.try_again(read.state)

    # -- snapshots -------------------------------------------------------------------------------------------

    def openings(self, now: int) -> list[Opening]:
        """The groups of ours that still have rows of a snapshot to place. Each stands while `stands` says so."""
        return [opening for plan in self._plans.values() for opening in snapshots.refresh(plan, now)]

    def is_open(self, opening: Opening) -> bool:
        """What was read for it may still be placed."""
        plan = self._plans.get(opening.table)
        return plan is not None and snapshots.is_open(plan, opening)

    def stands(self, opening: Opening) -> int | None:
        """Rows may be placed now: as of this ms, exclusive."""
        return snapshots.stands(self._plans[opening.table], opening)

    def placed(self, opening: Opening, span: Span, inside: Inside | None = None) -> None:
        """All rows of its tokens in the span, and those ``inside`` the partition behind it, were produced in the open
        transaction, or there are none."""
        snapshots.place(self._plans[opening.table], opening, span, inside)

    def need_snapshot(self, table: TableName, slot: int, since: int) -> None:
        """Changes of the slot have expired unread, the first of them at ``since`` (ms)."""
        snapshots.need(self._plans[table], slot, since)

    def keeps(self, table: TableName, ttl: int, now: int) -> None:
        """What is written to the table's log is kept for ``ttl`` seconds from now on."""
        plan = self._plans[table]
        marks = ((slot, plan.own_ledger(slot)) for slot in plan.active)
        noted = ((slot, None if own is None or own.mark is None else own.mark.ttl) for slot, own in marks)
        plan.kept.tell(ttl, now, noted, {} if ttl == plan.kept.ttl else slots_stand(plan))

    def hear_from(self, number: int, topic: str | None = None) -> None:
        """Wishes are heard from now on, of this topic, and not of one before; of tables of which nothing is noted,
        those from this number on count."""
        self._hears_from, self._hears = number, topic
        for plan in self._plans.values():
            plan.snapshots.hears_from, plan.snapshots.hears = number, topic
            plan.snapshots.wishes.clear()

    def wish(self, table: TableName, wish: Wish) -> None:
        """In the order of their numbers; whoever has the table's home slot grants it."""
        self._plans[table].snapshots.wishes.append(wish)

    def snapshot_events(self) -> list[Event]:
        """What this worker has committed of snapshots since the last call."""
        found = self._events[:]
        self._events.clear()
        return found

    # -- transactions ----------------------------------------------------------------------------------------

    def commit_due(self, now: int) -> bool:
        """A transaction is worth opening without data: a claim can be made, or others wait for what was
        delivered."""
        return self._turns.commit_due(now)

    def commit_entries(self, now: int, move_marks: bool = False, idle_ms: int = 0) -> Commit:
        """End the transaction's contents: the entries that make everything produced so far count.

        Always call it before a commit; then `committed` or `aborted` (or `forget`). With ``move_marks``
        (every 5 s) the marks follow the time, those of slots in which nothing happens only when they are
        ``idle_ms`` old, and not of all tables at once; without, only what changed is written. Empty entries: nothing to
        say, and if no record was produced either, there is nothing to commit: call `committed`.
        """
        positions: list[OffsetsEntry] = []
        marks: list[OffsetsEntry] = []
        touched: set[int] = set()
        for plan, idle in self._turns.marks(idle_ms, move_marks):
            touched.update(state.slot for state in plan.fresh)
            staged = plan.stage(now, move_marks, idle)
            first, last = entries(plan, staged)
            positions += first
            marks += last
        touched.update(entry.slot for entry in positions)
        touched.update(entry.slot for entry in marks)
        return Commit((*positions, *marks), frozenset(touched))

    def committed(self) -> None:
        for plan in self._plans.values():
            plan.committed()
        self._begin_anew()

    def aborted(self) -> None:
        self.voids += 1
        for plan in self._plans.values():
            plan.aborted()
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Tables that were created again. Nothing of them is under way now."""
        for table in [table for table, plan in self._plans.items() if plan.anew]:
            self.drop_table(table)
            self.take_table(table)

    # -- looking at it ---------------------------------------------------------------------------------------

    def waiting(self, now: int) -> Iterator[Waiting]:
        """Everything that this worker should read and does not, with the reasons."""
        for plan in self._plans.values():
            yield from waiting_in(plan, now)

    def finished(self) -> list[tuple[TableName, StreamGroup]]:
        """Groups that were forgotten since the last call: closed, delivered, committed."""
        return [(table, group) for table, plan in self._plans.items() for group in plan.finished()]
