"""Names from elsewhere that stand in real connectors' files: Debezium's other connectors, sinks, the framework's own.

In: nothing. Out: ``NEIGHBOURS``, each a reason with the names it is true of. The Java connector ignores them all, and
so does this service; they are known so that each can say why, and so that none is taken for a misspelling.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Neighbour:
    """``prefixes`` end with a dot."""

    what: str
    reason: str
    names: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()

    def has(self, name: str) -> bool:
        return name in self.names or name.startswith(self.prefixes)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


NEIGHBOURS: tuple[Neighbour, ...] = (
    Neighbour(
        "older names of this connector's properties",
        "newer versions of the Java connector do not read it either: `topic.prefix` is its name since 1.2.3",
        _names("scylla.name database.server.name"),
    ),
    Neighbour(
        "other ways to name Kafka",
        "Kafka is named in the worker's file, `bootstrap.servers`",
        _names("kafka.bootstrap.servers kafka.brokers kafka.servers"),
    ),
    Neighbour(
        "which tables Debezium's other connectors read",
        "the tables are those of `scylla.table.names`, as in the Java connector",
        _names(
            """
            table.include.list table.exclude.list table.whitelist table.blacklist table.ignore.builtin
            schema.include.list schema.exclude.list schema.whitelist schema.blacklist
            database.include.list database.exclude.list database.whitelist database.blacklist
            collection.include.list collection.exclude.list collection.whitelist collection.blacklist
            """
        ),
    ),
    Neighbour(
        "which columns Debezium's other connectors write, and how",
        "every column is written as it is, nothing is filtered, masked or renamed: as in the Java connector",
        _names(
            """
            column.include.list column.exclude.list column.whitelist column.blacklist column.propagate.source.type
            datatype.propagate.source.type field.exclude.list field.include.list field.renames message.key.columns
            """
        ),
        ("column.mask.", "column.truncate."),
    ),
    Neighbour(
        "older names of Debezium's adjustment",
        "`field.name.adjustment.mode=avro` is its name since Debezium 2.0",
        _names("sanitize.field.names"),
    ),
    Neighbour(
        "updates that change nothing",
        "every change in the log gets its record, as in the Java connector",
        _names("skip.messages.without.change"),
    ),
    Neighbour(
        "Debezium's internals",
        "it is internal to Debezium",
        prefixes=("internal.",),
    ),
    Neighbour(
        "later versions of Debezium",
        "the Java connector's version of Debezium (2.7) does not have it",
        _names(
            """
            extended.headers.enabled connection.validation.timeout.ms topic.heartbeat.name
            snapshot.max.threads.multiplier
            """
        ),
        ("guardrail.", "openlineage.", "record.processing.", "offset.activity."),
    ),
    Neighbour(
        "schema histories",
        "it is of Debezium's relational connectors; descriptions of tables are in `scylla.schema.topic`",
        _names(
            "include.schema.changes include.schema.comments schema.history.internal schema.history database.history"
        ),
        ("schema.history.", "database.history."),
    ),
    Neighbour(
        "snapshots",
        "a snapshot needs no such setting (see `snapshot.mode`)",
        _names(
            """
            snapshot.collection.filter.overrides snapshot.lock.timeout.ms snapshot.locking.mode snapshot.new.tables
            snapshot.select.statement.overrides min.row.count.to.stream.results
            """
        ),
        ("snapshot.select.statement.overrides.",),
    ),
    Neighbour(
        "signals",
        "which signals are done is remembered in the offsets topic",
        _names("signal.kafka.consumer.offset.commit.enabled"),
    ),
    Neighbour(
        "other databases",
        "it is a property of another connector",
        _names(
            """
            bigint.unsigned.handling.mode capture.mode capture.mode.full.update.type capture.scope capture.target
            connect.keep.alive connect.keep.alive.interval.ms connect.timeout.ms enable.time.adjuster
            event.deserialization.failure.handling.mode filters.match.mode flush.lsn.source hstore.handling.mode
            include.query include.unknown.datatypes inconsistent.schema.handling.mode interval.handling.mode
            money.fraction.digits plugin.name read.only replica.identity.autoset.values schema.refresh.mode server.id
            server.name status.update.interval.ms use.nongraceful.disconnect xmin.fetch.interval.ms
            varint.handling.mode commit.log.relocation.dir cassandra.config snapshot.consistency
            """
        ),
        (
            *("database.", "mongodb.", "slot.", "publication.", "gtid.", "binlog.", "cursor.", "message.prefix."),
            *("log.mining.", "rac.", "lob.", "cassandra.", "vitess.", "gcp.spanner.", "logminer."),
        ),
    ),
    Neighbour(
        "connectors of JDBC, of files and of objects",
        "it is a property of another connector",
        _names(
            """
            connection.url connection.user connection.password connection.attempts connection.backoff.ms mode
            incrementing.column.name timestamp.column.name numeric.mapping topic.regex topic.replacement
            insert.mode pk.mode pk.fields auto.create auto.evolve delete.enabled table.name.format batch.max.rows
            validate.non.null dialect.name db.timezone table.types query file topic flush.size rotate.interval.ms
            """
        ),
        ("s3.", "aws.", "connection.", "camel.", "hive.", "elastic.", "es."),
    ),
    Neighbour(
        "Confluent Cloud",
        "it is for Confluent Cloud; Kafka's login stands in the worker's file",
        _names(
            """
            kafka.api.key kafka.api.secret kafka.auth.mode kafka.endpoint kafka.region kafka.service.account.id
            """
        ),
    ),
    Neighbour(
        "sinks",
        "it is for connectors that read topics",
        _names("topics topics.regex behavior.on.null.values max.retries"),
    ),
)


def neighbour_of(name: str) -> Neighbour | None:
    """What a name from elsewhere is, if it is one that is known."""
    return next((one for one in NEIGHBOURS if one.has(name)), None)
