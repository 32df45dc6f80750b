"""How fast changes land: appended, merged into a large table, visible; compared with a plain MERGE per batch.

python -m bench landing [--rows N] [--changes N] [--publish MS] [--json]. Starts a broker and Spark of its own on this
machine. Where there is a /proc, work is also told per second of CPU of all processes that land, which other load on the
machine leaves alone.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession

from bench._processor import tree_cpu_seconds
from embedded.kafka import EmbeddedKafka
from spark_jobs.config import Settings, load_settings
from spark_jobs.decode import CELL_TTLS, MADE_BY, decoded_json
from spark_jobs.fold import compacted, folded
from spark_jobs.java_objects import java_class
from spark_jobs.jvm import resolve
from spark_jobs.land import land
from spark_jobs.model import changes_patch
from spark_jobs.session import start_session
from spark_jobs.sinks.sink import noted_in
from spark_jobs.stream import Offsets, Progress, TableProgress, Topics
from spark_jobs.tables import LandedTable, PublishedTable, open_publisher, open_sink

PREFIX, TOPIC = "bench", "bench.ks.t"
COLUMNS = [("a", "int"), ("b", "bigint"), ("c", "text"), ("d", "text"), ("e", "double"), ("f", "boolean")]
TABLE_ID, VERSION = "5b1d2e80-2d41-11ee-9d3b-0242ac120002", "1f0c6d3a9e7b5d42"
HEADERS = [("scylla.table.id", TABLE_ID.encode()), ("scylla.schema.version", VERSION.encode())]
"""Of each record, as the connector writes them."""
PLAIN_BATCH, PLAIN_BATCHES = 50_000, 4
SMALL, SMALL_BATCHES = 1_000, 7
PATIENCE_S = 3_600

Until = Callable[..., None]
"""Waits for a condition, which is looked at every few seconds that may be given too."""


def definition() -> bytes:
    columns = [{"name": "id", "type": "bigint", "kind": "partition_key", "position": 0, "order": "none"}]
    columns += [
        {"name": name, "type": kind, "kind": "regular", "position": -1, "order": "none"} for name, kind in COLUMNS
    ]
    output = {"format": "legacy", "collections": "delta", "range_deletes": "topic", "skipped_operations": []}
    named = {"keyspace_name": "ks", "table_name": "t", "table_id": TABLE_ID, "version": VERSION, "columns": columns}
    return json.dumps({**named, "types": {}, "dropped": [], "output": output}).encode()


def changes(first: int, count: int, keys: int, insert: bool) -> Iterator[bytes]:
    """Inserts of consecutive keys, or updates of random ones that touch half of the columns."""
    rnd = random.Random(first)
    for number in range(first, first + count):
        key = number if insert else rnd.randrange(keys)
        cells = {
            "a": number,
            "b": number * 7,
            "c": f"text {number}",
            "d": f"more {number % 97}",
            "e": number / 3,
            "f": True,
        }
        row: dict[str, Any] = {"id": key}
        for place, (name, value) in enumerate(cells.items()):
            row[name] = {"value": value} if insert or (place + number) % 2 else None
        ts = 1_700_000_000_000_000 + number
        source = {"version": "1", "connector": "scylla", "name": PREFIX, "ts_ms": ts // 1000, "ts_us": ts, "db": "ks"}
        envelope = {"source": source, "before": None, "after": row, "op": "c" if insert else "u", "ts_ms": ts // 1000}
        yield json.dumps(envelope, separators=(",", ":")).encode()


def fill(servers: str, topic: str, values: Iterator[bytes]) -> None:
    """Writes values in one transaction: readers get all of them at its end, so producing them slows nobody down."""
    settings = {"bootstrap.servers": servers, "linger.ms": 50, "compression.type": "lz4", "log_level": 0}
    producer = Producer({**settings, "transactional.id": f"bench-{topic}", "transaction.timeout.ms": 900_000})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number, value in enumerate(values):
        while True:
            try:
                if topic == TOPIC:
                    producer.produce(topic, value=value, partition=number % 2, headers=HEADERS)
                else:
                    producer.produce(topic, value=value, partition=0)
                break
            except BufferError:
                producer.poll(0.05)
    producer.commit_transaction(60)


class Figures(dict[str, Any]):
    """Tells each figure on stderr as soon as it is known: the whole takes minutes."""

    def __setitem__(self, name: str, value: Any) -> None:
        print(f"{name}: {value}", file=sys.stderr, flush=True)
        super().__setitem__(name, value)


@dataclass(frozen=True)
class Moment:
    """Time, and CPU time of all that lands, in seconds."""

    wall: float
    cpu: float

    def __sub__(self, other: Moment) -> Moment:
        return Moment(self.wall - other.wall, self.cpu - other.cpu)

    def __add__(self, other: Moment) -> Moment:
        return Moment(self.wall + other.wall, self.cpu + other.cpu)


class Bench:
    """A broker with the table's topics, Spark, and a warehouse."""

    def __init__(self, servers: str, folder: str, rows: int, count: int, publish_ms: int) -> None:
        self.servers, self.folder, self.rows, self.count = servers, folder, rows, count
        self.publish_ms, self.filled = publish_ms, 0
        self.figures = Figures()
        admin = AdminClient({"bootstrap.servers": servers})
        for future in admin.create_topics([NewTopic(f"{PREFIX}.schemas", 1, 1), NewTopic(TOPIC, 2, 1)]).values():
            future.result(30)
        fill(servers, f"{PREFIX}.schemas", iter([definition()]))
        self.session: SparkSession = start_session(self.settings().session_config())
        sink = open_sink(self.session, self.settings().session_config())
        self.landed = LandedTable(self.session, sink, "ks", "t")
        publisher = open_publisher(self.session, self.settings().session_config())
        assert publisher is not None
        self.published = PublishedTable(publisher, self.landed)
        self.topics = Topics(self.session, self.settings().kafka())
        handle = java_class(self.session, "java.lang.ProcessHandle")
        self._pid = int(handle.current().pid())

    def settings(self, **more: Any) -> Settings:
        return load_settings(
            {
                "name": "bench",
                "bootstrap.servers": self.servers,
                "topic.prefix": PREFIX,
                "tables": ["ks.t"],
                "value.converter.schemas.enable": False,
                # At times that are measured by themselves.
                "publish.interval.ms": 0,
                "warehouse": f"{self.folder}/warehouse",
                "spark.master": "local[2]",
                "spark.driver.memory": "2g",
                "spark.jars": ",".join(map(str, resolve("spark"))),
                **more,
            }
        )

    def now(self) -> Moment:
        spark = tree_cpu_seconds(self._pid)
        return Moment(time.perf_counter(), 0.0 if spark is None else spark + time.process_time())

    def timed(self, work: Callable[[], Any]) -> Moment:
        began = self.now()
        work()
        return self.now() - began

    def fill(self, count: int, insert: bool = False) -> None:
        fill(self.servers, TOPIC, changes(self.filled, count, self.rows, insert))
        self.filled += count

    def once(self, merge_every: int) -> None:
        progress = Progress()
        if land(self.settings(**{"merge.every.rows": merge_every}), True, progress, session=self.session) != 0:
            raise SystemExit(progress.text())

    def rate(self, what: str, count: int, took: Moment) -> None:
        self.figures[f"{what}, changes/s"] = round(count / took.wall)
        if took.cpu:
            self.figures[f"{what}, changes per CPU-second"] = round(count / took.cpu)

    def measure(self) -> None:
        self.fill(self.rows, insert=True)
        cold = self.timed(lambda: self.once(1))
        self.figures[f"first {self.rows:,} rows landed and merged, cold, s"] = round(cold.wall, 1)
        # Until here the JVM has mostly compiled; what is measured begins warm.
        self.fill(self.count // 4)
        self.once(1)
        self.publish()
        append, merge, read = self.running()
        self.rate("append", self.count, append)
        self.figures[f"merge of {self.count:,} changes into {self.rows:,} rows, s"] = round(merge.wall, 1)
        self.rate("sustained with merges", self.count, append + merge)
        publish = self.timed(self.publish)
        self.figures[f"publication of {self.count:,} changes, CPU-s"] = round(publish.cpu, 1)
        self.rate("sustained with merges, all published at once", self.count, append + merge + publish)
        published = self.publishing()
        every = f"published every {self.publish_ms / 1000:g} s and at the end"
        self.figures[f"sustained with merges, {every}, changes per CPU-second"] = round(self.count / (published or 1.0))
        self.figures["of the same without publications, %"] = round(100 * (append + merge).cpu / (published or 1.0))
        self.stages(append, merge, read, published)
        plain = self.plain_recipe(read)
        self.rate("plain recipe, one MERGE per batch", PLAIN_BATCH * PLAIN_BATCHES, plain)
        faster = (self.count / (append + merge).wall) / (PLAIN_BATCH * PLAIN_BATCHES / plain.wall)
        self.figures["landing, times the plain recipe"] = round(faster, 1)

    def publish(self) -> None:
        restored = self.landed.restore()
        assert restored.known is not None
        stand = self.published.stand()
        self.published.publish(restored.known, stand, restored.segment - 1, restored.positions)

    def running(self) -> tuple[Moment, Moment, tuple[Offsets, Offsets]]:
        """A job that runs: what it needs to append and merge many changes, and to show a few."""
        with self.job() as (table, until):
            until(lambda: table.batches > 0)
            begins = self.topics.offsets([TOPIC])
            self.fill(self.count)
            began = self.now()
            until(lambda: table.rows >= self.count)
            appended = self.now()
            until(lambda: table.merges > 0)
            merged = self.now()
            ends = self.topics.offsets([TOPIC])
            waits: list[float] = []
            for _ in range(SMALL_BATCHES):
                due = table.rows + SMALL
                self.fill(SMALL)
                waits.append(self.timed(lambda due=due: until(lambda: table.rows >= due)).wall)  # type: ignore[misc]
            self.figures[f"{SMALL:,} changes visible after, median of {SMALL_BATCHES}, s"] = round(
                statistics.median(waits), 2
            )
            lookup = f"SELECT * FROM ks.t WHERE id = {self.rows // 2}"
            self.session.sql(lookup).collect()
            self.figures["one row by its key, s"] = round(self.timed(self.session.sql(lookup).collect).wall, 2)
        return appended - began, merged - appended, (begins, ends)

    def publishing(self) -> float:
        """The CPU time of as many changes in a job that publishes as well: while it lands them, and what is left then.
        The first publication of the job is of few, so that the next is due an interval later."""
        with self.job(**{"publish.interval.ms": self.publish_ms}) as (table, until):
            until(lambda: table.batches > 0)
            self.fill(SMALL)
            until(self.is_published, 0.5)
            self.fill(self.count)
            began, due = self.now(), table.rows + self.count
            until(lambda: table.rows >= due and table.merges > 0 and self.is_published(), 0.5)
            return (self.now() - began).cpu

    def is_published(self) -> bool:
        """Read from the table's own log: asking Spark again and again would be counted as landing."""
        ends = self.topics.offsets([TOPIC])
        for commit in sorted(Path(self.folder).glob("warehouse/ks/t/_delta_log/*.json"), reverse=True):
            for action in map(json.loads, commit.read_text().splitlines()):
                told = action.get("commitInfo", {}).get("userMetadata")
                if told is not None and (noted := noted_in(told)) is not None:
                    there = noted.get("positions", {}).get(TOPIC, {})
                    return all(there.get(str(part), 0) >= end for (_, part), end in ends.items())
        return False

    @contextlib.contextmanager
    def job(self, **more: Any) -> Iterator[tuple[TableProgress, Until]]:
        """A job that lands until the end of the context, what it tells, and a way to wait while it goes on."""
        progress, stop = Progress(), threading.Event()
        settings = self.settings(**{"merge.every.rows": self.count, **more})
        job = threading.Thread(target=land, args=(settings, False, progress, stop, self.session), daemon=True)

        def until(done: Callable[[], bool], every_s: float = 0.005) -> None:
            deadline = time.monotonic() + PATIENCE_S
            while not done():
                if not job.is_alive() or time.monotonic() > deadline:
                    raise SystemExit(f"landing ended: {progress.text()}")
                time.sleep(every_s)

        job.start()
        try:
            yield progress.of("ks.t"), until
        finally:
            stop.set()
            job.join(60)

    def stages(self, append: Moment, merge: Moment, between: tuple[Offsets, Offsets], published: float) -> None:
        """Shares of the whole, from running the stages by themselves over the same changes."""
        known = self.landed.known()
        assert known is not None
        layout = known.layout()
        batch = self.read(*between).selectExpr("*", MADE_BY, CELL_TTLS)
        decoded = decoded_json(batch, layout, 1, "")
        read, both = self.timed(drop(batch)), self.timed(drop(decoded))
        decoded.write.mode("overwrite").parquet(f"{self.folder}/decoded")
        source = f"SELECT * FROM parquet.`{self.folder}/decoded`"
        fold = self.timed(drop(self.session.sql(compacted(layout, folded(layout, [changes_patch(layout, source)])))))
        kind = "cpu" if read.cpu else "wall"
        parts = {
            "read": read,
            "decode": both - read,
            "append": append - both,
            "fold": fold,
            "merge": merge - fold,
        }
        spent = {name: max(getattr(part, kind), 0.0) for name, part in parts.items()}
        if published:
            spent["publish"] = max(published - (append + merge).cpu, 0.0)
        whole = sum(spent.values())
        self.figures["shares"] = ", ".join(f"{name} {100 * part / whole:.0f} %" for name, part in spent.items())

    def read(self, begins: Offsets, ends: Offsets) -> DataFrame:
        options = {
            "kafka.bootstrap.servers": self.servers,
            "kafka.isolation.level": "read_committed",
            "subscribe": TOPIC,
            "startingOffsets": offsets_text(begins),
            "endingOffsets": offsets_text(ends),
            "kafka.fetch.max.wait.ms": "20",
            "kafka.max.poll.records": "20000",
            "kafka.max.partition.fetch.bytes": "8388608",
            "includeHeaders": "true",
        }
        return self.session.read.format("kafka").options(**options).load()

    def plain_recipe(self, between: tuple[Offsets, Offsets]) -> Moment:
        """What most tutorials do: newest record per key, MERGE of whole rows per batch. It loses partial updates."""
        path = f"{self.folder}/plain"
        kinds = {name: kind.replace("text", "string") for name, kind in COLUMNS}
        fields = ",".join(f"{name}:struct<value:{kind}>" for name, kind in kinds.items())
        schema = f"source struct<ts_us:bigint>, after struct<id:bigint,{fields}>"
        values = ", ".join(f"max_by(e.after.{name}.value, e.source.ts_us) AS {name}" for name in kinds)
        begins = between[0]

        def batch(number: int) -> None:
            half = PLAIN_BATCH // 2
            window = [{place: at + (number + more) * half for place, at in begins.items()} for more in (0, 1)]
            raw = self.read(*window)
            raw.selectExpr(f"from_json(CAST(value AS string), '{schema}') AS e").createOrReplaceTempView("batch")
            newest = self.session.sql(f"SELECT e.after.id AS id, {values} FROM batch GROUP BY e.after.id")
            newest.createOrReplaceTempView("newest")
            self.session.sql(
                f"MERGE INTO delta.`{path}` AS t USING newest AS s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )

        columns = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
        self.session.sql(f"CREATE TABLE delta.`{path}` (id bigint, {columns}) USING delta")
        rows = self.session.sql(f"SELECT id, {', '.join(kinds)} FROM ks.t")
        rows.write.format("delta").mode("append").save(path)
        batch(0)
        began = self.now()
        for number in range(1, PLAIN_BATCHES + 1):
            batch(number)
        return self.now() - began


def drop(frame: DataFrame) -> Callable[[], None]:
    return lambda: frame.write.format("noop").mode("overwrite").save()


def offsets_text(offsets: Offsets) -> str:
    return json.dumps({TOPIC: {str(number): at for (_, number), at in offsets.items()}})


def main() -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m bench landing", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the table that changes are merged into")
    parser.add_argument("--changes", type=int, default=1_000_000, help="changes that are appended, then merged at once")
    parser.add_argument("--publish", type=int, default=60_000, help="publish.interval.ms")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    args = parser.parse_args()
    if args.changes < PLAIN_BATCH * (PLAIN_BATCHES + 1):
        parser.error(f"--changes must be at least {PLAIN_BATCH * (PLAIN_BATCHES + 1)}")
    return measured(args, Bench.measure)


def measured(args: argparse.Namespace, measure: Callable[[Bench], None]) -> dict[str, Any]:
    """The figures of a broker, a Spark and a warehouse of its own; none where they were printed as JSON."""
    with EmbeddedKafka() as kafka, tempfile.TemporaryDirectory() as folder:
        bench = Bench(kafka.bootstrap_servers, folder, args.rows, args.changes, args.publish)
        measure(bench)
        bench.topics.close()
        bench.session.stop()
    if args.json:
        print(json.dumps(bench.figures))
        return {}
    return bench.figures


if __name__ == "__main__":
    for figure, value in main().items():
        print(f"{figure}: {value}")
