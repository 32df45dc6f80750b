"""Declarations: what Kafka Connect defines for every connector."""

from __future__ import annotations

from connector.config.properties.kind import BOOLEAN, LIST, LONG_MAX, STRING, Invalid, Kind, integer, matching, one_of
from connector.config.properties.property import Effect, Family, Property, Section, without_effect

CONNECTOR_CLASS = "com.scylladb.cdc.debezium.connector.ScyllaConnector"


def _connector_class(text: str) -> str:
    name = text.strip()
    if name not in (CONNECTOR_CLASS, "ScyllaConnector", "Scylla"):
        raise Invalid("This service runs the Scylla CDC source connector only", CONNECTOR_CLASS)
    return CONNECTOR_CLASS


TOPIC = matching(r"[A-Za-z0-9._\-]{1,249}", "Not a topic name", "1 to 249 letters, digits, . _ -", empty=True)

FRAMEWORK = Section(
    "Kafka Connect",
    "What Kafka Connect defines for every source connector.",
    (
        Property(
            "name",
            STRING,
            "Name of the connector: part of the keys of its saved positions and of its group's name.",
            required='Missing required configuration "name" which has no default value',
        ),
        Property(
            "connector.class",
            Kind("class", _connector_class),
            "The Java connector's class, or nothing.",
            default=CONNECTOR_CLASS,
        ),
        Property("tasks.max", integer(1), "Worker processes that one `run` starts.", default=1),
        *without_effect("`tasks.max` is always enforced", ("tasks.max.enforce",), BOOLEAN),
        Property(
            "key.converter",
            STRING,
            "Converter of keys, overrides the worker's: see Converters.",
            default_text="the worker's",
        ),
        Property(
            "value.converter",
            STRING,
            "Converter of values, overrides the worker's: see Converters.",
            default_text="the worker's",
        ),
        Property(
            "header.converter",
            STRING,
            "Converter of headers: `SimpleHeaderConverter`, `JsonConverter`, `StringConverter`, …; see Converters.",
            default_text="the worker's",
        ),
        Property("transforms", LIST, "Aliases of the transforms, in the order they are applied.", default=()),
        Property("predicates", LIST, "Aliases of the predicates that transforms may name.", default=()),
        Property(
            "exactly.once.support",
            one_of("requested", "required", "disabled"),
            "`requested` and `required` are both exactly once; `disabled` is at least once, with less latency.",
            default="requested",
        ),
        Property(
            "transaction.boundary",
            one_of("poll", "interval", "connector"),
            "Where Kafka Connect cuts transactions.",
            default="interval",
            effect=Effect.NONE,
            reason="transactions are ended by `transaction.boundary.interval.ms` and by size, never inside a batch",
        ),
        Property(
            "transaction.boundary.interval.ms",
            integer(1, LONG_MAX),
            "Maximum time in milliseconds that a transaction collects records.",
            default=500,
        ),
        Property(
            "offsets.storage.topic",
            TOPIC,
            "Topic of the saved positions, overrides the worker's `offset.storage.topic`.",
            default_text="the worker's",
        ),
        Property(
            "errors.tolerance",
            one_of("none", "all"),
            "`none`: a row that cannot be decoded or encoded stops its stream group, visibly. "
            "`all`: it goes to the dead-letter queue.",
            default="none",
        ),
        Property(
            "errors.deadletterqueue.topic.name",
            TOPIC,
            "The topic of the dead-letter queue.",
            default_text="`<topic.prefix>.dead-letters`",
        ),
        Property(
            "errors.deadletterqueue.topic.replication.factor",
            integer(1, 32_767, also=(-1,)),
            "Its replication factor; -1 is the broker's default.",
            default=-1,
        ),
        Property(
            "errors.deadletterqueue.context.headers.enable",
            BOOLEAN,
            "Kafka Connect's `__connect.errors.*` headers on dead letters.",
            default=True,
        ),
        *without_effect(
            "retries follow `worker.retry.backoff.base` and `worker.maximum.backoff`, without limit",
            ("errors.retry.timeout",),
            integer(-1, LONG_MAX),
        ),
        *without_effect(
            "retries follow `worker.retry.backoff.base` and `worker.maximum.backoff`, without limit",
            ("errors.retry.delay.max.ms",),
            integer(0, LONG_MAX),
        ),
        *without_effect("every failed row is logged, always without its values", ("errors.log.enable",), BOOLEAN),
        *without_effect(
            "every failed row is logged, always without its values", ("errors.log.include.messages",), BOOLEAN
        ),
        Property(
            "config.action.reload",
            one_of("restart", "none"),
            "What Kafka Connect does when a secret changes.",
            default="restart",
            effect=Effect.NONE,
            reason="references to secrets are resolved once, at start",
        ),
        *without_effect("there are no plugins to choose a version of", ("connector.plugin.version",)),
        *without_effect(
            "there are no plugins to choose a version of",
            ("key.converter.plugin.version", "value.converter.plugin.version", "header.converter.plugin.version"),
        ),
        Property(
            "topic.creation.groups",
            LIST,
            "Names of the topic groups, matched in this order before `default`.",
            default=(),
        ),
    ),
)

CONNECTOR_FAMILIES = (
    Family("key.converter.", "Options of `key.converter`; see Converters."),
    Family("value.converter.", "Options of `value.converter`; see Converters."),
    Family("header.converter.", "Options of `header.converter`; see Converters."),
    Family("transforms.", "`transforms.<alias>.type` and the options of that type; see Transforms."),
    Family("predicates.", "`predicates.<alias>.type` and the options of that type; see Transforms."),
    Family("producer.override.", "Properties of the Kafka producer; see Kafka clients."),
    Family("consumer.override.", "Properties of the Kafka consumer; see Kafka clients."),
    Family("admin.override.", "Properties of the Kafka admin client; see Kafka clients."),
    Family("topic.creation.", "How topics are created; see Topic creation."),
    Family("signal.consumer.", "Properties of Debezium's signal consumer.", Effect.NONE, "it is as the worker's"),
    Family("confluent.", "Confluent's own additions.", Effect.NONE, "they are classes of the JVM"),
    Family("driver.", "Properties of the JDBC driver.", Effect.NONE, "there is no JDBC driver"),
)
