"""Declarations: what the Java connector inherits from Debezium and this service knows without needing it."""

from __future__ import annotations

from connector.config.properties.kind import BOOLEAN, LONG_MAX, STRING, integer, one_of
from connector.config.properties.property import Effect, Property, Section, without_effect

_BOUNDED = "memory is bounded by pages read ahead and by the size of a transaction"
_NO_SNAPSHOT = "a snapshot needs no such setting (see `snapshot.mode`)"
_NO_SIGNALS = "signals are read from `signal.kafka.topic`, with the worker's own settings of Kafka"
_NAME_MODES = one_of("none", "avro", "avro_unicode")
_AS_JAVA = "record schemas do not depend on it, as in the Java connector"
_TRANSIENT = "transient errors are retried without limit, visibly"

INHERITED = Section(
    "Inherited from Debezium",
    "Accepted so that existing files run unchanged.",
    (
        Property(
            "max.batch.size",
            integer(1),
            "Most records of one batch of the Java connector.",
            default=2048,
            effect=Effect.NONE,
            reason=_BOUNDED,
        ),
        Property(
            "max.queue.size",
            integer(1),
            "Most records in the Java connector's queue; must be larger than `max.batch.size`.",
            default=8192,
            effect=Effect.NONE,
            reason=_BOUNDED,
        ),
        *without_effect(_BOUNDED, ("max.queue.size.in.bytes",), integer(0, LONG_MAX)),
        *without_effect("reading is not polled", ("poll.interval.ms",), integer(1, LONG_MAX)),
        Property(
            "event.processing.failure.handling.mode",
            one_of("fail", "warn", "skip", "ignore"),
            "What the Java connector does with a row it cannot process.",
            default="fail",
            effect=Effect.NONE,
            reason="no row is dropped: see `errors.tolerance`",
        ),
        Property(
            "event.converting.failure.handling.mode",
            one_of("fail", "warn", "skip"),
            "What Debezium does with a value it cannot convert.",
            default="fail",
            effect=Effect.NONE,
            reason="no value is dropped: see `errors.tolerance`",
        ),
        *without_effect(_TRANSIENT, ("errors.max.retries",), integer(-1)),
        *without_effect(_TRANSIENT, ("retriable.restart.connector.wait.ms",), integer(0, LONG_MAX)),
        *without_effect(_TRANSIENT, ("custom.retriable.exception",)),
        *without_effect(
            "topics are named `<topic.prefix>.<keyspace>.<table>`, as in the Java connector",
            ("topic.naming.strategy", "topic.transaction"),
        ),
        *without_effect(
            "topics are named `<topic.prefix>.<keyspace>.<table>`, as in the Java connector",
            ("topic.cache.size",),
            integer(1),
        ),
        *without_effect(
            "the active naming strategy reads `topic.heartbeat.prefix`, as in the Java connector",
            ("heartbeat.topics.prefix",),
        ),
        *without_effect("there is no database to query", ("heartbeat.action.query",)),
        Property(
            "field.name.adjustment.mode",
            _NAME_MODES,
            "How the AvroConverter makes names of columns valid: `avro` writes `_` for what Avro does not allow, "
            "`avro_unicode` writes `_uXXXX`. Names that Avro allows stay as they are, and so do names in JSON, as in "
            "the Java connector, which does not look at this property (nor does `scylla.compatibility=strict`).",
            default="none",
        ),
        Property(
            "schema.name.adjustment.mode",
            _NAME_MODES,
            "The same for names of schemas, each part between dots by itself.",
            default="none",
        ),
        *without_effect(
            _AS_JAVA,
            (
                "binary.handling.mode",
                "decimal.handling.mode",
                "time.precision.mode",
                "sourceinfo.struct.maker",
                "converters",
                "unavailable.value.placeholder",
            ),
        ),
        *without_effect("classes of the JVM cannot be loaded here", ("post.processors",)),
        *without_effect(
            "batches of ScyllaDB are not transactions",
            ("provide.transaction.metadata", "transaction.metadata.factory"),
        ),
        *without_effect(
            _NO_SNAPSHOT,
            (
                "snapshot.mode.custom.name",
                "snapshot.include.collection.list",
                "snapshot.query.mode",
                "snapshot.query.mode.custom.name",
                "snapshot.locking.mode.custom.name",
                "snapshot.tables.order.by.row.count",
                "incremental.snapshot.watermarking.strategy",
            ),
        ),
        *without_effect(
            _NO_SNAPSHOT,
            (
                "snapshot.delay.ms",
                "snapshot.fetch.size",
                "snapshot.max.threads",
                "incremental.snapshot.chunk.size",
                "query.fetch.size",
            ),
            integer(0, LONG_MAX),
        ),
        *without_effect(
            _NO_SNAPSHOT,
            (
                "snapshot.mode.configuration.based.snapshot.data",
                "snapshot.mode.configuration.based.snapshot.schema",
                "snapshot.mode.configuration.based.start.stream",
                "snapshot.mode.configuration.based.snapshot.on.schema.error",
                "snapshot.mode.configuration.based.snapshot.on.data.error",
                "incremental.snapshot.allow.schema.changes",
            ),
            BOOLEAN,
        ),
        *without_effect(_NO_SNAPSHOT, ("streaming.delay.ms",), integer(0, LONG_MAX)),
        *without_effect(
            _NO_SIGNALS,
            (
                "signal.data.collection",
                "signal.file",
                "signal.kafka.groupId",
                "signal.kafka.bootstrap.servers",
            ),
        ),
        *without_effect(
            _NO_SIGNALS,
            ("signal.poll.interval.ms", "signal.kafka.poll.timeout.ms"),
            integer(0, LONG_MAX),
        ),
        *without_effect("metrics are Prometheus', not JMX", ("custom.metric.tags",), STRING),
        *without_effect("metrics are Prometheus', not JMX", ("advanced.metrics.enable",), BOOLEAN),
        *without_effect(
            "a stopping worker finishes its transaction first",
            ("executor.shutdown.timeout.ms",),
            integer(0, LONG_MAX),
        ),
        *without_effect("it is internal to the Java connector", ("scylla.worker.config",)),
        *without_effect("the log's ttl is always compared with saved positions", ("log.position.check.enable",)),
        *without_effect(
            "it is a property of the broker, in the Java connector too; topics follow `topic.creation.*`",
            ("auto.create.topics.enable",),
            BOOLEAN,
        ),
    ),
)
