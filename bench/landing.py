"""How fast changes land: appended, merged into a large table, and beside the plain recipe of one MERGE per micro-batch.

python bench/landing.py [--rows N] [--changes N] [--json]. Starts a broker and Spark of its own on this machine.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from embedded.jars import resolve
from embedded.kafka import EmbeddedKafka
from spark_jobs.decode import decoded_json
from spark_jobs.fold import compacted, folded
from spark_jobs.land import land
from spark_jobs.landed_table import LandedTable
from spark_jobs.patches import changes_patch
from spark_jobs.progress import Progress
from spark_jobs.registration import open_sink
from spark_jobs.session import start_session
from spark_jobs.settings import load_settings

PREFIX, TOPIC = "bench", "bench.ks.t"
COLUMNS = [("a", "int"), ("b", "bigint"), ("c", "text"), ("d", "text"), ("e", "double"), ("f", "boolean")]


def definition() -> bytes:
    columns = [{"name": "id", "type": "bigint", "kind": "partition_key", "position": 0, "order": "none"}]
    columns += [
        {"name": name, "type": kind, "kind": "regular", "position": -1, "order": "none"} for name, kind in COLUMNS
    ]
    output = {"format": "legacy", "collections": "delta", "range_deletes": "topic", "skipped_operations": []}
    named = {"keyspace_name": "ks", "table_name": "t", "table_id": None, "version": "1", "columns": columns}
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
        yield json.dumps(envelope).encode()


def fill(servers: str, topic: str, values: Iterator[bytes]) -> None:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 50, "compression.type": "lz4"})
    for value in values:
        while True:
            try:
                producer.produce(topic, value=value, key=value[-24:])
                break
            except BufferError:
                producer.poll(0.05)
    producer.flush()


class Figures(dict[str, Any]):
    """Tells each figure on stderr as soon as it is known: the whole takes minutes."""

    def __setitem__(self, name: str, value: Any) -> None:
        print(f"{name}: {value}", file=sys.stderr, flush=True)
        super().__setitem__(name, value)


def timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure(rows: int, count: int) -> dict[str, Any]:
    with EmbeddedKafka() as kafka, tempfile.TemporaryDirectory() as folder:
        servers = kafka.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers})
        topics = [NewTopic(f"{PREFIX}.schemas", 1, 1), NewTopic(TOPIC, 2, 1)]
        for future in admin.create_topics(topics).values():
            future.result(30)
        fill(servers, f"{PREFIX}.schemas", iter([definition()]))
        settings = load_settings(
            {
                "name": "bench",
                "bootstrap.servers": servers,
                "topic.prefix": PREFIX,
                "tables": ["ks.t"],
                "value.converter.schemas.enable": False,
                "warehouse": f"{folder}/warehouse",
                "merge.every.rows": 10**12,
                "merge.every.ms": 0,
                "spark.master": "local[2]",
                "spark.driver.memory": "2g",
                "spark.jars": ",".join(map(str, resolve("spark"))),
            }
        )
        session = start_session(settings.session_config())
        landed = LandedTable(session, open_sink(session, settings.session_config()), "ks", "t")
        figures = Figures()

        def once() -> None:
            progress = Progress()
            if land(settings, True, progress, session=session) != 0:
                raise SystemExit(progress.text())

        def merge() -> None:
            known = landed.known()
            assert known is not None
            landed.merge(known.layout(), landed.restore().segment - 1)

        fill(servers, TOPIC, changes(0, rows, rows, insert=True))
        figures["append, rows/s, cold"] = round(rows / timed(once))
        figures["first merge, s"] = round(timed(merge), 2)
        fill(servers, TOPIC, changes(rows, count, rows, insert=False))
        append = timed(once)
        merged = timed(merge)
        figures["append, changes/s"] = round(count / append)
        figures[f"merge of {count:,} changes into {rows:,} rows, s"] = round(merged, 2)
        figures["sustained with merges, changes/s"] = round(count / (append + merged))
        fill(servers, TOPIC, changes(rows + count, 1000, rows, insert=False))
        figures["1,000 changes, s"] = round(timed(once), 2)
        for part in (
            stages(session, landed, servers, rows, count),
            plain_recipe(session, servers, folder, rows, count),
        ):
            for name, value in part.items():
                figures[name] = value
        session.stop()
        return figures


def stages(session: Any, landed: LandedTable, servers: str, rows: int, count: int) -> dict[str, float]:
    """Seconds of each stage by itself, for the same changes."""
    known = landed.known()
    assert known is not None
    layout = known.layout()
    batch = read(session, servers, rows, count)
    decoded = decoded_json(batch, layout, 1, "")

    def drop(frame: Any) -> Callable[[], None]:
        return lambda: frame.write.format("noop").mode("overwrite").save()

    decoded.write.mode("overwrite").saveAsTable("decoded")
    fold = session.sql(compacted(layout, folded(layout, [changes_patch(layout, "SELECT * FROM decoded")])))
    return {
        "read, s": round(timed(drop(batch)), 2),
        "read and decode, s": round(timed(drop(decoded)), 2),
        "fold, s": round(timed(drop(fold)), 2),
    }


def read(session: Any, servers: str, rows: int, count: int) -> Any:
    options = {
        "kafka.bootstrap.servers": servers,
        "subscribe": TOPIC,
        "startingOffsets": json.dumps({TOPIC: {"0": rows // 2, "1": rows // 2}}),
        "kafka.fetch.max.wait.ms": "20",
        "kafka.max.poll.records": "20000",
        "kafka.max.partition.fetch.bytes": "8388608",
    }
    return session.read.format("kafka").options(**options).load().limit(count)


def plain_recipe(session: Any, servers: str, folder: str, rows: int, count: int) -> dict[str, Any]:
    """What most tutorials do: newest record per key, MERGE of whole rows per batch. It loses partial updates."""
    path = f"{folder}/plain"
    fields = ",".join(f"{name} struct<value:{kind.replace('text', 'string')}>" for name, kind in COLUMNS)
    schema = f"source struct<ts_us:bigint>, after struct<id:bigint,{fields.replace(' struct', ':struct')}>"
    values = ", ".join(f"max_by(e.after.{name}.value, e.source.ts_us) AS {name}" for name, _ in COLUMNS)
    text = f"SELECT e.after.id AS id, {values} FROM batch GROUP BY e.after.id"

    def batch(part: int, parts: int) -> None:
        raw = read(session, servers, rows, count).where(f"pmod(offset, {parts}) = {part}")
        raw.selectExpr(f"from_json(CAST(value AS string), '{schema}') AS e").createOrReplaceTempView("batch")
        session.sql(text).createOrReplaceTempView("newest")
        session.sql(
            f"MERGE INTO delta.`{path}` AS t USING newest AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    empty = ", ".join(f"{name} {kind.replace('text', 'string')}" for name, kind in COLUMNS)
    session.sql(f"CREATE TABLE delta.`{path}` (id bigint, {empty}) USING delta")
    session.sql(
        "SELECT k_p0 AS id, v_a AS a, v_b AS b, v_c AS c, v_d AS d, v_e AS e, v_f AS f FROM ks.t__state"
    ).write.format("delta").mode("append").save(path)
    parts = max(count // 50_000, 1)
    seconds = timed(lambda: [batch(part, parts) for part in range(parts)])
    return {f"plain recipe, {parts} MERGEs, changes/s": round(count / seconds)}


def main() -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="bench/landing.py", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, default=400_000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    figures = measure(args.rows, args.changes)
    if args.json:
        print(json.dumps(figures))
        return {}
    return figures


if __name__ == "__main__":
    for figure, value in main().items():
        print(f"{figure}: {value}")
