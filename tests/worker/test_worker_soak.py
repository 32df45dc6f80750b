"""Exactly once, whatever is killed and when: real processes, a real broker, stream changes, under write load."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from embedded.kafka import EmbeddedKafka
from embedded.scylla.process import EmbeddedScylla
from tests.worker.harness import Service, Workload, cql, create_table, exactly_once, until

pytestmark = [pytest.mark.kafka, pytest.mark.scylla, pytest.mark.timeout(600)]

CHAOS_SECONDS = float(os.environ.get("SOAK_SECONDS", "45"))
SEEDS = [int(seed) for seed in os.environ.get("SOAK_SEEDS", "1,2").split(",")]


class Chaos:
    """Seeded mishaps. Each is one method; what it breaks it also mends."""

    def __init__(self, seed: int, service: Service, scylla: EmbeddedScylla, kafka: EmbeddedKafka, tablets: str) -> None:
        self.random = random.Random(seed)
        self.service = service
        self.scylla = scylla
        self.kafka = kafka
        self.tablets = tablets
        self.happened: list[str] = []
        self._tablet_count = 4

    def step(self, session: object) -> None:
        mishaps: list[tuple[int, Callable[[], None]]] = [
            (4, self.kill_worker),
            (2, self.kill_supervisor),
            (2, self.pause_worker),
            (1, self.restart_broker),
            (1, self.second_container),
            (2, self.new_generation),
            (2, lambda: self.resize_tablets(session)),
            (1, self.faults),
        ]
        weights = [weight for weight, _ in mishaps]
        mishap = self.random.choices([each for _, each in mishaps], weights)[0]
        mishap()

    def kill_worker(self) -> None:
        workers = self.service.workers()
        if workers:
            self.happened.append("kill worker")
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.random.choice(workers), signal.SIGKILL)

    def kill_supervisor(self) -> None:
        self.happened.append("kill supervisor")
        run = self.service.runs.pop(0)
        run.kill()
        run.wait()
        self.service.start()

    def pause_worker(self) -> None:
        """Long enough to be thrown out of the group; then it comes back as a zombie."""
        workers = self.service.workers()
        if workers:
            self.happened.append("pause worker")
            pid = self.random.choice(workers)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                wait(5.0)
                os.kill(pid, signal.SIGCONT)

    def restart_broker(self) -> None:
        self.happened.append("restart broker")
        self.kafka.kill()
        self.kafka.restart()

    def second_container(self) -> None:
        self.happened.append("second container")
        run = self.service.start("--tasks", "1")
        until(lambda: self.service.workers(run), 60, "a second container's worker")
        wait(self.random.uniform(1, 6))
        assert self.service.stop(run) == 0

    def new_generation(self) -> None:
        self.happened.append("new generation")
        self.scylla.admin.new_generation()

    def resize_tablets(self, session: object) -> None:
        self._tablet_count = self.random.choice([1, 2, 4, 8])
        self.happened.append(f"{self._tablet_count} tablets")
        session.execute(  # type: ignore[attr-defined]
            f"ALTER TABLE {self.tablets} WITH tablets = {{'min_tablet_count': {self._tablet_count}}}"
        )

    def faults(self) -> None:
        self.happened.append("faults")
        self.scylla.admin.add_fault("read_timeout", pattern="_scylla_cdc_log.*cdc.stream_id", probability=0.3, count=50)


def wait(seconds: float) -> None:
    threading.Event().wait(seconds)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_row_is_delivered_exactly_once_whatever_is_killed(tmp_path: Path, seed: int) -> None:
    with EmbeddedKafka() as kafka, EmbeddedScylla(ring_delay=0, seed=seed) as scylla, cql(scylla.address) as session:
        tables = [
            create_table(session, "vnodes", tablets=False),
            # Other columns than the first: rows that are read with the wrong table's description must not pass.
            create_table(session, "tablets", tablets=True, columns="a int, v text, z map<int, text>"),
        ]
        service = Service(tmp_path, scylla.address, kafka.bootstrap_servers, f"soak{seed}", tables)
        chaos = Chaos(seed, service, scylla, kafka, tables[1])
        workload = Workload(session, tables, seed)
        try:
            service.start()
            workload.start()
            until(lambda: service.workers(), 30, "a worker")
            end = time.monotonic() + CHAOS_SECONDS
            while time.monotonic() < end:
                wait(chaos.random.uniform(0.5, 4))
                chaos.step(session)
            written = workload.finish()
            delivered = [exactly_once(service, session, table, seconds=180) for table in tables]
            assert sum(delivered) >= written
            assert service.stop(service.runs[-1]) == 0
        except BaseException:
            for pid in service.workers():
                os.kill(pid, signal.SIGUSR1)  # where does each thread stand?
            wait(1)
            print(f"seed {seed}: {', '.join(chaos.happened)}\n{service.log[-20_000:]}")
            raise
        finally:
            service.close()
