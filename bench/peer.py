"""Another connector beside this one: the same rows, the same servers, one run; processor time per record of both.

    python -m bench peer -- connect-standalone.sh {worker} {connector}

The command is the other connector's, run in the foreground; `{worker}` and `{connector}` become files of properties,
which both sides get, but for the prefix of the topics. `--worker plugin.path=/plugins` and `--connector NAME=VALUE`
add lines to them. Processor time is that of all processes of a side, from its first committed record on, and belongs to
the records that the broker did not have then, committed or not. What came before is start-up, and told by itself. The
servers' is nobody's.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench._processor import tree_cpu_seconds
from connector.delivery.end_offsets import end_offsets
from embedded.kafka import EmbeddedKafka
from embedded.ports import free_port
from embedded.scylla.process import EmbeddedScylla

TABLE = "bench.t"
COLUMNS = "id bigint PRIMARY KEY, a int, name text, amount double, at timestamp, flag boolean, note text, n bigint"
PARTITIONS = 3
#: Without a record for so long, a side has stopped.
PATIENCE = 120.0
#: The system counts in hundredths of a second: below this a figure has no two digits.
LEAST_CPU_SECONDS = 0.5
OURS = f"{shlex.quote(sys.executable)} -m connector run {{worker}} {{connector}} --http-port {{port}}"


@dataclass(frozen=True)
class Side:
    """What one connector did: processor seconds and seconds until its first record, and from there to its last."""

    records: int
    counted: int
    to_first: float
    to_last: float
    wall: float

    @property
    def rate(self) -> float:
        return self.counted / self.to_last


def main() -> dict[str, str]:
    options = _options()
    if not options.command:
        return {"not measured": "the other connector's command is missing: python -m bench peer -- COMMAND"}
    figures: dict[str, str] = {}
    with EmbeddedKafka() as kafka, EmbeddedScylla(ring_delay=0, vnodes=options.vnodes) as scylla:
        scylla.admin.cql(
            "CREATE KEYSPACE bench WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1} "
            f"AND tablets = {{'enabled': {str(options.tablets).lower()}}}"
        )
        scylla.admin.cql(f"CREATE TABLE {TABLE} ({options.columns}) WITH cdc = {{'enabled': true}}")
        scylla.preload(TABLE, options.rows)
        rates: dict[str, list[float]] = {"this connector": [], "the other": []}
        for number in range(options.rounds):
            for name, command in (("this connector", OURS), ("the other", shlex.join(options.command))):
                side = _run(command, f"bench{number}-{'ours' if command == OURS else 'theirs'}", options, kafka, scylla)
                print(
                    f"{name}: {side.records:,} records; until the first {side.to_first:.1f} CPU-seconds, "
                    f"from there {side.to_last:.1f} CPU-seconds ({side.wall:.1f} s)",
                    flush=True,
                )
                rates[name].append(side.rate)
    for name, found in rates.items():
        figures[f"{name}, records per CPU-second"] = " ".join(f"{rate:,.0f}" for rate in found)
    ratios = sorted(ours / theirs for ours, theirs in zip(*rates.values(), strict=True))
    figures["this connector to the other"] = " ".join(f"{ratio:.1f}" for ratio in ratios)
    return figures


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench peer", description="another connector beside this one")
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--columns", default=COLUMNS, help="of the table")
    parser.add_argument(
        "--tablets", action="store_true", help="instead of vnodes, which peers may read by several tasks"
    )
    parser.add_argument("--vnodes", type=int, default=8)
    parser.add_argument("--connector", action="append", default=[], metavar="NAME=VALUE", help="a line of both files")
    parser.add_argument("--worker", action="append", default=[], metavar="NAME=VALUE", help="a line of both files")
    parser.add_argument("command", nargs="*", help="the other connector's; {worker} and {connector} are its files")
    return parser.parse_args()


def _run(command: str, prefix: str, options: argparse.Namespace, kafka: EmbeddedKafka, scylla: EmbeddedScylla) -> Side:
    topic = f"{prefix}.{TABLE}"
    # Both sides find their topic: one creates it otherwise, the other has its settings.
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(timeout=60)
    with _started(command, prefix, options, kafka, scylla) as (process, log), _reading(kafka, topic) as consumer:
        seen, heard = 0, time.monotonic()
        first: tuple[int, float, float] | None = None
        while seen < options.rows:
            found = len(consumer.consume(10_000, 0.2))
            seen += found
            now = time.monotonic()
            if found:
                heard = now
                first = first or (_written(admin, topic), _spent(process), now)
            elif process.poll() is not None or now - heard > PATIENCE:
                sys.exit(f"{command} stopped after {seen:,} of {options.rows:,} records:\n{log.read_text()[-3000:]}")
        assert first is not None
        before, cpu, at = first
        spent = _spent(process) - cpu
        if before >= seen or spent < LEAST_CPU_SECONDS:
            sys.exit(f"{command} was done before it could be measured ({spent:.1f} CPU-seconds): more --rows")
        return Side(seen, seen - before, cpu, spent, time.monotonic() - at)


@contextlib.contextmanager
def _started(
    command: str, prefix: str, options: argparse.Namespace, kafka: EmbeddedKafka, scylla: EmbeddedScylla
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    with tempfile.TemporaryDirectory() as folder:
        lines = {
            "connector": {
                "name": prefix,
                "connector.class": "com.scylladb.cdc.debezium.connector.ScyllaConnector",
                "tasks.max": "1",
                "scylla.cluster.ip.addresses": scylla.address,
                "scylla.table.names": TABLE,
                "topic.prefix": prefix,
                "scylla.confidence.window.size": "500",
                "scylla.query.time.window.size": "1000",
                **_given(options.connector),
            },
            "worker": {
                "bootstrap.servers": kafka.bootstrap_servers,
                "offset.storage.topic": f"{prefix}-offsets",
                "offset.storage.file.filename": f"{folder}/offsets",
                "offset.flush.interval.ms": "1000",
                "listeners": f"http://127.0.0.1:{free_port()}",
                **{
                    f"{side}.converter{option}": value
                    for side in ("key", "value")
                    for option, value in (
                        ("", "org.apache.kafka.connect.json.JsonConverter"),
                        (".schemas.enable", "false"),
                    )
                },
                **_given(options.worker),
            },
        }
        places = {"port": str(free_port())}
        for name, properties in lines.items():
            path = Path(folder, f"{name}.properties")
            path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
            places[name] = str(path)
        log = Path(folder, "log")
        with log.open("wb") as out:
            process = subprocess.Popen(
                [part.format(**places) for part in shlex.split(command)],
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        try:
            yield process, log
        finally:
            # A shell script's child does not hear what its parent is told.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@contextlib.contextmanager
def _reading(kafka: EmbeddedKafka, topic: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "bench-peer",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    try:
        yield consumer
    finally:
        consumer.close()


def _written(admin: AdminClient, topic: str) -> int:
    """What the broker has, committed or not: a transaction shows its records when their work is long done."""
    return sum(end_offsets(admin, [(topic, partition) for partition in range(PARTITIONS)]).values())


def _given(lines: list[str]) -> dict[str, str]:
    return dict(line.split("=", 1) for line in lines)


def _spent(process: subprocess.Popen[bytes]) -> float:
    spent = tree_cpu_seconds(process.pid)
    if spent is None:
        sys.exit("processor time is read from /proc, which this system does not have; or the connector has just ended")
    return spent
