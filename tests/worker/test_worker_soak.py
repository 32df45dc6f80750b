"""Exactly once, whatever is killed and when: real processes, a real broker, stream changes, under write load."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from embedded.kafka import TO_BE_KILLED, EmbeddedKafka
from tests.servers.double import Double
from tests.servers.plugin import server
from tests.soak.last_look import last_look
from tests.soak.mishaps import Chaos, OneBroker, Reads, Streams, Workers, until_then
from tests.worker.harness import RowsMissing, Service, Workload, cql, create_table, exactly_once, until
from tests.worker.lost_rows import story

pytestmark = [pytest.mark.kafka, pytest.mark.scylla, pytest.mark.any_scylla, pytest.mark.timeout(900)]

CHAOS_SECONDS = float(os.environ.get("SOAK_SECONDS", "25"))
SEEDS = [int(seed) for seed in os.environ.get("SOAK_SEEDS", "1,2").split(",")]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_row_is_delivered_exactly_once_whatever_is_killed(
    request: pytest.FixtureRequest, tmp_path: Path, seed: int
) -> None:
    # Streams of several shards share a group: they are read by one query, and several pages may tear it.
    double = server(request.config, seed=seed, shards=8 if seed % 2 else 1)
    with EmbeddedKafka(properties=TO_BE_KILLED) as kafka, double as scylla, cql(scylla) as session:
        tables = [
            create_table(scylla, session, scylla.named(f"vnodes{seed}"), tablets=False),
            # Other columns than the first: rows that are read with the wrong table's description must not pass.
            create_table(
                *(scylla, session, scylla.named(f"tablets{seed}")),
                tablets=True,
                columns="a int, v text, z map<int, text>",
            ),
        ]
        service = Service(tmp_path, scylla, kafka.bootstrap_servers, f"soak{seed}", tables)
        draw = random.Random(seed)
        streams = Streams(scylla, session, draw, tables[1])
        scylla_admin = scylla.admin if isinstance(scylla, Double) else None
        chaos = Chaos(
            draw,
            [
                *Workers(service, draw).mishaps,
                *OneBroker(kafka).mishaps,
                *streams.of_every_server,
                *([] if scylla_admin is None else Reads(scylla_admin).mishaps),
            ],
        )
        workload = Workload(session, tables, seed)

        def tell(error: BaseException) -> None:
            print(service.log[-60_000:])
            # Last, since of a long text its end is kept.
            if isinstance(error, RowsMissing):
                print(story(service, session, kafka, error))
            print(f"seed {seed}: {', '.join(chaos.happened)}")

        with last_look(service, tell):
            service.start()
            workload.start()
            until(lambda: service.workers(), 90, "a worker")
            chaos.go_on("mishaps", until_then(CHAOS_SECONDS))
            workload.finish()
            delivered = [exactly_once(service, session, table, seconds=180) for table in tables]
            assert sum(delivered) >= workload.written
            assert service.stop(service.runs[-1]) == 0
