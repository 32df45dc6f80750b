"""``ConnectorConfig``: a connector's file, typed, by Java property name and by attribute.

In: parsed values of every declared property. Out: frozen models, one for each room that reads them. A member names the
property that it is, so a model is made of all parsed values at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, InstanceOf

from connector.config.converters import ConverterConfig
from connector.config.names import Names
from connector.config.part import OrNone, Part, of
from connector.config.properties import ContactPoint, OutputFormat
from connector.config.secret import Secret
from connector.config.tls import TlsConfig
from connector.config.topic_creation import TopicCreation
from connector.config.transforms import TransformSpec
from connector.table_name import TableName

DEFAULT_FETCH_SIZE = 5000

ImageMode = Literal["none", "full", "only-updated"]


class ConnectionConfig(Part):
    """How ScyllaDB is reached. Landing's file may leave the address to the command line."""

    contact_points: Annotated[tuple[InstanceOf[ContactPoint], ...], BeforeValidator(lambda given: given or ())] = of(
        "scylla.cluster.ip.addresses"
    )
    user: OrNone[str] = of("scylla.user")
    password: OrNone[InstanceOf[Secret]] = of("scylla.password")
    local_dc: OrNone[str] = of("scylla.local.dc")
    consistency_level: Annotated[str, BeforeValidator(str.upper)] = of("scylla.consistency.level")
    fetch_size: Annotated[int, BeforeValidator(lambda given: given or DEFAULT_FETCH_SIZE)] = of(
        "scylla.query.options.fetch.size"
    )
    request_timeout_ms: int = of("scylla.request.timeout.ms")
    tls: TlsConfig


class ReadingConfig(Part):
    """What is read of the log, when and how fast."""

    tables: tuple[InstanceOf[TableName], ...] = of("scylla.table.names")
    confidence_ms: int = of("scylla.confidence.window.size")
    window_ms: int = of("scylla.query.time.window.size")
    minimal_wait_ms: int = of("scylla.minimal.wait.for.window.time")
    initial_lookback_ms: int = of("scylla.initial.lookback.ms")
    max_queries_per_second: int = of("scylla.max.queries.per.second")
    max_queries_in_flight: int = of("scylla.max.queries.in.flight")
    query_mode: Literal["auto", "group", "stream"] = of("scylla.query.mode")
    snapshot_mode: Literal["no_data", "never", "initial", "initial_only", "always", "when_needed"] = of("snapshot.mode")
    snapshot_queries_per_second: int = of("scylla.snapshot.max.queries.per.second")
    signals: Annotated[bool, BeforeValidator(lambda given: "kafka" in given)] = of("signal.enabled.channels")
    signal_topic: str
    backoff_base_ms: int = of("worker.retry.backoff.base")
    backoff_max_ms: int = of("worker.maximum.backoff")
    backoff_jitter_percent: int = of("worker.jitter.percentage")


class OutputConfig(Part):
    """What records look like. ``schema_topic`` is empty when the descriptions of tables are switched off."""

    format: OutputFormat = of("cdc.output.format")
    include_before: ImageMode = of("cdc.include.before")
    include_after: ImageMode = of("cdc.include.after")
    key_placement: frozenset[str] = of("cdc.include.primary-key.placement")
    payload_key_name: str = of("cdc.include.primary-key.payload-key-name")
    preimages: bool = of("experimental.preimages.enabled")
    tombstones: bool = of("tombstones.on.delete")
    skipped_operations: Annotated[frozenset[str], BeforeValidator(lambda given: given - {"none"})] = of(
        "skipped.operations"
    )
    collections: Literal["none", "delta"] = of("cdc.include.collections")
    metadata: bool = of("cdc.include.metadata")
    range_deletes: Literal["skip", "topic"] = of("cdc.range.deletes")
    compatibility: Literal["default", "strict"] = of("scylla.compatibility")
    heartbeat_interval_ms: int = of("heartbeat.interval.ms")
    schema_topic: str
    names: InstanceOf[Names]
    key_converter: InstanceOf[ConverterConfig]
    value_converter: InstanceOf[ConverterConfig]
    header_converter: InstanceOf[ConverterConfig]
    transforms: tuple[InstanceOf[TransformSpec], ...]

    @property
    def strict(self) -> bool:
        return self.compatibility == "strict"

    @property
    def topic_prefix(self) -> str:
        return self.names.topic_prefix


class DeliveryConfig(Part):
    """How records reach Kafka. ``offset_topic`` is the one in force, the connector's or the worker's."""

    exactly_once: Annotated[bool, BeforeValidator(lambda given: given != "disabled")] = of("exactly.once.support")
    transaction_interval_ms: int = of("transaction.boundary.interval.ms")
    transaction_timeout_ms: int
    offset_topic: str
    topic_creation: InstanceOf[TopicCreation]
    create_topics: bool
    notifications: frozenset[str] = of("notification.enabled.channels")
    notification_topic: OrNone[str] = of("notification.sink.topic.name")
    dead_letters: Annotated[bool, BeforeValidator(lambda given: given == "all")] = of("errors.tolerance")
    dead_letter_topic: str
    dead_letter_replication: int = of("errors.deadletterqueue.topic.replication.factor")
    dead_letter_headers: bool = of("errors.deadletterqueue.context.headers.enable")


class ConnectorConfig(Part):
    """One connector. ``config["scylla.query.time.window.size"]`` gives the typed value of any declared property."""

    name: str
    tasks_max: int
    connection: ConnectionConfig
    reading: ReadingConfig
    output: OutputConfig
    delivery: DeliveryConfig
    values: Mapping[str, Any]
    given: frozenset[str]
    #: What was given, as it may be shown: references as they are written, secrets as asterisks.
    written: Mapping[str, str]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def signal_topic_of(values: Mapping[str, Any]) -> str:
    """Where what is wanted of snapshots is read."""
    return str(values["signal.kafka.topic"] or f"{values['topic.prefix']}-signal")


def names_of(values: Mapping[str, Any]) -> Names:
    """The names that the parsed values give topics and schemas."""
    prefix = values["topic.prefix"]
    schema_topic = values["scylla.schema.topic"]
    return Names(
        topic_prefix=prefix,
        delimiter=values["topic.delimiter"],
        heartbeat_prefix=values["topic.heartbeat.prefix"],
        schema_topic=f"{prefix}.schemas" if schema_topic is None else schema_topic,
        dead_letter_topic=values["errors.deadletterqueue.topic.name"] or f"{prefix}.dead-letters",
    )
