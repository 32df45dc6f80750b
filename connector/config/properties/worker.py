"""Declarations: the properties of a Kafka Connect worker, which this service's worker file takes over."""

from __future__ import annotations

from connector.config.properties.address import BROKERS
from connector.config.properties.kind import BOOLEAN, LONG_MAX, STRING, integer, matching, one_of
from connector.config.properties.property import Effect, Family, Property, Section, without_effect

_NO_REST = "the REST API is on `--http-port`"
_NO_PLUGINS = "there are no Java plugins"
_GROUP = "workers share slots through an ordinary consumer group"

_TOPIC = r"[A-Za-z0-9._\-]{1,249}"
_REPLICATION = integer(1, 32_767, also=(-1,))

WORKER = Section(
    "Worker",
    "The worker file (`--worker`). Each property may also come from the environment, which overrides the file: "
    "`CONNECT_` and the name in capitals with `_` for `.`.",
    (
        Property(
            "bootstrap.servers",
            BROKERS,
            "Kafka bootstrap brokers, `host:port` each.",
            default="localhost:9092",
        ),
        Property(
            "group.id",
            matching(r"\S(.*\S)?", "Must not be empty"),
            "The workers of a connector join the group `<group.id>-<connector name>`.",
            default="scylla-cdc",
        ),
        Property(
            "group.instance.id",
            STRING,
            "Static membership: a stable value, unique for each `run`. Without it, membership is dynamic.",
            ours=True,
        ),
        Property("key.converter", STRING, "Converter of keys; see Converters.", default="JsonConverter"),
        Property("value.converter", STRING, "Converter of values; see Converters.", default="JsonConverter"),
        Property("header.converter", STRING, "Converter of headers.", default="SimpleHeaderConverter"),
        Property(
            "offset.storage.topic",
            matching(_TOPIC, "Not a topic name", "1 to 249 letters, digits, . _ -"),
            "Compacted topic that holds the positions and the claims.",
            default="scylla-cdc-offsets",
        ),
        Property(
            "offset.storage.partitions",
            integer(1),
            "Its partitions: the slots that are shared among the workers. -1, the broker's default, is as if it were "
            "left out.",
            default=25,
        ),
        Property(
            "offset.storage.replication.factor",
            _REPLICATION,
            "Its replication factor; -1 is the broker's default.",
            default_text="3, or the number of brokers if that is less",
        ),
        Property(
            "status.storage.topic",
            matching(_TOPIC, "Not a topic name", "1 to 249 letters, digits, . _ -"),
            "Compacted topic for the status of workers.",
            default="scylla-cdc-status",
        ),
        Property("status.storage.partitions", integer(1), "Its partitions.", default=5),
        Property(
            "status.storage.replication.factor",
            _REPLICATION,
            "Its replication factor; -1 is the broker's default.",
            default_text="3, or the number of brokers if that is less",
        ),
        Property(
            "config.storage.topic",
            matching(_TOPIC, "Not a topic name", "1 to 249 letters, digits, . _ -"),
            "Compacted topic, of one partition, for what was asked of connectors (whether they are paused or stopped), "
            "and for those of a run without files. It is created when something is asked for the first time.",
            default="scylla-cdc-configs",
        ),
        Property(
            "config.storage.replication.factor",
            _REPLICATION,
            "Its replication factor; -1 is the broker's default.",
            default_text="3, or the number of brokers if that is less",
        ),
        Property(
            "session.timeout.ms",
            integer(1),
            "A worker without a heartbeat for this many milliseconds loses its slots to the others.",
            default=10_000,
        ),
        Property(
            "heartbeat.interval.ms",
            integer(1),
            "Milliseconds between a worker's heartbeats; should be at most a third of `session.timeout.ms`.",
            default=3_000,
        ),
        Property(
            "transaction.timeout.ms",
            integer(1000),
            "The broker aborts older transactions. The connector ends them after a third of it at the latest.",
            default=15_000,
            ours=True,
        ),
        Property(
            "native",
            one_of("on", "off"),
            "`off`: records are made and handed to Kafka without the native path. It makes the same records at a "
            "fraction of the processor time, and is used only where it was built and agrees with the plain way.",
            default="on",
            ours=True,
        ),
        Property(
            "topic.creation.enable",
            BOOLEAN,
            "Whether missing data topics are created.",
            default=True,
        ),
        Property(
            "group.protocol",
            one_of("classic", "consumer"),
            "The group protocol; `consumer` is rejected.",
            default="classic",
        ),
        Property(
            "exactly.once.source.support",
            one_of("disabled", "preparing", "enabled"),
            "Whether Kafka Connect may run sources exactly once.",
            default="enabled",
            effect=Effect.NONE,
            reason="the connector's `exactly.once.support` alone decides, exactly once by default",
        ),
        *without_effect(
            "positions are committed in the same transaction as the records, every `transaction.boundary.interval.ms`",
            ("offset.flush.interval.ms", "offset.flush.timeout.ms"),
            integer(0, LONG_MAX),
        ),
        *without_effect(
            "positions are in Kafka; `scylla-cdc offsets import --from-file` takes over those in the file",
            ("offset.storage.file.filename",),
        ),
        *without_effect(
            "a stopping worker has 15 s to finish its transaction",
            ("task.shutdown.graceful.timeout.ms",),
            integer(0, LONG_MAX),
        ),
        *without_effect(
            _GROUP,
            (
                "rebalance.timeout.ms",
                "scheduled.rebalance.max.delay.ms",
                "worker.sync.timeout.ms",
                "worker.unsync.backoff.ms",
            ),
            integer(0, LONG_MAX),
        ),
        *without_effect(
            _GROUP,
            (
                "connect.protocol",
                "inter.worker.key.generation.algorithm",
                "inter.worker.key.size",
                "inter.worker.key.ttl.ms",
                "inter.worker.signature.algorithm",
                "inter.worker.verification.algorithms",
            ),
        ),
        *without_effect(
            _NO_REST,
            (
                "listeners",
                "rest.advertised.host.name",
                "rest.advertised.port",
                "rest.advertised.listener",
                "rest.host.name",
                "rest.port",
                "admin.listeners",
                "response.http.headers.config",
                "ssl.client.auth",
            ),
        ),
        *without_effect(
            "pages of other sites may not ask, whatever it says",
            ("access.control.allow.origin", "access.control.allow.methods"),
        ),
        *without_effect(
            "they are classes of the JVM; who may use the REST API is said by `rest.bearer.token`",
            ("rest.extension.classes",),
        ),
        *without_effect(_NO_PLUGINS, ("plugin.path", "plugin.discovery")),
        *without_effect(
            "it is for the JVM in an image of Connect's; `--debug` shows more of the log here",
            ("log.level", "heap.opts", "gc.log.enabled"),
        ),
        *without_effect(
            "see `status` for the topics in use",
            ("topic.tracking.enable", "topic.tracking.allow.reset"),
            BOOLEAN,
        ),
        Property(
            "connector.client.config.override.policy",
            STRING,
            "Which `producer.override.…`, `consumer.override.…` and `admin.override.…` a connector's file may have: "
            "`All`, `None`, or `Principal` (its login: `security.protocol`, `sasl.mechanism`, `sasl.jaas.config`). "
            "Others make it invalid, as in Kafka Connect. What the guarantees depend on is protected by any.",
            default="All",
        ),
        Property(
            "config.providers",
            STRING,
            "Names of secret providers, beside `env`, `file` and `directory`; see Secrets from Vault and AWS.",
            default="",
        ),
        *without_effect(
            "positions and status are plain JSON",
            ("internal.key.converter", "internal.value.converter"),
        ),
        *without_effect(
            "there are no plugins to choose a version of",
            ("key.converter.plugin.version", "value.converter.plugin.version", "header.converter.plugin.version"),
        ),
    ),
)

WORKER_FAMILIES = (
    Family("key.converter.", "Options of `key.converter`; see Converters."),
    Family("value.converter.", "Options of `value.converter`; see Converters."),
    Family("header.converter.", "Options of `header.converter`; see Converters."),
    Family("producer.", "Properties of the Kafka producer; see Kafka clients."),
    Family("consumer.", "Properties of the Kafka consumer; see Kafka clients."),
    Family("admin.", "Properties of the Kafka admin client; see Kafka clients."),
    Family("offset.storage.", "Settings of the offsets topic when it is created, such as `segment.bytes`."),
    Family("status.storage.", "Settings of the status topic when it is created."),
    Family("config.providers.", "`config.providers.<name>.class` and its parameters."),
    Family("config.storage.", "Settings of the config topic when it is created."),
    Family("internal.key.converter.", "Options of an internal converter.", Effect.NONE, "positions are plain JSON"),
    Family("internal.value.converter.", "Options of an internal converter.", Effect.NONE, "positions are plain JSON"),
    Family("confluent.", "Confluent's own additions.", Effect.NONE, "they are classes of the JVM"),
    Family("metrics.context.", "Labels of JMX metrics.", Effect.NONE, "metrics are Prometheus'"),
)
