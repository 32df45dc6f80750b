"""Kinds of worlds that notice when a rule is missing: some seed of each fails.

In: a plan, a first seed. Out: what runs seeds until one fails.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.simulation.chaos import Roughness
from tests.simulation.service import SIGNALS
from tests.simulation.simulate import CALM_SECONDS, Plan, simulate
from tests.simulation.source_world import Kind

CALM = Roughness(seconds=0, at_steps=0, until=5.0)

# A vnode's streams are read one by one; pages are small, so that windows are capped.
MANY_STREAMS = Plan(
    Kind(tablets=False, tables=1, shards=20, rows=60, seconds=4.0, changes=1, late=False),
    CALM,
    workers=1,
    slots=2,
    connector={"scylla.query.mode": "stream", "scylla.query.options.fetch.size": "3"},
    calm_seconds=20,
)
SMALL_PAGES = Plan(
    Kind(tablets=True, tables=1, rows=300, seconds=4.0, changes=1, keys=4, late=False),
    CALM,
    workers=1,
    slots=1,
    connector={"scylla.query.options.fetch.size": "3"},
    calm_seconds=20,
)
# Much in few streams: windows are read before their turn.
HOT = Plan(
    Kind(tables=1, shards=2, rows=400, seconds=5.0, keys=6),
    Roughness(0.7, until=8.0),
    workers=2,
    connector={"scylla.query.options.fetch.size": "3"},
)
ROUGH = Plan(Kind(tables=1, shards=3, rows=80, seconds=8.0), Roughness(0.7, until=10.0), workers=2, calm_seconds=40)


READS_TIME_OUT = replace(
    ROUGH, calm_seconds=CALM_SECONDS, roughness=Roughness(0.5, at_steps=0, until=8.0, only=("reads time out",))
)
# Nobody holds every third range, now and then: sweeps are refused in parts. Most streams are silent.
RANGES_AWAY = replace(
    ROUGH,
    kind=replace(ROUGH.kind, rows=60, changes=1),
    calm_seconds=CALM_SECONDS,
    roughness=Roughness(0.7, at_steps=0, until=10.0, only=("ranges away", "kill", "leader moves")),
)
STOPS = replace(
    ROUGH,
    roughness=Roughness(0.4, until=10.0, only=("orderly stop", "lost answers", "leader moves", "coordinator moves")),
)


ALTERS = replace(ROUGH, kind=replace(ROUGH.kind, alters=2), calm_seconds=120)


# Columns are added, and two of three nodes may not hear of it. A look may take as long as it takes to hold reading up.
DEAF_NODES = replace(
    ALTERS, kind=replace(ROUGH.kind, changes=0, late=False, gone=False, alters=2, deaf=True, confidence_ms=5_000)
)


# One is dropped and added again, as another type or the same.
AGAIN = replace(DEAF_NODES, kind=replace(DEAF_NODES.kind, alters=0, again=True, seconds=14.0))
# A column of the key gets another name: what was not read before has lost it, and no more than that.
RENAMES = replace(DEAF_NODES, kind=replace(DEAF_NODES.kind, alters=0, renames=True))


# Tables are dropped, and others created under their names, while workers come and go.
ANEW = Plan(
    Kind(tablets=True, rows=60, seconds=14.0, late=False, gone=False, anew=True),
    Roughness(0.9, until=18.0),
)


# Two of three nodes may not hear of that for long.
DEAF_ANEW = replace(ANEW, kind=replace(ANEW.kind, deaf=True, alters=0, changes=1, confidence_ms=5_000))


# Leaders go away, all brokers crash and workers are killed twice a second, and nothing else happens.
LEADERS = Plan(roughness=Roughness(0.5, only=("leader moves", "kill", "broker crash")))


# And brokers stamp records of some data, or not, so that nobody knows of what stands somewhere whether it is committed.
STAMPS = Plan(roughness=Roughness(0.4, only=("times change", "leader moves", "kill", "broker crash")), may_stand=True)


# Those of positions as well, and by clocks that step.
STAMPED_OFFSETS = Plan(
    roughness=Roughness(
        0.4,
        only=(
            *("times change", "times of offsets change", "own clock steps", "leader moves", "kill", "broker crash"),
            *("slow markers", "compaction"),
        ),
    ),
    may_stand=True,
)


# Leaders are told so while workers that have just started write to them.
LATE_LEADERS = Plan(roughness=Roughness(0.5, only=("leaders learn late", "kill", "orderly stop", "leader moves")))


# Who sends records does not hear what became of them, for longer than transactions wait.
UNANSWERED = Plan(
    roughness=Roughness(2.0, at_steps=0, only=("records unanswered", "pause")),
    worker={"transaction.timeout.ms": "4000"},
)


# Which tables are read changes all the time.
OTHER_TABLES = Plan(
    Kind(tables=2, rows=60),
    Roughness(
        0.6,
        only=(
            *("other tables", "kill", "orderly stop", "pause", "leader moves", "broker away", "lost answers"),
            *("slow markers", "reads time out"),
        ),
    ),
)


# A table that is never read is missed sooner than one that is read late.
SOON_OTHER_TABLES = replace(OTHER_TABLES, calm_seconds=40.0)


# Topics of records are emptied by deleting them, and get more partitions.
TOPICS = Plan(
    Kind(alters=1),
    Roughness(
        0.7,
        only=(
            *("topic deleted", "partitions grow", "kill", "pause", "orderly stop", "leader moves", "broker crash"),
            *("lost answers", "slow markers"),
        ),
    ),
)


# The topic of positions is deleted, and with it what tells of whom a transaction is that stands somewhere.
POSITIONS = Plan(
    roughness=Roughness(
        2.0,
        only=("positions deleted", "kill", "pause", "orderly stop", "leader moves", "lost answers", "slow markers"),
    ),
    may_stand=True,
)


# The connector is paused and resumed all the time, while its servers are away and its workers are lost.
PAUSES = Plan(
    roughness=Roughness(
        0.6,
        only=(
            *("connector pauses", "kill", "pause", "leader moves", "broker away", "broker crash", "lost answers"),
            *("slow markers", "coordinator moves", "reads time out"),
        ),
    )
)


# The connector is started once more under another group, while its own workers come and go.
TWO_GROUPS = Plan(
    roughness=Roughness(
        1.2,
        only=(
            *("another group", "kill", "orderly stop", "pause", "long pause", "coordinator moves", "broker away"),
            *("slow markers", "lost answers"),
        ),
    )
)


# Clocks of nodes are ahead of that by which rows are written, while workers come and go.
CLOCKS = Plan(roughness=Roughness(0.5, only=("clock ahead", "kill", "pause", "own clock steps", "node lies")))


# Nobody reads for longer than the log keeps its rows.
EXPIRES = Plan(Kind(ttl=20, late=False, gone=False), Roughness(2.0, 0, only=("long stop",)))


# Workers come and go while tables are started whose first streams are older than anything in their logs.
STARTS = Plan(
    Kind(ttl=600, age=86_400, late=False, gone=False, rows=30, seconds=4.0, shards=3),
    Roughness(1.0, 0, until=5.0, only=("kill", "pause", "orderly stop")),
    workers=3,
    slots=6,
    calm_seconds=30,
)


# Everything goes wrong, and much more often than usual.
OFTEN = Plan(roughness=Roughness(0.3, 0.001))


# Rows from before the log are written among their changes, slowly, in chunks of a few rows.
SNAPSHOTS = Plan(
    Kind(old=True, rows=110, seconds=10.0, changes=None, shards=3, keys=9, gone=None),
    Roughness(1.2),
    connector={
        "snapshot.mode": "initial",
        "cdc.include.collections": "delta",
        "cdc.range.deletes": "topic",
        "scylla.snapshot.max.queries.per.second": "3",
    },
)


# Meanwhile the table is dropped, and another one created under its name.
SNAPSHOTS_ANEW = replace(
    SNAPSHOTS,
    kind=replace(SNAPSHOTS.kind, tablets=True, late=False, gone=False, anew=True, alters=0, seconds=14.0),
    roughness=Roughness(1.2, until=18.0),
)


# And that one has another key.
SNAPSHOTS_OTHER_KEY = replace(SNAPSHOTS_ANEW, kind=replace(SNAPSHOTS_ANEW.kind, other_key=True))
OTHER_KEY = replace(ANEW, kind=replace(ANEW.kind, other_key=True))


# Meanwhile a column of the key gets another name.
SNAPSHOTS_RENAMED = replace(
    SNAPSHOTS, kind=replace(SNAPSHOTS.kind, late=False, gone=False, renames=True, alters=0, confidence_ms=2_000)
)


# Meanwhile a column is dropped and comes back, and two of three nodes may not hear of it.
SNAPSHOTS_AGAIN = replace(
    SNAPSHOTS,
    kind=replace(
        SNAPSHOTS.kind, late=False, gone=False, again=True, alters=0, deaf=True, seconds=14.0, confidence_ms=15_000
    ),
    roughness=Roughness(1.2, until=16.0),
)


# And once more, when nobody has read for longer than the log keeps its rows; answers are lost just then.
NEEDED = replace(
    SNAPSHOTS,
    kind=replace(SNAPSHOTS.kind, ttl=20, seconds=20.0, late=False, gone=False),
    roughness=Roughness(
        1.2,
        at_steps=0,
        until=50.0,
        only=("long stop", "broker away", "broker crash", "lost answers", "coordinator moves"),
    ),
    connector={
        **SNAPSHOTS.connector,
        "snapshot.mode": "when_needed",
        "scylla.snapshot.max.queries.per.second": "20",
    },
)


# Snapshots are asked for, paused and resumed as well.
SIGNALLED = replace(
    SNAPSHOTS,
    roughness=Roughness(
        1.0,
        only=(
            *("snapshot asked", "snapshot pauses", "kill", "pause", "long pause", "orderly stop", "broker away"),
            *("leader moves", "lost answers", "slow markers", "reads time out", "compaction"),
        ),
    ),
    connector={
        **SNAPSHOTS.connector,
        "signal.enabled.channels": "kafka",
        "signal.kafka.topic": SIGNALS,
        "scylla.snapshot.max.queries.per.second": "8",
    },
)


# Records in Avro, and a registry that refuses schemas, is away, or takes its time, while tables get new columns.
REGISTRY = Plan(
    Kind(tables=2, rows=60, alters=2),
    Roughness(
        0.6,
        only=(
            *("registry refuses", "registry away", "registry slow", "kill", "pause", "orderly stop", "leader moves"),
            *("lost answers", "reads time out"),
        ),
    ),
    worker={
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter.schema.registry.url": "http://registry:8081",
    },
)


# What is written makes rows that no SELECT tells, in several partitions at a time.
DOUBT = replace(
    SNAPSHOTS,
    kind=replace(SNAPSHOTS.kind, rows=300, seconds=12.0, doubt=True),
    roughness=Roughness(2.0),
    connector={**SNAPSHOTS.connector, "scylla.snapshot.max.queries.per.second": "20"},
)


# Clients lose their brokers for good, and do not know it.
STRANDED = Plan(
    roughness=Roughness(
        2.5,
        only=("stranded client", "broker away", "kill", "pause", "leader moves", "coordinator moves", "slow markers"),
    ),
)


# Nothing else happens, so that a worker keeps the client that it has lost; and streams go on in other workers' slots
# for long, so that it has to hear of their commits.
DEAF = Plan(
    Kind(tables=1, seconds=40.0, changes=3, late=False, gone=False),
    Roughness(5.0, at_steps=0, until=25.0, only=("stranded client",)),
    workers=3,
    slots=4,
)


NAMED = {
    "deaf": DEAF,
    "deaf nodes": DEAF_NODES,
    "again": AGAIN,
    "renames": RENAMES,
    "anew": ANEW,
    "doubt": DOUBT,
    "registry": REGISTRY,
    "snapshots": SNAPSHOTS,
    "snapshots again": SNAPSHOTS_AGAIN,
    "snapshots anew": SNAPSHOTS_ANEW,
    "snapshots other key": SNAPSHOTS_OTHER_KEY,
    "snapshots renamed": SNAPSHOTS_RENAMED,
    "other key": OTHER_KEY,
    "deaf anew": DEAF_ANEW,
    "signals": SIGNALLED,
    "needed": NEEDED,
    "usual": Plan(),
    "often": OFTEN,
    "leaders": LEADERS,
    "late leaders": LATE_LEADERS,
    "stamps": STAMPS,
    "stamped offsets": STAMPED_OFFSETS,
    "unanswered": UNANSWERED,
    # A dropped table that returns is looked for up to 90 s.
    "stops": replace(STOPS, calm_seconds=150),
    "reads": READS_TIME_OUT,
    "ranges": RANGES_AWAY,
    "tables": OTHER_TABLES,
    "groups": TWO_GROUPS,
    "pauses": PAUSES,
    "topics": TOPICS,
    "positions": POSITIONS,
    "clocks": CLOCKS,
    "expires": EXPIRES,
    "starts": STARTS,
    "hot": HOT,
    "stranded": STRANDED,
}


# Which seed notices changes with every change of the product: it is looked for, and `seeds.py` writes down which it is.
SEEDS = 300


@dataclass(frozen=True)
class SeedsOf:
    """A world from some seed on; as a killer of mutants it raises at the first at which it fails."""

    plan: Plan
    first: int

    def fault(self) -> tuple[int, list[str]] | None:
        for seed in range(self.first, self.first + SEEDS):
            outcome = simulate(seed, self.plan)
            if outcome.faults:
                return seed, outcome.faults[:3]
        return None

    def __call__(self) -> None:
        found = self.fault()
        assert found is None, found


def world(plan: Plan, first: int) -> SeedsOf:
    return SeedsOf(plan, first)
