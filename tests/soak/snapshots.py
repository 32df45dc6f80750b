"""A soak by hand for snapshots: rows from before the log are written among their changes while things go wrong.

    .venv/bin/python -m tests.soak.snapshots --seeds 1,2,3

For each seed two tables, on vnodes and on tablets, with statics and collections of all kinds, some partitions of which
are written all the time, and a connector that snapshots them; workers die, streams change, reads fail, clocks step, the
snapshot is paused. An independent consumer folds the topics (`tests/worker/snapshot_oracle.py`). Ends with 1 at the
first breach.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from cassandra.cluster import Session

from embedded.kafka import TO_BE_KILLED, EmbeddedKafka
from tests.servers.double import Double
from tests.servers.patience import let_pass
from tests.soak.last_look import last_look, tell_breaches, what_happened
from tests.soak.mishaps import Chaos, Clocks, Mishap, Nodes, OneBroker, Reads, Streams, Workers
from tests.worker.harness import Service, cql, seldom, until
from tests.worker.snapshot_oracle import Key, State, breaches, held, selected
from tests.worker.snapshot_source import ALL_DELETES, Changes, all_delivered, old_table, snapshot_ended

CONFIDENCE_MS = 500


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.snapshots", description=__doc__)
    parser.add_argument("--seeds", default="1", help="1,2,3")
    parser.add_argument("--partitions", type=int, default=150, help="of each table (150)")
    parser.add_argument("--per-second", type=int, default=1, help="queries of the snapshot and worker (1)")
    parser.add_argument("--shards", type=int, default=2, help="of each of three nodes (2)")
    parser.add_argument("--folder", type=Path, help="where logs are kept (a temporary folder)")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="scylla-cdc-soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    for seed in map(int, given.seeds.split(",")):
        if soak(seed, given, folder):
            return 1
    return 0


def soak(seed: int, given: argparse.Namespace, folder: Path) -> list[str]:
    draw = random.Random(seed)
    with (
        Double(ring_delay=0, seed=seed, nodes=3, shards=given.shards) as scylla,
        EmbeddedKafka(properties=TO_BE_KILLED) as kafka,
        cql(scylla) as session,
    ):
        tables = [
            old_table(scylla, session, f"{kind}{seed}", kind == "tablets", given.partitions, lists=True)
            for kind in ("vnodes", "tablets")
        ]
        old = {table: held(session, table) for table in tables}
        service = Service(
            folder,
            scylla,
            kafka.bootstrap_servers,
            f"snapshots{seed}",
            tables,
            connector={
                **ALL_DELETES,
                "scylla.snapshot.max.queries.per.second": str(given.per_second),
                "signal.enabled.channels": "kafka",
                "signal.kafka.topic": f"snapshots{seed}-signals",
            },
        )
        chaos = Chaos(
            draw,
            [
                *Workers(service, draw).mishaps,
                *Streams(scylla, session, draw, tables[1]).mishaps,
                *Reads(scylla.admin).mishaps,
                *Nodes(scylla.admin, draw, CONFIDENCE_MS).mishaps,
                *Clocks(scylla.admin, draw, CONFIDENCE_MS).mishaps,
                *OneBroker(kafka).mishaps,
                Mishap(2, partial(paused, service, draw)),
            ],
        )
        changes = [Changes(session, table, given.partitions, seed, lists=True) for table in tables]
        began = time.monotonic()
        with last_look(service, lambda _: print(f"seed {seed}: {what_happened(chaos, folder)}", file=sys.stderr)):
            service.start()
            for each in changes:
                each.start()
            until(service.workers, 90, "a worker")
            chaos.go_on(f"seed {seed}", lambda: not snapshot_ended(service))
            for each in changes:
                each.finish()
            for table in tables:
                until(partial(all_delivered, service, session, table), 180, f"all changes of {table}", step=seldom)
            service.settled()
            found = [line for table in tables for line in _breaches(service, session, table, old[table])]
            rows = sum(map(len, old.values()))
            print(
                f"seed {seed}: {rows} keys from before, {len(chaos.happened)} mishaps, {len(found)} breaches,"
                f" {time.monotonic() - began:.0f} s",
                flush=True,
            )
            tell_breaches(found, chaos, folder)
            assert service.stop(service.runs[-1]) == 0
            return found


def paused(service: Service, draw: random.Random) -> str:
    """Asked for while workers come and go: who does not hear it at once hears it later."""
    assert service.command("snapshot", "pause").returncode == 0
    let_pass(draw.uniform(0, 3))
    assert service.command("snapshot", "resume").returncode == 0
    return "snapshot paused"


def _breaches(service: Service, session: Session, table: str, old: dict[Key, State]) -> list[str]:
    topic = service.topic(table)
    deletes = service.delivered(f"{topic}.range-deletes")
    found = breaches(old, service.delivered(topic), selected(session, table), deletes)
    return [f"{table}: {line}" for line in found]


if __name__ == "__main__":
    sys.exit(main())
