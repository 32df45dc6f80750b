"""The properties of the landing file, each declared once.

In: nothing. Out: declarations that loading and the documentation read.
"""

from __future__ import annotations

from connector.config import (
    BOOLEAN,
    BROKERS,
    LIST,
    LONG_MAX,
    OUTPUT_FORMATS,
    STRING,
    TABLE_NAMES,
    URLS,
    Property,
    integer,
    one_of,
)
from spark_jobs.config.source_settings import SOURCE_PROPERTIES
from spark_jobs.sinks import DEFAULT, FORMATS

_MS = integer(0, LONG_MAX)


def _required(what: str) -> str:
    return f"A value is required: {what}"


# fmt: off
PROPERTIES: tuple[Property, ...] = (
    Property("name", STRING, "The job's name, for its lease and checkpoints.", required=_required("the job's name")),
    Property("bootstrap.servers", BROKERS, "Kafka's brokers.", required=_required("host:port of Kafka")),
    Property("topic.prefix", STRING, "The connector's `topic.prefix`.", required=_required("the connector's prefix")),
    Property("tables", TABLE_NAMES, "The tables to land.", required=_required("a list of keyspace.table")),
    Property("warehouse", STRING, "Folder of the landed tables, on any Hadoop file system.",
             required=_required("a folder")),
    Property("checkpoint", STRING, "Folder of Spark's checkpoints; can be deleted at any time.",
             default_text="`_checkpoint` in the warehouse"),
    Property("sink", one_of(*FORMATS), "The landed tables' format.", DEFAULT),
    Property("value.converter", STRING, "The connector's `value.converter`.", "JsonConverter"),
    Property("value.converter.schemas.enable", BOOLEAN, "The connector's setting of the same name.", True),
    Property("schema.registry.url", URLS, "The Schema Registry, for Avro.", (),
             aliases=("value.converter.schema.registry.url",)),
    Property("schema.topic", STRING, "Topic of the table definitions; empty if there is none.",
             default_text="`<topic.prefix>.schemas`"),
    Property("table.definitions", LIST, "CQL files with CREATE TYPE and CREATE TABLE, if there is no schemas topic "
             "(records of the Java connector).", ()),
    Property("table.definitions.format", one_of(*OUTPUT_FORMATS), "The `cdc.output.format` of those tables' "
             "records.", "legacy"),
    Property("column.types", STRING, "Declared types of columns: an object of `ks.table.column` to "
             "`decimal(p,s)` or, for timestamps, `bigint`.", {}),
    Property("merge.every.rows", integer(1, LONG_MAX), "Merge after this many unmerged changes.", 1_000_000),
    Property("merge.every.ms", _MS, "Merge when the oldest unmerged change is this old; 0 = never by time.",
             600_000),
    Property("trigger.interval.ms", _MS, "Interval of micro-batches; each writes a file and makes a commit.",
             default_text="2000, of more than 60 tables 33 for each"),
    Property("max.offsets.per.trigger", integer(1, LONG_MAX), "Maximum records of a table in a micro-batch.", 500_000),
    Property("state.buckets", integer(1, 1_000_000), "Parts of a landed table, by hash of the partition key; "
             "fixed when the table is created. About one per million rows, at least one per core.", 4),
    Property("publish.interval.ms", _MS, "How often the published table (`<warehouse>/ks/t`) is brought up to what has "
             "landed; `--once` does it at its end. 0 = never.", 60_000),
    Property("publish.catalog", STRING, "A catalog of the Spark session in which the published Delta tables are "
             "registered: `spark_catalog` with a Hive metastore, or one of `spark.sql.catalog.*`. Iceberg's are in "
             "their own.", default_text="none"),
    Property("publish.retention.ms", _MS, "How long earlier versions of the published tables, and their change feed, "
             "can be read; a day at least.", 604_800_000),
    Property("reader.grace.ms", _MS, "How long merged changes are kept for queries that started before.",
             3_600_000),
    Property("history", LIST, "Tables whose row versions are kept, as `ks.t__history`.", ()),
    Property("history.retention.ms", integer(1, LONG_MAX), "How long these versions are kept (`maintain`).",
             default_text="for ever"),
    Property("tombstone.retention.ms", integer(1, LONG_MAX), "Minimum time that deletes are kept: a change older than "
             "a delete that `maintain` has removed would appear again if it arrived late.", 864_000_000),
    Property("schema.evolution", one_of("evolve", "freeze"), "Whether landed tables follow the source's columns.",
             "evolve"),
    Property("schema.evolution.freeze", LIST, "Tables that do not follow, regardless of schema.evolution.", ()),
    Property("lease.timeout.ms", integer(1000, LONG_MAX), "A holder without a renewal for this long loses its lease.",
             60_000),
    Property("lease.folder", STRING, "Where leases are, if not in the warehouse: a file system on which a file is "
             "created at most once.", default_text="`_leases` in the warehouse"),
    Property("source.tasks", integer(0), "Concurrent tasks of `verify` and `backfill` that read the source; 0 means "
             "two per core.", 0),
    Property("retry.backoff.max.ms", integer(1, LONG_MAX), "Maximum backoff before a failed table is retried.",
             30_000),
    Property("log.level", one_of("OFF", "ERROR", "WARN", "INFO"), "Level of Spark's log.", "OFF"),
)
# fmt: on
PREFIXES = ("kafka.", "spark.")
#: Of the registry's client, beside its address.
REGISTRY = ("schema.registry.basic.auth.user.info",)
ALL_PROPERTIES = (*PROPERTIES, *SOURCE_PROPERTIES)
BY_NAME = {name: declared for declared in ALL_PROPERTIES for name in (declared.name, *declared.aliases)}
