"""Workers against a random world: claims, restore, commit, follow, kills at every step. Pure, one seed one run.

`simulate` drives real planners over the model of Kafka in `simulation_kafka` until the whole log is read, then says
what went wrong: rows lost, rows doubled, keys out of order, or no end. ``python -m tests.topology.simulation 0 10000``
runs many seeds by hand.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import dataclass, field

from tests.topology.simulation_kafka import Kafka, State
from tests.topology.simulation_worker import Pace, Rules, Worker
from tests.topology.worlds import Row, World, make_world

MAX_STEPS = 30_000


@dataclass
class Outcome:
    """``faults`` is empty when all went well."""

    seed: int
    faults: list[str]
    steps: int
    kills: int
    commits: int


@dataclass
class Simulation:
    world: World
    rng: random.Random
    rules: Rules
    slots: int
    lookback: int = 0
    now: int = 0
    kills: int = 0
    commits: int = 0
    names: int = 0
    workers: list[Worker] = field(default_factory=list)
    # Rows that were given up because others were too quick too often.
    excused: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.kafka = Kafka(self.slots)
        self.now = self.world.sets[0].timestamp + self.rng.choice([0, 1, self.rng.randint(0, 200)])
        self.calm = False
        self.pace = Pace.draw(self.rng)
        for _ in range(self.rng.randint(1, 3)):
            self.join()

    def join(self) -> None:
        self.names += 1
        worker = Worker(self, f"w{self.names}")
        self.workers.append(worker)
        self.kafka.members.add(worker.name)
        self.rebalance()

    def rebalance(self) -> None:
        """Hand slots to members, moving those of live owners in good order."""
        members = [worker for worker in self.workers if worker.name in self.kafka.members]
        if not members:
            return
        for slot in range(self.slots):
            holder = next((worker for worker in members if slot in worker.assigned), None)
            if holder is not None and self.rng.random() < 0.6:
                continue
            target = self.rng.choice(members)
            if target is holder:
                continue
            if holder is not None:
                holder.revoke(slot)
            # The holder may have been killed while it committed, and its slots handed out with that.
            present = [worker for worker in self.workers if worker.name in self.kafka.members]
            if target in present and not any(slot in worker.assigned for worker in present):
                target.assign(slot)

    def throw_out(self) -> None:
        """A session ends: the member may be dead, or paused and coming back as a zombie."""
        members = [worker for worker in self.workers if worker.name in self.kafka.members]
        if len(members) < 2:
            return
        victim = self.rng.choice(members)
        self.kafka.members.discard(victim.name)
        self._orphan(victim)

    def _orphan(self, victim: Worker) -> None:
        members = [worker for worker in self.workers if worker.name in self.kafka.members]
        for slot in sorted(victim.assigned):
            if members and not any(slot in worker.assigned for worker in members):
                self.rng.choice(members).assign(slot)

    def kill(self, victim: Worker) -> None:
        self.kills += 1
        self.workers.remove(victim)
        self.kafka.members.discard(victim.name)
        if not any(worker.name in self.kafka.members for worker in self.workers):
            self.join()
        self._orphan(victim)
        if self.rng.random() < 0.7 and len(self.workers) < 3:
            self.join()

    def disturb(self) -> None:
        kind = self.rng.random()
        if kind < 0.35:
            self.kill(self.rng.choice(self.workers))
        elif kind < 0.6:
            self.throw_out()
        elif kind < 0.8:
            self.rebalance()
        elif len(self.workers) < 4:
            self.join()

    def compact(self) -> None:
        for slot in range(self.slots):
            # Records younger than the topic's compaction lag stay: whoever has caught up once reads all of them.
            readers = [worker.offsets[slot] for worker in self.workers if slot in worker.caught_up]
            self.kafka.compact(slot, min(readers, default=len(self.kafka.partitions[slot])))

    def forget_sets(self) -> None:
        """Ttl: the server forgets sets that only expired rows belong to. By then all of them were delivered, and every
        mark has been moved by somebody who knew the set."""
        marks: dict[str, dict[str, int]] = {}
        for partition in self.kafka.partitions:
            for record in partition:
                mark = record is not None and record.value is not None and "owner" in record.value
                if record is not None and record.value and mark and record.transaction.state is State.COMMITTED:
                    marks[record.text] = dict(record.value)
        if len(marks) < self.slots:
            return
        delivered = {row.number for row in self.kafka.delivered()}
        missing = min((row.ms for row in self.expected() if row.number not in delivered), default=self.now)
        bound = min([missing, self.now - 40, *(mark["stream_set"] for mark in marks.values())])
        bound = min([bound, *(min(mark["read_to"], mark["rechecked"]) for mark in marks.values())])
        old = [one.timestamp for one in self.world.sets if one.timestamp <= bound]
        if old:
            self.world.forgotten_before = max(self.world.forgotten_before, max(old))

    def markers(self) -> None:
        for transaction in self.kafka.transactions:
            if transaction.decided and transaction.markers != transaction.partitions and self.rng.random() < 0.5:
                transaction.markers.add(self.rng.choice(sorted(transaction.partitions - transaction.markers)))
        self.kafka.transactions = [
            t for t in self.kafka.transactions if not t.decided or t.markers != t.partitions or t.state is State.OPEN
        ]

    def step(self) -> None:
        if self.rng.random() < self.pace.time:
            self.now += self.rng.choice([1, 1, 2])
        if self.rng.random() < self.pace.markers:
            self.markers()
        if not self.calm and self.rng.random() < self.pace.trouble:
            self.disturb()
        if self.rng.random() < self.pace.compaction:
            self.compact()
        if self.rng.random() < self.pace.forget:
            self.forget_sets()
        self.rng.choice(self.workers).step()

    def settle_down(self) -> None:
        """The end of all disturbances: zombies notice, every slot has an owner."""
        self.calm = True
        self.pace = Pace(0.6, 0.15, 0.5, 0.5, 0.02, 0.3, 0.3, 0.0, 0.0, 0.0, 0.01, 0.0, self.pace.sweep)
        for worker in [worker for worker in self.workers if worker.failed]:
            self.kill(worker)
        for worker in self.workers:
            worker.skew = 0
            if worker.name not in self.kafka.members:
                worker.lost()
        # Transactions of the dead end by their timeout: a zombie may have written one after its successor had looked.
        alive = {worker.name for worker in self.workers}
        for owner in {t.owner for t in self.kafka.transactions if not t.decided} - alive:
            if self.rules.transactions_time_out:
                self.kafka.fence(owner)
        members = [worker for worker in self.workers if worker.name in self.kafka.members]
        for slot in range(self.slots):
            if not any(slot in worker.assigned for worker in members):
                self.rng.choice(members).assign(slot)

    def expected(self) -> list[Row]:
        """Everything at or after the table's start, which the home slot's first mark says."""
        starts = {
            record.value["start"]
            for partition in self.kafka.partitions
            for record in partition
            if record is not None
            and record.value
            and "start" in record.value
            and record.transaction.state is State.COMMITTED
        }
        assert len(starts) <= 1, f"the table was started at {sorted(starts)}"
        return [row for row in self.world.rows if starts and (row.ended or row.ms + 1) > min(starts) <= row.ms]

    def run(self) -> tuple[list[str], int]:
        budget = self.rng.randint(100, 1200)
        for steps in range(MAX_STEPS):
            if steps == budget:
                self.settle_down()
            self.step()
            if self.calm and steps % 25 == 0 and self.idle():
                break
        else:
            waits = [held for worker in self.workers for held in worker.planner.waiting(worker.now)]
            return [*self.faults(), f"no end: {len(waits)} waits, {waits[:1]}"], steps
        return self.faults(), steps

    def idle(self) -> bool:
        """Everybody is past the end of the log."""
        covered: set[int] = set()
        for worker in self.workers:
            if worker.transaction is not None or worker.committing:
                return False
            newest = worker.table.newest
            if newest is None or newest.timestamp < self.world.sets[-1].timestamp:
                continue
            for slot in worker.table.active:
                states = worker.table.lineage.groups(slot)
                done = (state.looked if state.close else state.read_to > self.world.end for state in states)
                if all(done):
                    covered.add(slot)
        return len(covered) == self.slots and self.now > self.world.end + 4 * self.world.confidence

    def faults(self) -> list[str]:
        found: list[str] = []
        delivered, given_up = self.kafka.delivered(), self.kafka.given_up()
        counts = Counter(row.number for row in [*delivered, *given_up])
        wanted = {row.number for row in self.expected()}
        found += [f"row {n} lost" for n in sorted(wanted - set(counts))]
        found += [f"row {n} delivered {c} times" for n, c in sorted(counts.items()) if c > 1]
        found += [f"row {n} from before the start" for n in sorted(set(counts) - wanted)]
        found += [f"row {row.number} given up without need" for row in given_up if not self.must_give_up(row)]
        last: dict[int, Row] = {}
        for row in delivered:
            before = last.get(row.key)
            if before is not None and before.order > row.order and counts[row.number] == 1:
                found.append(f"key {row.key}: row {row.number} behind row {before.number}")
            last[row.key] = row
        return found

    def must_give_up(self, row: Row) -> bool:
        """A later row of the key was delivered before; where other workers were about, it was there to be."""
        if row.number in self.excused:
            return True
        known = self.world.rows if self.names > 1 else self.kafka.delivered()
        return row.ended is not None and any(one.key == row.key and one.order > row.order for one in known)


def simulate(seed: int, rules: Rules | None = None, lookback: int | None = None) -> Outcome:
    world = make_world(seed)
    rng = random.Random(seed ^ 0x5EED)
    drawn = rng.choice([0, 0, 0, rng.randint(1, 100)])
    sim = Simulation(world, rng, rules or Rules(), rng.randint(1, 4), drawn if lookback is None else lookback)
    faults, steps = sim.run()
    return Outcome(seed, faults, steps, sim.kills, sim.commits)


def main(first: int, last: int) -> int:
    bad = 0
    for seed in range(first, last):
        outcome = simulate(seed)
        if outcome.faults:
            bad += 1
            print(seed, outcome.faults[:4], flush=True)
    print(f"{last - first} seeds, {bad} with faults")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
