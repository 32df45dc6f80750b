"""A soak by hand: a connector under write load while things go wrong, for as long and with as many seeds as wanted.

    .venv/bin/python -m tests.soak --minutes 10 --seeds 1,2,3 --brokers 3
    .venv/bin/python -m tests.soak --minutes 10 --scylla 10.0.0.1:9042

With `--scylla` on a cluster of your own: in keyspaces that are dropped at the end, without the mishaps that only the
embedded ScyllaDB plays. Ends with 1, and what happened in which order, when a record is missing, doubled or out of
order at its end.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from embedded.kafka import TO_BE_KILLED, EmbeddedKafka
from embedded.kafka_cluster import EmbeddedKafkaCluster
from tests.servers.double import Double
from tests.servers.foreign import ForeignScylla, parse_points
from tests.servers.scylla import Login, Scylla
from tests.soak.last_look import last_look, what_happened
from tests.soak.mishaps import (
    Brokers,
    Chaos,
    Clocks,
    Columns,
    Logs,
    Mishap,
    Nodes,
    OneBroker,
    Reads,
    Streams,
    Workers,
    until_then,
)
from tests.soak.reassignment import Reassignment
from tests.worker.harness import RowsMissing, Service, Workload, cql, create_table, exactly_once, until
from tests.worker.lost_rows import story

KINDS = ("workers", "brokers", "streams", "reads", "nodes", "clocks", "columns", "logs")
CONFIDENCE_MS = 500


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="of mishaps, for each seed (5)")
    parser.add_argument("--seeds", default="1", help="1,2,3")
    parser.add_argument("--brokers", type=int, default=1, help="Kafka brokers; of several, leaders move (1)")
    parser.add_argument("--nodes", type=int, default=3, help="of ScyllaDB (3)")
    parser.add_argument("--shards", type=int, default=8, help="of each of its nodes (8)")
    parser.add_argument("--only", default="", help=f"kinds of mishaps: {','.join(KINDS)} (all)")
    parser.add_argument("--scylla", metavar="HOST:PORT[,…]", help="a cluster of your own (an embedded one)")
    parser.add_argument("--scylla-user", metavar="USER", help="who logs in; the password is taken from SCYLLA_PASSWORD")
    parser.add_argument("--scylla-tls", metavar="CA.pem", help="encrypted; trusts these certificates, or `system`")
    parser.add_argument("--scylla-api", metavar="URL", help="a node's REST API, for new generations")
    parser.add_argument("--scylla-run", metavar="HEX", help="the number in the names of keyspaces (a random one)")
    parser.add_argument("--folder", type=Path, help="where logs are kept (a temporary folder)")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="scylla-cdc-soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    for seed in map(int, given.seeds.split(",")):
        with server(given, seed) as scylla:
            kinds = set(filter(None, given.only.split(",")))
            soak(scylla, seed, given.minutes * 60, given.brokers, given.nodes, kinds, folder)
    return 0


def server(given: argparse.Namespace, seed: int) -> Double | ForeignScylla:
    if not given.scylla:
        return Double(ring_delay=0, seed=seed, nodes=given.nodes, shards=given.shards)
    os.environ["TEST_PATIENCE"] = "4"
    password = os.environ.get("SCYLLA_PASSWORD") if given.scylla_user else None
    login = Login(given.scylla_user, password, given.scylla_tls)
    return ForeignScylla(parse_points(given.scylla), login=login, api=given.scylla_api, run=given.scylla_run)


def soak(scylla: Scylla, seed: int, seconds: float, brokers: int, nodes: int, kinds: set[str], folder: Path) -> None:
    with contextlib.ExitStack() as stack:
        kafka: EmbeddedKafka | EmbeddedKafkaCluster = (
            EmbeddedKafkaCluster(brokers) if brokers > 1 else EmbeddedKafka(properties=TO_BE_KILLED)
        )
        stack.callback(kafka.close)
        kafka.start()
        session = stack.enter_context(cql(scylla))

        def table(name: str, tablets: bool, columns: str = "v text") -> str:
            keyspace = scylla.named(f"{name}{seed}")
            return create_table(scylla, session, keyspace, tablets=tablets, columns=columns)

        vnodes, tablets = scylla.able("vnodes"), scylla.able("tablets")
        # Other columns than the first: rows that are read with the wrong table's description must not pass.
        resized = table("tablets", True, "a int, v text, z map<int, text>") if tablets else None
        tables = [*([table("vnodes", False)] if vnodes else []), *([resized] if resized else [])]
        draw = random.Random(seed)
        logs = Logs(session, draw, table("logs", bool(seed % 2) if vnodes and tablets else tablets))
        service = Service(
            folder,
            scylla,
            kafka.bootstrap_servers,
            f"soak{seed}",
            [*tables, logs.table],
            connector={
                "scylla.confidence.window.size": str(scylla.confidence_ms(CONFIDENCE_MS)),
                "topic.creation.default.replication.factor": str(brokers),
            },
            worker={
                "offset.storage.replication.factor": str(brokers),
                "status.storage.replication.factor": str(brokers),
            },
        )
        by_kind: dict[str, list[Mishap]] = {
            "workers": Workers(service, draw).mishaps,
            "streams": Streams(scylla, session, draw, resized).mishaps,
            "columns": Columns(session, draw, tables).mishaps,
            "logs": logs.mishaps,
        }
        if isinstance(scylla, Double):
            by_kind["reads"] = Reads(scylla.admin).mishaps
            by_kind["nodes"] = Nodes(scylla.admin, draw, CONFIDENCE_MS).mishaps if nodes > 2 else []
            by_kind["clocks"] = Clocks(scylla.admin, draw, CONFIDENCE_MS).mishaps
        if isinstance(kafka, EmbeddedKafkaCluster):
            moving = stack.enter_context(Reassignment(kafka.bootstrap_servers))
            by_kind["brokers"] = Brokers(kafka, moving, draw).mishaps
        else:
            by_kind["brokers"] = OneBroker(kafka).mishaps
        chaos = Chaos(draw, [each for kind, all_of in by_kind.items() if not kinds or kind in kinds for each in all_of])
        workload = Workload(session, tables, seed)

        def tell(error: BaseException) -> None:
            if isinstance(error, RowsMissing):
                print(story(service, session, kafka, error), file=sys.stderr)
            print(f"seed {seed}: {what_happened(chaos, folder)}", file=sys.stderr)

        with last_look(service, tell):
            service.start()
            workload.start()
            until(lambda: service.workers(), 90, "a worker")
            chaos.go_on(f"seed {seed}", until_then(seconds))
            workload.finish()
            began = time.monotonic()
            delivered = [exactly_once(service, session, table, seconds=180) for table in tables]
            assert sum(delivered) >= workload.written
            exactly_once(service, session, logs.table, seconds=180, gone=logs.gone)
            print(f"seed {seed}: {sum(delivered)} rows, once each; complete after {time.monotonic() - began:.1f} s")
            assert service.stop(service.runs[-1]) == 0


if __name__ == "__main__":
    sys.exit(main())
