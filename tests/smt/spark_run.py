"""Runs the Spark expressions over records given on stdin, in a process of its own: a session cannot be shared with
tests that need other settings.

In: JSON `{"records": [[topic, key, value, headers]…], "cases": [[type, options, as_json]…], "chains": [[properties,
records as texts]…]}`. Out: JSON `{"cases": …, "chains": …}`, one list of results for each case, `[number of the record,
topic, value, headers]`, and the rows of all chains together, `[number of the chain, of the record, topic, key, value,
headers]`.
"""

from __future__ import annotations

import json
import os
import sys
from functools import reduce
from typing import Any

from spark_jobs.jvm import find_java, resolve, with_archive, with_class_path

KEY = "pk int, ck int"
ROW = "struct<ck: int, pk: int, v: struct<value: string>, w: struct<value: int>>"
VALUE = (
    f"source struct<ts_us: bigint, table_name: string>, before {ROW}, after {ROW}, "
    "op string, ts_ms bigint, transaction struct<id: string>"
)


def main() -> None:
    # The python3 of the PATH may be another one.
    os.environ.update(find_java().spark_environment(), PYSPARK_PYTHON=sys.executable)
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    from smt.spark import extract_new_state

    given = json.load(sys.stdin)
    settings = {
        "spark.master": "local[2]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # So few rows are not worth compiling expressions for.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        # They are there for the archive of Spark's classes, which is one of theirs too.
        "spark.jars": ",".join(map(str, resolve("spark"))),
    }
    builder = SparkSession.builder
    for name, text in with_archive(with_class_path(settings)).items():
        builder = builder.config(name, text)
    spark = builder.getOrCreate()
    rows: list[tuple[Any, ...]] = [
        (
            number,
            topic,
            None if key is None else json.dumps(key),
            None if value is None else json.dumps(value),
            [(name, text.encode()) for name, text in headers],
        )
        for number, (topic, key, value, headers) in enumerate(given["records"])
    ]
    schema = "n int, topic string, key string, value string, headers array<struct<key: string, value: binary>>"
    df = spark.createDataFrame(rows, schema).coalesce(1)
    df = df.withColumn("key", f.from_json("key", KEY)).withColumn("value", f.from_json("value", VALUE)).cache()
    results = []
    for type_name, options, as_json in given["cases"]:
        flat = extract_new_state(df, options, type_name=type_name, as_json=as_json)
        found = []
        for row in sorted(flat.collect(), key=lambda row: row["n"]):
            value = row["value"] if as_json or row["value"] is None else row["value"].asDict(recursive=True)
            headers = [[header["key"], header["value"] and header["value"].decode()] for header in row["headers"]]
            found.append([row["n"], row["topic"], value, headers])
        results.append(found)
    json.dump({"cases": results, "chains": _chains(spark, given["chains"])}, sys.stdout)
    spark.stop()


def _chains(spark: Any, chains: list[Any]) -> list[Any]:
    """All of them in one job. Times and offsets are what `InsertField` shows."""
    from smt.spark import transform_records

    schema = (
        "chain int, n int, topic string, key binary, value binary, headers array<struct<key: string, value: binary>>, "
        "partition int, millis bigint, offset bigint"
    )
    parts = []
    for number, (properties, records) in enumerate(chains):
        rows = [
            (number, n, topic, *(part and part.encode() for part in (key, value)), _bytes(headers), *place)
            for n, (topic, key, value, headers, place) in enumerate(records)
        ]
        df = spark.createDataFrame(rows, schema).coalesce(1).selectExpr("*", "timestamp_millis(millis) as timestamp")
        parts.append(transform_records(df, properties).drop("millis", "timestamp"))
    found = []
    for row in reduce(lambda one, two: one.union(two), parts).collect():
        key, value = (None if row[name] is None else row[name].decode() for name in ("key", "value"))
        headers = [[header["key"], header["value"] and header["value"].decode()] for header in row["headers"]]
        found.append([row["chain"], row["n"], row["topic"], key, value, headers])
    return sorted(found, key=lambda each: each[:2])


def _bytes(headers: list[Any]) -> list[Any]:
    return [(name, None if text is None else text.encode()) for name, text in headers]


if __name__ == "__main__":
    main()
