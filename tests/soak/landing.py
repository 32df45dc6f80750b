"""Landing while things go wrong, judged without Spark: the published table against the model, at the end of each seed.

    .venv/bin/python -m tests.soak.landing --seeds 1,2 --mishaps 20 --sink iceberg

Random histories of one many-typed table arrive in pieces: late, twice and out of order, with TTLs. Meanwhile the job
that lands, merges and publishes them is killed, or stopped until another one has taken over and then continued; at any
moment, also while it starts. Ends with 1 at the first seed whose table differs, and keeps its folder.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from embedded.kafka import EmbeddedKafka
from tests.servers.patience import let_pass, seldom, until
from tests.spark_jobs.history_comparison import expected_rows
from tests.spark_jobs.history_records import RANGES, TOPIC, Histories, definition
from tests.spark_jobs.landing_feed import create_topics, produce
from tests.spark_jobs.published_rows import published_rows

ROOT = Path(__file__).resolve().parents[2]
LEASE_MS = 4000
COMMIT_S, END_S = 120, 120
PAUSED, KILLED, AT_START = "stopped and continued", "killed", "killed while it started"


class Job:
    """A process that lands, with all that it starts."""

    def __init__(self, config: Path, log: Path, *more: str) -> None:
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, "spark_jobs/land.py", str(config), "--json", *more],
                cwd=ROOT,
                stdout=subprocess.DEVNULL,
                stderr=file,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait()

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None


class Soak:
    """One seed: a warehouse, its feed, and the one who lands."""

    def __init__(self, servers: str, seed: int, sink: str, mishaps: int, folder: Path) -> None:
        self.rnd = random.Random(seed)
        self.servers, self.sink, self.folder = servers, sink, folder
        histories = Histories(seed, max(10, 3 * mishaps), 14, ttls=True)
        self.model = histories.model
        again = self.rnd.sample(histories.records, len(histories.records) // 4)
        self.feed = histories.records + again
        self.rnd.shuffle(self.feed)
        # A mishap takes one piece or two. Whoever gets none commits nothing, which is waited for.
        self.piece = len(self.feed) // (2 * mishaps + 2)
        self.prefix = f"soak{seed}{sink}"
        self.config, self.log = folder / "landing.json", folder / "landing.log"
        settings: dict[str, Any] = {
            "name": self.prefix,
            "bootstrap.servers": servers,
            "topic.prefix": self.prefix,
            "tables": ["ks.t"],
            "value.converter.schemas.enable": False,
            "warehouse": str(folder / "warehouse"),
            "sink": sink,
            "publish.interval.ms": 500,
            "trigger.interval.ms": 200,
            "max.offsets.per.trigger": 2 * self.piece,
            "merge.every.rows": 3 * self.piece,
            "lease.timeout.ms": LEASE_MS,
            "spark.master": "local[2]",
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData",
        }
        self.config.write_text(json.dumps(settings))
        create_topics(servers, [f"{self.prefix}.schemas", *map(self._topic, (TOPIC, RANGES))])
        produce(servers, [(f"{self.prefix}.schemas", definition().encode())])
        self.done: Counter[str] = Counter()

    def _topic(self, name: str) -> str:
        return self.prefix + name.removeprefix("p")

    def more(self, everything: bool = False) -> None:
        count = len(self.feed) if everything else self.piece
        piece, self.feed = self.feed[:count], self.feed[count:]
        produce(self.servers, [(self._topic(topic), value) for topic, value in piece])

    def commits(self) -> int:
        warehouse = self.folder / "warehouse"
        return sum(1 for _ in warehouse.rglob("*.metadata.json" if self.sink == "iceberg" else "_delta_log/*.json"))

    def commits_more(self, job: Job, seconds: float = COMMIT_S) -> None:
        before = self.commits()
        until(lambda: self.commits() > before or job.ended, seconds, "a commit", step=seldom)

    def start(self) -> Job:
        return Job(self.config, self.log)

    def mishap(self, job: Job) -> Job:
        """Whoever lands afterwards."""
        kind = self.rnd.choices((PAUSED, KILLED, AT_START), (3, 6, 1))[0]
        self.more()
        if job.ended:
            job = self.start()
        elif kind != AT_START:
            self.commits_more(job)
            let_pass(self.rnd.random() * 2)
        else:
            job.kill()
            job = self.start()
            let_pass(self.rnd.random() * 8)
        self.done[kind] += 1
        if kind != PAUSED:
            job.kill()
            return self.start()
        job.signal(signal.SIGSTOP)
        let_pass(1.5 * LEASE_MS / 1000)
        self.more()
        other = self.start()
        # It may have to wait for a lock of the one that stands still.
        with contextlib.suppress(AssertionError):
            self.commits_more(other, 15)
        job.signal(signal.SIGCONT)
        until(lambda: job.ended or other.ended, END_S, "the end of the one that was taken over", step=seldom)
        if job.ended:
            return other
        other.kill()
        return job

    def run(self, mishaps: int) -> int:
        """How many rows differ."""
        self.more()
        job = self.start()
        try:
            for _ in range(mishaps):
                job = self.mishap(job)
        finally:
            job.kill()
        self.more(everything=True)
        last = Job(self.config, self.log, "--once")
        until(lambda: last.ended, 600, "the end of --once", step=seldom)
        if last.process.returncode != 0:
            raise SystemExit(f"--once ended with {last.process.returncode}: see {self.log}")
        expected, found = expected_rows(self.model), published_rows(f"{self.folder}/warehouse/ks/t", self.sink)
        different = [key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key)]
        for key in different[:3]:
            print(f"  {key}: expected {expected.get(key)}, found {found.get(key)}")
        print(f"{self.prefix}: {len(expected)} rows, {len(different)} differ; {dict(self.done)}", flush=True)
        return len(different)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.landing", description=__doc__)
    parser.add_argument("--seeds", default="1", help="1,2,3")
    parser.add_argument("--mishaps", type=int, default=10, help="of each seed (10)")
    parser.add_argument("--sink", choices=("delta", "iceberg"), default="delta")
    given = parser.parse_args()
    with EmbeddedKafka() as kafka:
        for seed in map(int, given.seeds.split(",")):
            folder = Path(tempfile.mkdtemp(prefix="scylla-cdc-landing-soak-"))
            if Soak(kafka.bootstrap_servers, seed, given.sink, given.mishaps, folder).run(given.mishaps):
                print(f"kept: {folder}")
                return 1
            shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
