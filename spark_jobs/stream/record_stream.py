"""The records of a table's topics as a stream of Spark's.

In: the topics with their partitions, and the positions to begin from. Out: a frame of committed records with their
headers; of a batch, where it ends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.config import Settings
from spark_jobs.java_objects import file_text, hadoop_path
from spark_jobs.stream.kafka_topics import Offsets, starting_offsets, subscribed

_FETCH = {
    "kafka.fetch.max.wait.ms": "20",
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": "8388608",
}


def record_stream(
    session: SparkSession,
    settings: Settings,
    topics: Sequence[str],
    partitions: Mapping[str, list[int]],
    positions: Offsets,
) -> DataFrame:
    """What is committed in the topics, of which these partitions are there, from the positions on."""
    reader = session.readStream.format("kafka").options(**_FETCH)
    for name, value in settings.kafka().items():
        reader = reader.option(f"kafka.{name}", value)
    return (
        reader.option("kafka.isolation.level", "read_committed")
        .option(*subscribed(partitions, topics))
        .option("startingOffsets", starting_offsets(partitions, positions))
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
        .option("maxOffsetsPerTrigger", str(settings.max_offsets_per_trigger))
        .option("groupIdPrefix", f"{settings.name}-landing")
        .load()
    )


def batch_ends(session: SparkSession, offsets_folder: str, number: int) -> Offsets:
    """A batch's end offsets, which Spark wrote down before it handed the batch over."""
    text = file_text(session, hadoop_path(session, f"{offsets_folder}/{number}"))
    ends = json.loads(text.splitlines()[-1])
    return {(topic, int(part)): offset for topic, parts in ends.items() for part, offset in parts.items()}
