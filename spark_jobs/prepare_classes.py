"""`python -m spark_jobs.prepare_classes`, once during set-up: writes the archive that `spark_jobs.jvm` finds.

A few changes are landed and published by a JVM that archives the classes it has loaded when it ends.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from connector.errors import LandingError
from spark_jobs.decode import decoded_json
from spark_jobs.functions import register_functions
from spark_jobs.java_objects import java_class
from spark_jobs.jvm import archive_path, find_java, resolve, with_class_path
from spark_jobs.model import parse_definition
from spark_jobs.session import DEFAULTS, session_settings, start_session
from spark_jobs.sinks import FORMATS
from spark_jobs.tables import Known, LandedTable, PublishedTable

_COLUMNS = (("pk", "int", "partition_key", 0), ("ck", "int", "clustering", 0), ("v", "text", "regular", -1))


def _config(folder: str, *options: str) -> dict[str, Any]:
    """A session of two tasks: of what a landing job is configured with, only the jars matter to the archive."""
    return {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": " ".join((DEFAULTS["spark.driver.extraJavaOptions"], *options)),
        "spark.jars": ",".join(map(str, resolve("spark"))),
        "warehouse": folder,
    }


def write_archive(path: Path) -> None:
    """Lands beside the archive's place, and moves it there when it is whole: others may do the same meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="classes-", dir=path.parent) as folder:
        fresh = Path(folder) / "fresh.jsa"
        session = start_session(_config(folder, f"-XX:ArchiveClassesAtExit={fresh}", "-XX:TieredStopAtLevel=1"))
        _land(session, folder)
        session.stop()
        gateway: Any = SparkContext._gateway
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
        if not fresh.is_file():
            raise LandingError("Java wrote none, as one does that has no archive of its own classes")
        os.replace(fresh, path)
    for other in path.parent.glob(f"{path.stem.rpartition('-')[0]}-*.jsa"):
        # Of jars or a Java that were replaced since. Who runs from it keeps it.
        if other != path:
            other.unlink(missing_ok=True)


def _land(session: SparkSession, folder: str) -> None:
    columns = [
        {"name": name, "type": spelled, "kind": kind, "position": position}
        for name, spelled, kind, position in _COLUMNS
    ]
    known = Known((parse_definition(json.dumps(_RECORD | {"columns": columns})),))
    form = FORMATS["delta"]
    assert form.publisher is not None
    landed = LandedTable(session, form.open(session, folder), "ks", "t")
    layout = landed.prepare(known)
    register_functions(session, layout)
    published = PublishedTable(form.publisher(session, folder), landed)
    stand = None
    for segment in (1, 2):
        rows = [(None, bytearray(_change(segment, at)), "p.ks.t", 0, at) for at in range(10)]
        records = session.createDataFrame(rows, "key binary, value binary, topic string, partition int, offset bigint")
        dated = records.selectExpr("*", "current_timestamp() AS timestamp")
        landed.append(decoded_json(dated, layout, segment, "p.ks.t.range-deletes"))
        landed.restore()
        stand = published.publish(known, stand, segment, {})
        landed.merge(layout, segment)
    landed.register(layout)
    session.table("ks.t").collect()
    _stream(session, folder)


def _collected(frame: DataFrame, _: int) -> None:
    frame.collect()


def _stream(session: SparkSession, folder: str) -> None:
    """A query of a stream, and the client of a broker that does not answer."""
    source = f"{folder}/source"
    session.range(3).write.format("delta").save(source)
    query = (
        session.readStream.format("delta")
        .load(source)
        .writeStream.foreachBatch(_collected)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    properties = java_class(session, "java.util.HashMap")()
    kind = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
    for name, value in {
        "bootstrap.servers": "127.0.0.1:1",
        "key.deserializer": kind,
        "value.deserializer": kind,
    }.items():
        properties.put(name, value)
    java_class(session, "org.apache.kafka.clients.consumer.KafkaConsumer")(properties).close()
    java_class(session, "org.apache.kafka.clients.admin.AdminClient").create(properties).close()


_RECORD: dict[str, Any] = {
    "keyspace_name": "ks",
    "table_name": "t",
    "table_id": None,
    "version": "1",
    "types": {},
    "dropped": [],
    "cdc": {},
    "output": {"format": "legacy", "collections": "delta", "range_deletes": "topic", "skipped_operations": []},
}


def _change(segment: int, at: int) -> bytes:
    time = 1000 * segment + at
    row = {"pk": at % 3, "ck": at, "v": {"value": f"v{segment}"}}
    source = {"version": "1", "connector": "scylla", "ts_us": time, "ts_ms": time // 1000}
    return json.dumps({"source": source, "before": None, "after": row, "op": "c", "ts_ms": time // 1000}).encode()


def main() -> None:
    try:
        os.environ.update(find_java().spark_environment())
        with tempfile.TemporaryDirectory() as folder:
            path = archive_path(with_class_path(session_settings(_config(folder))))
        if path is not None and not path.is_file():
            print("preparing Spark ...", file=sys.stderr, flush=True)
            write_archive(path)
    except Exception as error:
        # Spark starts without it too, only later.
        print(f"no class archive for Spark: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
