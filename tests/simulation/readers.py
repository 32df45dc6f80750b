"""Programs that read changes without Kafka, on a simulated ScyllaDB: each goes on from the checkpoint of the last.

In: a seed, a kind of world, how a program ends. Out: the faults: rows that were handed out twice, in another order, or
never, by what a program keeps that notes results and checkpoint together and is killed at any moment.
"""

from __future__ import annotations

import logging
import math
import random
import struct
import uuid
from collections import Counter
from collections.abc import Callable
from functools import partial

from connector.changes import Batch
from connector.errors import CdcError
from connector.source import ChangeReader, Connection, ConnectionSettings, ReadingSettings
from tests.simulation.scheduler import Process, Scheduler
from tests.simulation.source_connection import Cluster, SimulatedConnection
from tests.simulation.source_world import BEGIN_MS, Kind, Table, World, make_world
from tests.simulation.virtual import installed

Identity = tuple[str, str, int]

#: A program that is killed has lived so long.
LIFE_SECONDS = (0.5, 6.0)
#: In so much virtual time the last one reads all that is left.
CALM_SECONDS = 200.0


class Programs:
    """``kept``: what is kept of all that was handed out; ``checkpoint`` is where the next one goes on."""

    def __init__(self, seed: int, world: World) -> None:
        self.scheduler = Scheduler(seed)
        self.cluster = Cluster(self.scheduler, world)
        self.kept: list[Identity] = []
        self.checkpoint: str | None = None
        self._world = world
        self._random = random.Random(seed)

    def start(self, until_ms: int | None, follow: bool) -> tuple[Process, Callable[[], bool]]:
        """One program, and whether it has come to its end."""
        process, ended = Process("a program"), list[bool]()
        reader = ChangeReader(
            ConnectionSettings((("10.0.0.1", 9042),), fetch_size=self._random.choice([3, 10, 100])),
            [table.name for table in self._world.tables],
            reading=ReadingSettings(confidence_ms=self._world.confidence_ms, window_ms=1_000),
            checkpoint=self.checkpoint,
            until_ms=until_ms,
            follow=follow,
            patience=math.inf,
        )

        def run() -> None:
            while not self._opened(reader):
                self.scheduler.pass_time(0.3)
            held: list[Identity] = []
            for batch in reader:
                if self._random.random() < 0.3:
                    self._keep(reader, held)
                held += _rows(batch)
            self._keep(reader, held)
            reader.close()
            ended.append(True)

        self.scheduler.spawn(process, run)
        return process, lambda: bool(ended)

    def _keep(self, reader: ChangeReader, held: list[Identity]) -> None:
        """Without the newest batch, of which the checkpoint does not know yet."""
        self.kept += held
        held.clear()
        self.checkpoint = reader.checkpoint()

    @staticmethod
    def _opened(reader: ChangeReader) -> bool:
        try:
            reader.open()
        except CdcError:
            return False
        return True


def _rows(batch: Batch) -> list[Identity]:
    time, number = str(uuid.UUID(bytes=batch.time)), batch.layout.batch_seq_no
    return [(batch.stream_id.hex(), time, struct.unpack(">i", row[number] or b"")[0]) for row in batch.rows]


def read_by_programs(seed: int, kind: Kind, follow: bool) -> list[str]:
    """``follow``: programs go on until they are killed; otherwise they end at a time, most of them."""
    quiet = logging.getLogger("connector")
    level, rng, world = quiet.level, random.Random(seed ^ 0x4EAD), make_world(seed, kind)
    programs = Programs(seed, world)
    scheduler, cluster = programs.scheduler, programs.cluster
    quiet.setLevel(logging.CRITICAL + 1)
    try:
        with installed(scheduler, {id(Connection): partial(SimulatedConnection, cluster)}):
            last_ms = world.end + 4_000
            while cluster.now_ms < last_ms:
                before = rng.choice([None, 0, 100, 2_000, 20_000])
                process, ended = programs.start(None if follow or before is None else cluster.now_ms - before, follow)
                over = scheduler.now + rng.uniform(*LIFE_SECONDS)
                while scheduler.now < over and not ended():
                    scheduler.run(min(over, scheduler.now + 0.2), ended)
                    _disturb(cluster, rng)
                scheduler.kill(process)
            cluster.timeouts = cluster.errors = 0.0
            _, ended = programs.start(last_ms, follow=False)
            scheduler.run(scheduler.now + CALM_SECONDS, ended)
            return [*_faults(world, programs.kept), *([] if ended() else ["the last program did not end"])]
    finally:
        scheduler.close()
        quiet.setLevel(level)


def _disturb(cluster: Cluster, rng: random.Random) -> None:
    now, kind = cluster.scheduler.now, rng.random()
    if kind < 0.05:
        cluster.timeouts, cluster.errors = rng.choice([(0.0, 0.0), (0.2, 0.0), (0.0, 0.2)])
    elif kind < 0.08:
        cluster.away_until = now + rng.uniform(0.2, 2.0)
    elif kind < 0.13:
        node = rng.choice(cluster.nodes)
        longest = max(0, cluster.world.longest_lag - node.lag) / 1000
        node.confused_until = now + min(longest, rng.uniform(0.2, 3.0))


def _faults(world: World, kept: list[Identity]) -> list[str]:
    counts, found = Counter(kept), list[str]()
    rows = {row.identity: (table, row) for table in world.tables for row in table.all_rows}
    for identity, (table, row) in rows.items():
        # What came behind later changes of its key, after its stream's end, is handed to nobody.
        if counts[identity] != 1 and (row.ended is None or counts[identity]):
            found.append(f"{table.name}: row {row.text} at {row.ms - BEGIN_MS} was handed out {counts[identity]} times")
    last: dict[tuple[str, tuple[int, int]], int] = {}
    for table, row in (rows[identity] for identity in kept if identity in rows):
        if row.order < last.get(key := _key(table, row.key), 0):
            found.append(f"{table.name}: key {row.key}: row {row.text} behind a later one")
        last[key] = row.order
    return [*found, *(f"{identity} was never written" for identity in counts if identity not in rows)]


def _key(table: Table, key: tuple[int, int]) -> tuple[str, tuple[int, int]]:
    return str(table.name), key
