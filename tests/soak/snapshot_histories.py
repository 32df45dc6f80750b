"""A soak by hand for snapshots of random tables, in all forms of records and all modes, judged by the source's history.

    .venv/bin/python -m tests.soak.snapshot_histories --seeds 1,2,3

Each seed draws two tables, on vnodes and on tablets, a format, a converter, a mode, and whether records are made in C.
While rows are snapshotted and written, things go wrong: workers die, streams change, reads fail, nodes and the broker
go. After each statement its partition is read, so everything that the source ever showed is known; what an independent
consumer holds (`folded.py`) must be one of these states behind each record. `snapshots.py` beside it has more rows,
written faster, and clocks that jump. Ends with 1 at the first breach.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cassandra.cluster import Session

from connector.errors import RetriableDeliveryError
from connector.timeuuid import micros_of, uuid_bytes
from embedded.kafka import TO_BE_KILLED, EmbeddedKafka
from tests.registry.registry_server import Registry, avro_converters, served
from tests.servers.double import Double
from tests.soak.folded import Topics, Value, breaches
from tests.soak.histories import SourceTable, Writer
from tests.soak.last_look import last_look, tell_breaches, what_happened
from tests.soak.mishaps import Chaos, Mishap, Nodes, OneBroker, Reads, Streams, Workers, until_then
from tests.soak.snapshots import paused
from tests.worker.harness import Service, cql, logged, seldom, until
from tests.worker.snapshot_source import snapshot_ended

# Beside the writers' clocks, the double's nodes and two busy cores.
CONFIDENCE_MS = 3_000
MODES = ("initial", "initial", "initial", "when_needed", "always", "initial_only", "no_data")
#: Of the first table, on vnodes, and of the second.
KEYSPACES = ("vnodes", "tablets")
#: A row of a log: stream, time, number in its batch.
LogRow = tuple[str, str, int]


@dataclass(frozen=True)
class Form:
    """What a seed draws, beside its tables. ``no_data``: the snapshot is asked for later, by a signal."""

    mode: str
    legacy: bool
    avro: bool
    native: str
    log_first: bool
    skew_us: int
    placement: str
    per_second: int
    tasks: int

    def connector(self, name: str) -> dict[str, str]:
        return {
            "snapshot.mode": self.mode,
            "tasks.max": str(self.tasks),
            "scylla.snapshot.max.queries.per.second": str(self.per_second),
            "scylla.confidence.window.size": str(CONFIDENCE_MS),
            "cdc.range.deletes": "topic",
            "signal.enabled.channels": "kafka",
            "signal.kafka.topic": f"{name}-signals",
            **(
                {"cdc.include.collections": "delta"}
                if self.legacy
                else {
                    "cdc.output.format": "advanced",
                    "cdc.include.before": "full",
                    "cdc.include.after": "full",
                    "cdc.include.primary-key.placement": self.placement,
                }
            ),
        }

    def __str__(self) -> str:
        parts = [self.mode, "legacy" if self.legacy else "advanced", "Avro" if self.avro else "JSON"]
        parts += [f"native {self.native}", *(["log first"] if self.log_first else [])]
        return ", ".join([*parts, f"clock {self.skew_us // 1000:+} ms"])


def random_form(draw: random.Random) -> Form:
    skew = CONFIDENCE_MS * 150
    return Form(
        mode=draw.choice(MODES),
        legacy=draw.random() < 0.6,
        avro=draw.random() < 0.4,
        native=draw.choice(["on", "off"]),
        log_first=draw.random() < 0.2,
        skew_us=draw.randrange(-skew, skew),
        placement=draw.choice(
            ["kafka-key,payload-after", "kafka-key,payload-key", "kafka-key,payload-after,payload-key,kafka-headers"]
        ),
        per_second=draw.choice([1, 2, 4, 50]),
        tasks=draw.choice([1, 1, 2]),
    )


class Started(Service):
    """Counts how often its connector was started."""

    starts = 0

    def start(self, *arguments: str, files: bool = True) -> subprocess.Popen[bytes]:
        self.starts += 1
        return super().start(*arguments, files=files)


@dataclass
class Seed:
    """Its servers, its tables, its connector."""

    number: int
    form: Form
    draw: random.Random
    scylla: Double
    session: Session
    registry: Registry
    tables: list[SourceTable]
    service: Started

    def prepare(self) -> None:
        """Tables with their rows, from before the log or in it."""
        images = "" if self.form.legacy else ", 'preimage': 'full', 'postimage': true"
        for table in self.tables:
            self.session.execute(self.scylla.keyspace_ddl(table.keyspace, tablets=table is self.tables[1]))
            table.create(self.session)
            begin = f"ALTER TABLE {table.name} WITH cdc = {{'enabled': true{images}}}"
            if self.form.log_first:
                self.session.execute(begin)
            table.fill(self.session, delete=not self.form.log_first)
            if not self.form.log_first:
                table.forget(self.session)
                self.session.execute(begin)

    def live(self, chaos: Chaos) -> None:
        """Until the snapshot has ended and all changes are delivered."""
        writers = [Writer(self.session, table, self.draw.choice([0.05, 0.1, 0.3])) for table in self.tables]
        for each in writers:
            each.start()
        self.service.start()
        until(self.service.workers, 180, "a worker")
        if self.form.mode == "no_data":
            until(self._runs, 240, "a connector that runs", step=seldom)
            asked = self.service.command("snapshot", "start")
            assert asked.returncode == 0, asked.stderr
        # Then calm: among mishaps that never end a slow snapshot takes minutes, and its rows are few.
        not_over = until_then(self.draw.uniform(10, 40))
        chaos.go_on(f"seed {self.number}", lambda: not_over() and not self._ended(), pauses=(0.3, 2))
        until(self._ended, 300, "the end of the snapshot", step=seldom)
        for writer in writers:
            writer.finish()
        if self.form.mode == "initial_only":
            assert self.service.runs[0].wait() == 0
        else:
            for table in self.tables:
                until(partial(self._delivered, table), 240, f"all changes of {table.name}", step=seldom)
        self.service.settled()

    def judged(self, seen: Counter[str]) -> list[str]:
        wanted = (
            {"incremental": (1, 1)}
            if self.form.mode == "no_data"
            else {"true": (1, self.service.starts if self.form.mode == "always" else 1)}
        )
        found: list[str] = []
        for table in self.tables:
            records, deletes = self._records(table)
            late = self._late(table)
            seen["late changes"] += len(late)
            end = None if self.form.mode == "initial_only" else time.time_ns() // 1000
            topics = Topics(self.form.legacy, records, deletes, end, {*late.values()})
            found += breaches(table, topics, wanted, seen)
            counts = _rows([*(value for _, value in records), *deletes])
            found += [f"{table.name}: delivered more than once: {row}" for row, count in counts.items() if count > 1]
        return found

    # -- where it is -----------------------------------------------------------------------------------------

    def _runs(self) -> bool:
        try:
            return bool(self.service.report()["state"] == "RUNNING")
        except RetriableDeliveryError:
            # A topic that was just created may have no leader yet.
            return False

    def _ended(self) -> bool:
        if self.form.mode == "initial_only":
            return self.service.runs[0].poll() is not None
        return snapshot_ended(self.service)

    def _records(self, table: SourceTable) -> tuple[list[tuple[Value, Value]], list[Value]]:
        """Keys and values of the topic of a table, in the order of each key, and those of deletes of several rows."""
        read, topic = self.registry.read if self.form.avro else json.loads, self.service.topic(table.name)
        found = [(read(each["key"]), each["value"]) for each in self.service.delivered(topic, read=read)]
        deletes = self.service.delivered(f"{topic}.range-deletes", read=read)
        return [pair for pair in found if pair[1] is not None], [each["value"] for each in deletes]

    def _delivered(self, table: SourceTable) -> bool:
        records, deletes = self._records(table)
        missing = logged(self.session, table.name) - _rows([*(value for _, value in records), *deletes])
        return not {*missing} - {*self._late(table)}

    def _late(self, table: SourceTable) -> dict[LogRow, int]:
        """Rows of the log that may be missing, with their partitions. The connector says so of those that came into
        streams behind their end, their writer of those whose answer took longer than the window: a busy machine."""
        pattern = rf"{table.name}: not delivered: the change at (\S+) came into stream 0x(\w+) after its end"
        said = {(stream, at) for at, stream in re.findall(pattern, self.service.log)}
        history = {each.at_us: (pk, each) for pk, written in table.history.items() for each in written}
        found: dict[LogRow, int] = {}
        for stream, at, number in logged(self.session, table.name):
            pk, written = history[micros_of(uuid_bytes(at))]
            if (stream, at) in said or written.late_seconds * 1000 > CONFIDENCE_MS:
                found[stream, at, number] = pk
        return found


def _rows(values: list[Value]) -> Counter[LogRow]:
    """Of the log, those that records are of; a row of a snapshot is in none."""
    sources = (value["source"] for value in values if value.get("op") != "r")
    return Counter((source["stream_id"], source["time"], source["batch_seq_no"]) for source in sources)


def soak(number: int, folder: Path) -> list[str]:
    draw = random.Random(number)
    form = random_form(draw)
    # A set that counts at once would end those that a clock ahead of it still writes to.
    delay = 0.1 if form.skew_us > 0 else 0
    registry, name, began = Registry(), f"histories{number}", time.monotonic()
    with (
        served(registry) as address,
        Double(ring_delay=delay, seed=number, nodes=3, shards=2, vnodes=6) as scylla,
        EmbeddedKafka(properties=TO_BE_KILLED) as kafka,
        cql(scylla) as session,
    ):
        tables = [SourceTable(random.Random(f"{number}{kind}"), f"{kind}{number}", form.skew_us) for kind in KEYSPACES]
        service = Started(
            folder,
            scylla,
            kafka.bootstrap_servers,
            name,
            [table.name for table in tables],
            connector=form.connector(name),
            worker={"native": form.native, **(avro_converters(address) if form.avro else {})},
        )
        seed = Seed(number, form, draw, scylla, session, registry, tables, service)
        workers = Workers(service, draw)
        of_a_run = [Mishap(4, workers.kill_worker), Mishap(2, workers.pause_worker)]
        # A run that has made its snapshot ends by itself: nobody must start another one then.
        ends = form.mode == "initial_only"
        who_reads = of_a_run if ends else [*workers.mishaps, Mishap(2, partial(paused, service, draw))]
        what_is_read = Streams(scylla, session, draw, tables[1].name).mishaps
        chaos = Chaos(
            draw,
            [
                # The first two decide who goes on where, so they come more often than what only takes its time.
                *(2 * [*who_reads, *what_is_read]),
                *Reads(scylla.admin).mishaps,
                *Nodes(scylla.admin, draw, CONFIDENCE_MS).mishaps,
                *OneBroker(kafka).mishaps,
            ],
        )
        with last_look(
            service, lambda _: print(f"seed {number}: {form}: {what_happened(chaos, folder)}", file=sys.stderr)
        ):
            seed.prepare()
            seed.live(chaos)
            seen: Counter[str] = Counter()
            found = seed.judged(seen)
            told = ", ".join(f"{count} {what}" for what, count in sorted(seen.items()))
            print(
                f"seed {number}: {form}: {told}, {len(chaos.happened)} mishaps, {len(found)} breaches,"
                f" {time.monotonic() - began:.0f} s",
                flush=True,
            )
            tell_breaches(found, chaos, folder)
            if found:
                (folder / f"{name}-statements.txt").write_text(_statements(tables))
            assert seen["compared"], "nothing could be compared"
            if form.mode != "initial_only":
                assert service.stop(service.runs[-1]) == 0
            return found


def _statements(tables: list[SourceTable]) -> str:
    """What each table is made of, and all that was written to it."""
    lines: list[str] = []
    for table in tables:
        kinds = {name: kind.spelling for name, kind in {**table.columns, **table.statics}.items()}
        lines.append(f"{table.name} {table.clustering} {kinds}")
        written = [each for history in table.history.values() for each in history]
        lines += [each.text for each in sorted(written, key=lambda each: each.at_us)]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.snapshot_histories", description=__doc__)
    parser.add_argument("--seeds", default="1", help="1,2,3")
    parser.add_argument("--folder", type=Path, help="where logs are kept (a temporary folder)")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="scylla-cdc-soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    return 1 if any(soak(seed, folder) for seed in map(int, given.seeds.split(","))) else 0


if __name__ == "__main__":
    sys.exit(main())
