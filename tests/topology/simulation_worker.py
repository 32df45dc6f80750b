"""A worker of the simulation: one process with its planner, its view of the group, its open transaction.

The order of its steps is that of the real one; each step may be its last.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connector.topology import Held, Observed, Planner, Read, Sweep, beyond
from connector.topology.commits import Commit
from tests.topology.simulation_kafka import Stored, Transaction
from tests.topology.worlds import GRACE, Row

if TYPE_CHECKING:
    from tests.topology.simulation import Simulation


TRIES = 10  # of what was not in time, before it is given up


@dataclass
class Rules:
    """The safety of what surrounds the planner; each switch takes one rule out."""

    fence_owners: bool = True
    wait_for_pending: bool = True
    wait_for_high_watermark: bool = True
    name_touched_slots: bool = True
    drop_old_pages: bool = True
    caught_up_first: bool = True
    release_after_unknown: bool = True
    transactions_time_out: bool = True
    search_heirs: bool = True


@dataclass(eq=False)
class Restoring:
    step: int = 0
    end: int = 0


@dataclass(eq=False)
class ActiveRead:
    read: Read
    rows: list[Row]
    at: int = 0


@dataclass(eq=False)
class ActiveSweep:
    """A look for rows in many groups: its first pages are read at once, its end is told later."""

    sweep: Sweep
    found: dict[bytes, int]


@dataclass(eq=False)
class ActiveLook:
    """A look beyond the end of a group: what it found, who must stand still, what may be delivered of it."""

    read: Read
    rows: list[Row]
    held: Held | None = None
    searched: int = 0
    verdicts: list[tuple[Row, bool]] | None = None


class HastyPlanner(Planner):
    """The product's planner; only what counts as far behind is fitted to a log that is 100 ms long."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        for plan in self.tables.values():
            plan.laggard_ms, plan.search_ms, plan.last_look = 15, 1, 2


@dataclass
class Pace:
    """How often things happen; drawn per run, so that every race gets runs in which it is likely."""

    time: float
    poll: float
    answer: float
    restore: float
    interrupt: float
    markers: float
    marks: float
    trouble: float
    kill_in_commit: float
    fail: float
    compaction: float
    forget: float
    sweep: float

    @classmethod
    def draw(cls, rng: random.Random) -> Pace:
        return cls(
            time=rng.choice([0.6, 0.3, 0.1]),
            poll=rng.choice([0.15, 0.15, 0.04, 0.015]),
            answer=rng.choice([0.1, 0.5, 1.0]),
            restore=rng.choice([0.1, 0.5]),
            interrupt=rng.choice([0.02, 0.1, 0.4]),
            markers=rng.choice([0.3, 0.05, 0.01]),
            marks=rng.choice([0.3, 0.3, 0.05]),
            trouble=rng.choice([0.0, 0.01, 0.02]),
            kill_in_commit=rng.choice([0.0, 0.01]),
            fail=rng.choice([0.0, 0.0, 0.02]),
            compaction=rng.choice([0.0, 0.01, 0.1]),
            forget=rng.choice([0.0, 0.0, 0.05]),
            # Last, so that what else is drawn stays as it was.
            sweep=rng.choice([0.0, 0.3, 1.0]),
        )


class Worker:
    """One process: its planner, its view of the group, its open transaction."""

    def __init__(self, sim: Simulation, name: str) -> None:
        self.sim = sim
        self.name = name
        self.rng = sim.rng
        self.skew = sim.rng.choice([0, 0, -1, 1])
        self.planner = HastyPlanner(
            [sim.world.table],
            slots=sim.kafka.slots,
            owner=name,
            confidence_ms=sim.world.confidence,
            lookback_ms=sim.lookback,
            grace_ms=GRACE,
        )
        self.table = self.planner.tables[sim.world.table]
        self.assigned: set[int] = set()
        self.restoring: dict[int, Restoring] = {}
        self.offsets = [0] * sim.kafka.slots
        self.awaited = [sim.kafka.high_watermark(slot) for slot in range(sim.kafka.slots)]
        self.caught_up: set[int] = set()
        self.transaction: Transaction | None = None
        self.committing: list[object] = []
        self.commit: Commit | None = None
        self.reads: list[ActiveRead] = []
        self.looks: list[ActiveLook] = []
        self.sweeps: list[ActiveSweep] = []
        self.tries: Counter[bytes] = Counter()
        self.polling: tuple[int, list[int]] | None = None
        self.failed = False
        self.node = sim.rng.randrange(len(sim.world.lags))
        self.epoch = sim.kafka.fence(name)

    @property
    def now(self) -> int:
        return self.sim.now + self.skew

    # -- one step --------------------------------------------------------------------------------------------

    def step(self) -> None:
        if self.committing:
            self.commit_step()
            return
        pace = self.sim.pace
        if self.polling is not None and self.rng.random() < pace.answer:
            self.poll()
            return
        if self.restoring and self.rng.random() < pace.restore:
            self.restore_step(self.rng.choice(sorted(self.restoring)))
            return
        if self.rng.random() < 0.002 and not self.sim.calm:
            self.skew = self.rng.choice([-40, -1, 0, 1])
        if self.sweeps and self.rng.random() < 0.2:
            self.sweep_step(self.rng.choice(self.sweeps))
            return
        if self.looks and self.rng.random() < 0.3:
            self.look_step(self.rng.choice(self.looks))
            return
        kind = self.rng.random()
        if kind < pace.poll:
            self.poll()
        elif 0.15 < kind < 0.30:
            self.follow()
        elif 0.30 < kind < 0.55:
            world = self.sim.world
            if self.rng.random() < pace.sweep:
                for sweep in self.planner.sweeps(self.now, self.rng.choice([1, 10])):
                    self.sweeps.append(ActiveSweep(sweep, world.first_rows(sweep, self.sim.now)))
            for read in self.planner.plan(self.now, self.rng.randint(1, 3)):
                streams = read.streams
                rows = world.query(streams, read.read_to, read.after, read.limit, self.sim.now)
                self.reads.append(ActiveRead(read, rows))
            for read in self.planner.looks(self.now, self.rng.randint(0, 2)):
                found = world.query(read.streams, read.read_to, None, read.limit, self.sim.now)
                rows = [row for row in found if beyond(read.state, row.stream, row.time)]
                self.looks.append(ActiveLook(read, sorted(rows, key=lambda row: row.order)))
        elif kind < 0.85 and self.reads:
            self.read_step(self.rng.choice(self.reads))
        elif kind < 0.93:
            if self.transaction or self.planner.commit_due(self.now):
                self.begin_commit(self.rng.random() < pace.marks)
        elif kind < 0.97:
            self.begin_commit(True)
        elif self.transaction is not None and kind < 0.98:
            self.abort()

    def poll(self) -> None:
        """A poll takes its time: asked now, answered some steps later."""
        world = self.sim.world
        if self.polling is None:
            # Mostly the same node again: a node that lags is then believed for a while.
            if self.rng.random() < 0.3:
                self.node = self.rng.randrange(len(world.lags))
            self.polling = (self.now, world.timestamps(self.node, self.sim.now))
            return
        started, timestamps = self.polling
        self.polling = None
        wanted = self.table.wanted(timestamps, self.now)
        observed = self.table.observe(world.view(timestamps, wanted), started)
        assert observed is not Observed.EMPTY

    def follow(self, everything: bool = False) -> None:
        """Any prefix of what is visible in a slot, as far as it is read."""
        kafka = self.sim.kafka
        slots = range(kafka.slots) if everything else [self.rng.randrange(kafka.slots)]
        for slot in slots:
            stable = kafka.stable_offset(slot)
            end = stable if everything else self.rng.randint(self.offsets[slot], max(self.offsets[slot], stable))
            records = kafka.committed(slot, self.offsets[slot], end)
            self.offsets[slot] = max(end, self.offsets[slot])
            # The end of now: what lies before it may have been compacted in favour of anything up to it.
            if end == stable and end >= self.awaited[slot]:
                self.caught_up.add(slot)
            caught_up = slot in self.caught_up or not self.sim.rules.caught_up_first
            self.planner.follow(records, [slot] if caught_up else [])

    # -- the group -------------------------------------------------------------------------------------------

    def assign(self, slot: int) -> None:
        self.assigned.add(slot)
        self.restoring[slot] = Restoring()

    def revoke(self, slot: int) -> None:
        """In good order: the open transaction is committed or aborted before the slot moves on."""
        self.finish_transaction()
        self.assigned.discard(slot)
        self.restoring.pop(slot, None)
        self.planner.release([slot])

    def lost(self) -> None:
        """The group threw us out, and we notice: abort, and begin anew."""
        self.abort()
        self.planner.release(sorted(self.assigned))
        self.assigned.clear()
        self.restoring.clear()
        self.sim.kafka.members.add(self.name)

    def finish_transaction(self) -> None:
        if self.transaction is None and not self.committing:
            return
        if not self.committing and self.rng.random() < 0.4:
            self.abort()
            return
        if not self.committing:
            self.begin_commit(False)
        while self.committing and self in self.sim.workers:
            self.commit_step()

    def restore_step(self, slot: int) -> None:
        """The steps of taking over a slot, in their order; each may find that it has to wait."""
        kafka, rules, state = self.sim.kafka, self.sim.rules, self.restoring[slot]
        if state.step == 0:
            if rules.fence_owners:
                stable = kafka.stable_offset(slot)
                newest: dict[str, Stored] = {r.text: r for r in kafka.committed(slot, 0, stable)}
                owners = {_owner(record) for record in [*newest.values(), *kafka.uncommitted(slot, stable)]}
                for owner in owners - kafka.members - {None}:
                    assert owner is not None
                    kafka.fence(owner)
            state.step = 1
        elif state.step == 1:
            if not rules.wait_for_pending or not kafka.pending(slot):
                state.end = kafka.high_watermark(slot)
                state.step = 2
        else:
            stable = kafka.stable_offset(slot)
            if stable >= state.end or not rules.wait_for_high_watermark:
                self.planner.restore(slot, kafka.committed(slot, 0, stable))
                del self.restoring[slot]

    # -- transactions ----------------------------------------------------------------------------------------

    def read_step(self, active: ActiveRead) -> None:
        read = active.read
        if not self.planner.is_current(read) and self.sim.rules.drop_old_pages:
            self.reads.remove(active)
            return
        if active.at < len(active.rows):
            for _ in range(self.rng.randint(1, 4)):
                if active.at == len(active.rows):
                    break
                row = active.rows[active.at]
                if self.transaction is None:
                    self.transaction = self.sim.kafka.begin(self.name, self.epoch)
                self.sim.kafka.produce_row(self.transaction, row)
                self.planner.advance(read, row.stream, row.time)
                active.at += 1
            if self.rng.random() < self.sim.pace.interrupt:
                self.planner.interrupt(read)
                self.reads.remove(active)
            elif self.rng.random() < self.sim.pace.fail and not self.sim.calm:
                self.planner.fail(read, "a row that cannot be encoded")
                self.failed = True
                self.reads.remove(active)
            return
        self.reads.remove(active)
        early = self.rng.random() < 0.1 and not active.rows
        self.planner.finish(read, self.rng.randint(read.read_to, read.limit) if early else None)

    def sweep_step(self, active: ActiveSweep) -> None:
        """It may be void by now, or break off."""
        self.sweeps.remove(active)
        if self.rng.random() < self.sim.pace.interrupt / 2:
            self.planner.unswept(active.sweep)
        else:
            self.planner.swept(active.sweep, active.found)

    def look_step(self, look: ActiveLook) -> None:
        """Hold, then search, then deliver a few, then end: anything may happen in between."""
        read, sim = look.read, self.sim
        if not self.planner.is_current(read):
            self.looks.remove(look)
        elif not look.rows:
            self.looks.remove(look)
            self.planner.finish_look(read, False, self.now)
        elif look.held is None:
            look.held = self.planner.hold(read, self.now)
            if look.held is None:
                self.looks.remove(look)
                self.planner.look_later(read, self.now)
        elif look.verdicts is None:
            newest: dict[int, int] = {}
            for one in look.held.relatives if sim.rules.search_heirs else ():
                upto = sim.now + 1_000 if one.upto is None else one.upto
                for row in sim.world.query(one.streams, look.rows[0].ms, None, upto, sim.now):
                    newest[row.key] = max(newest.get(row.key, 0), row.order)
            tired = look.held.within_ms is not None and self.tries[read.streams[0]] >= TRIES
            if tired:
                sim.excused.update(row.number for row in look.rows)
            look.verdicts = [(row, not tired and newest.get(row.key, 0) <= row.order) for row in look.rows]
            look.searched = sim.now
            if look.held.within_ms is not None and self.rng.random() < 0.7:
                self.deliver(look)
        elif look.verdicts:
            self.deliver(look)
        else:
            self.looks.remove(look)
            self.planner.finish_look(read, True, self.now)

    def deliver(self, look: ActiveLook) -> None:
        """Those who must be quick are, but anything may come in between."""
        assert look.held is not None
        while look.verdicts and self.planner.is_current(look.read):
            if self.too_late(look):
                self.tries[look.read.streams[0]] += 1
                self.looks.remove(look)
                self.abort()
                return
            self.hand_on(look)
            if look.held.within_ms is None or self.rng.random() < 0.2:
                return

    def too_late(self, look: ActiveLook) -> bool:
        """Other workers may deliver by now what could not be seen when their logs were searched."""
        within = look.held.within_ms if look.held is not None else None
        tired = within is None or self.tries[look.read.streams[0]] >= TRIES
        return not tired and self.sim.now - look.searched >= within

    def hand_on(self, look: ActiveLook) -> None:
        kafka, read = self.sim.kafka, look.read
        assert look.verdicts
        row, deliver = look.verdicts.pop(0)
        if self.transaction is None:
            self.transaction = kafka.begin(self.name, self.epoch)
        (kafka.produce_row if deliver else kafka.refuse_row)(self.transaction, row)
        self.planner.advance(read, row.stream, row.time)
        if self.rng.random() < self.sim.pace.interrupt / 4:
            self.planner.interrupt(read)

    def begin_commit(self, move_marks: bool) -> None:
        # Sometimes marks follow the time at once, sometimes only when they are older.
        self.commit = self.planner.commit_entries(self.now, move_marks, self.now // 7 % 3 * 500)
        if not self.commit.entries and self.transaction is None:
            self.planner.committed()
            return
        self.committing = [*self.commit.entries, "send", "commit"]

    def commit_step(self) -> None:
        kafka = self.sim.kafka
        if self.transaction is None:
            self.transaction = kafka.begin(self.name, self.epoch)
        for _ in range(self.rng.randint(1, 6)):
            if not self.sim.calm and self.rng.random() < self.sim.pace.kill_in_commit and self in self.sim.workers:
                self.sim.kill(self)
                return
            what = self.committing[0]
            if what == "send":
                assert self.commit is not None
                slots = self.commit.slots if self.sim.rules.name_touched_slots else frozenset()
                if not kafka.send_offsets(self.transaction, slots):
                    self.refused()
                    return
                self.committing.pop(0)
                return
            if what == "commit":
                self.decide()
                return
            self.committing.pop(0)
            assert not isinstance(what, str)
            kafka.produce_entry(self.transaction, what)  # type: ignore[arg-type]

    def decide(self) -> None:
        """The commit itself; now and then its outcome stays unknown to us."""
        kafka, transaction = self.sim.kafka, self.transaction
        assert transaction is not None
        if self.rng.random() < 0.03:
            if self.rng.random() < 0.5:
                kafka.commit(transaction)
            else:
                kafka.abort(transaction)
            self.start_over()
            return
        if not kafka.commit(transaction):
            self.refused()
            return
        self.sim.commits += 1
        self.transaction, self.committing = None, []
        self.planner.committed()

    def refused(self) -> None:
        """No member any more, or our id was taken by whoever fenced us."""
        transaction = self.transaction
        assert transaction is not None
        if transaction.fenced:
            self.start_over()
        if self.name not in self.sim.kafka.members:
            self.lost()
        elif self.transaction is not None:
            self.start_over()

    def abort(self) -> None:
        transaction, self.transaction, self.committing = self.transaction, None, []
        if transaction is not None and not self.sim.kafka.abort(transaction):
            self.forget()
            return
        self.planner.aborted()

    def start_over(self) -> None:
        """A new producer, whose `init_transactions` ends what the old one left; nothing in memory is valid."""
        self.epoch = self.sim.kafka.fence(self.name)
        self.transaction, self.committing = None, []
        if self.sim.rules.release_after_unknown:
            self.forget()
        else:
            self.planner.aborted()

    def forget(self) -> None:
        self.planner.forget()
        for slot in self.assigned:
            self.restoring[slot] = Restoring()


def _owner(record: Stored) -> str | None:
    return None if record.value is None else record.value.get("owner")
