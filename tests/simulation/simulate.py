"""One seed, one run of the product: random world, random mishaps, then a calm in which everything must come right.

``python -m tests.simulation.simulate FIRST LAST`` runs many by hand, with ``--plan`` those of one kind of world.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field

from tests.simulation import invariants
from tests.simulation.chaos import Chaos, Roughness
from tests.simulation.service import Service, service
from tests.simulation.source_world import BEGIN_MS, Kind, World, make_world

CALM_SECONDS = 180.0
"""In so much virtual time after the last mishap all is delivered, and everybody says RUNNING.

The longest: a change that came late waits a minute for the marks of other workers' silent slots, then ten searches,
five seconds apart, may each take too long to tell whether it is in order; then it is a dead letter.
"""


@dataclass(frozen=True)
class Plan:
    """A kind of runs. What is None is drawn."""

    kind: Kind = field(default_factory=Kind)
    roughness: Roughness = field(default_factory=Roughness)
    workers: int | None = None
    slots: int | None = None
    connector: dict[str, str] = field(default_factory=dict)
    worker: dict[str, str] = field(default_factory=dict)
    calm_seconds: float = CALM_SECONDS
    #: Readers may be blocked for good, until somebody ends by hand what stands in front of them.
    may_stand: bool = False


@dataclass
class Outcome:
    """``faults`` is empty when all went well. ``expired``: tables of which somebody said that rows may have expired."""

    seed: int
    faults: list[str]
    seconds: float
    mishaps: int
    steps: int
    rows: int
    commits: int
    kinds: Counter[str]
    expired: frozenset[str] = frozenset()


def simulate(seed: int, plan: Plan | None = None, world: World | None = None) -> Outcome:
    plan = plan or Plan()
    rng = random.Random(seed ^ 0x5EED)
    world = world or make_world(seed, plan.kind)
    workers = plan.workers or rng.choice([1, 2, 2, 3])
    slots = plan.slots or rng.randint(1, 6)
    connector = {
        "scylla.query.options.fetch.size": str(rng.choice([3, 10, 100])),
        **_queries(rng),
        **plan.connector,
    }
    worker = {"transaction.timeout.ms": str(rng.choice([4_000, 10_000])), "native": rng.choice(["on", "off"])}
    worker |= plan.worker
    with service(world, seed, workers=workers, slots=slots, connector=connector, worker=worker) as running:
        if random.Random(seed ^ 0x51C1).random() < 0.5:
            running.broker.skip_leaderless()
        chaos = Chaos(running, plan.roughness, seed)
        running.start()
        chaos.start()
        try:
            running.scheduler.run(plan.roughness.until)
            chaos.calm_down()
            faults = calm(
                running, max(plan.roughness.until, (world.end - BEGIN_MS) / 1000) + plan.calm_seconds, plan.may_stand
            )
        except Exception as error:
            faults = [f"unexpected {type(error).__name__}: {error}", *traceback.format_tb(error.__traceback__)[-4:]]
        return Outcome(
            seed,
            faults,
            running.scheduler.now,
            chaos.mishaps,
            running.scheduler.steps,
            sum(len(table.rows) for table in world.tables),
            running.broker.transactions.commits,
            chaos.count,
            frozenset(running.expired),
        )


def calm(running: Service, deadline: float, may_stand: bool = False) -> list[str]:
    """Until everything is delivered and everybody is well, or the deadline."""
    scheduler = running.scheduler
    while scheduler.now < deadline:
        scheduler.run(scheduler.now + 1.0)
        if not running.troubles() and not invariants.missing(running) and not invariants.blocked(running):
            break
    else:
        if may_stand and invariants.blocked(running):
            return invariants.breaches(running)
        late = [*invariants.missing(running)[:3], *invariants.blocked(running)]
        return [*invariants.breaches(running), *late, *running.troubles()]
    # What is said twice would be said by now.
    scheduler.run(scheduler.now + 2.0)
    return invariants.breaches(running)


def _queries(rng: random.Random) -> dict[str, str]:
    return {"scylla.query.mode": rng.choice(["group", "group", "auto"])}


def main() -> int:
    from tests.simulation import mutant_worlds  # which is made of plans

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--plan", choices=mutant_worlds.NAMED, default="usual")
    options = parser.parse_args()
    if options.last <= options.first:
        parser.error(f"no seed is from {options.first} up to {options.last}, which is not one of them itself")
    bad = mishaps = rows = 0
    virtual = 0.0
    kinds: Counter[str] = Counter()
    began = time.process_time()
    for seed in range(options.first, options.last):
        outcome = simulate(seed, mutant_worlds.NAMED[options.plan])
        mishaps, rows, virtual = mishaps + outcome.mishaps, rows + outcome.rows, virtual + outcome.seconds
        kinds += outcome.kinds
        if outcome.faults:
            bad += 1
            print(seed, outcome.faults[:4], flush=True)
    print(
        f"{options.plan}: {options.last - options.first} seeds, {bad} with faults; {mishaps} mishaps, {rows} rows, "
        f"{virtual:.0f} virtual s in {time.process_time() - began:.0f} s of processor time; {dict(kinds)}"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
