"""``ConnectorConfig``: what a connector's file says, typed, by Java property name and by attribute.

In: parsed values of every declared property. Out: frozen dataclasses, one for each room that reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from connector.config.address import ContactPoint, TableName
from connector.config.converters import ConverterConfig
from connector.config.names import Names
from connector.config.secret import Secret
from connector.config.topic_creation import TopicCreation
from connector.config.transforms import TransformSpec

DEFAULT_FETCH_SIZE = 5000

ImageMode = Literal["none", "full", "only-updated"]


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """TLS to ScyllaDB. The stores are paths; ``connector.config.keystores`` reads them."""

    enabled: bool = False
    truststore: str | None = None
    truststore_password: Secret | None = None
    keystore: str | None = None
    keystore_password: Secret | None = None
    certificate_chain: str | None = None
    private_key: str | None = None
    cipher_suites: tuple[str, ...] = ()
    check_host: bool = False


@dataclass(frozen=True, slots=True)
class ConnectionConfig:
    """How ScyllaDB is reached."""

    contact_points: tuple[ContactPoint, ...]
    user: str | None
    password: Secret | None
    local_dc: str | None
    consistency_level: str
    fetch_size: int
    request_timeout_ms: int
    tls: TlsConfig


@dataclass(frozen=True, slots=True)
class ReadingConfig:
    """What is read of the log, when and how fast."""

    tables: tuple[TableName, ...]
    confidence_ms: int
    window_ms: int
    minimal_wait_ms: int
    initial_lookback_ms: int
    max_queries_per_second: int
    max_queries_in_flight: int
    query_mode: Literal["auto", "group", "stream"]
    backoff_base_ms: int
    backoff_max_ms: int
    backoff_jitter: float


@dataclass(frozen=True, slots=True)
class OutputConfig:
    """What records look like. ``schema_topic`` is empty when the descriptions of tables are switched off."""

    format: Literal["legacy", "advanced"]
    include_before: ImageMode
    include_after: ImageMode
    key_placement: frozenset[str]
    payload_key_name: str
    preimages: bool
    tombstones: bool
    skipped_operations: frozenset[str]
    collections: Literal["none", "delta"]
    metadata: bool
    range_deletes: Literal["skip", "topic"]
    compatibility: Literal["default", "strict"]
    heartbeat_interval_ms: int
    schema_topic: str
    names: Names
    key_converter: ConverterConfig
    value_converter: ConverterConfig
    transforms: tuple[TransformSpec, ...]

    @property
    def strict(self) -> bool:
        return self.compatibility == "strict"

    @property
    def topic_prefix(self) -> str:
        return self.names.topic_prefix


@dataclass(frozen=True, slots=True)
class DeliveryConfig:
    """How records reach Kafka. ``offset_topic`` is the one in force, the connector's or the worker's."""

    exactly_once: bool
    transaction_interval_ms: int
    transaction_timeout_ms: int
    offset_topic: str
    topic_creation: TopicCreation
    create_topics: bool
    dead_letters: bool
    dead_letter_topic: str
    dead_letter_replication: int
    dead_letter_headers: bool


@dataclass(frozen=True, slots=True)
class ConnectorConfig:
    """One connector. ``config["scylla.query.time.window.size"]`` gives the typed value of any declared property."""

    name: str
    tasks_max: int
    connection: ConnectionConfig
    reading: ReadingConfig
    output: OutputConfig
    delivery: DeliveryConfig
    values: Mapping[str, Any]
    given: frozenset[str]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def connection_config(values: Mapping[str, Any]) -> ConnectionConfig:
    """The connection's part of the parsed values."""
    return ConnectionConfig(
        contact_points=values["scylla.cluster.ip.addresses"],
        user=values["scylla.user"] or None,
        password=values["scylla.password"] or None,
        local_dc=values["scylla.local.dc"] or None,
        consistency_level=values["scylla.consistency.level"].upper(),
        fetch_size=values["scylla.query.options.fetch.size"] or DEFAULT_FETCH_SIZE,
        request_timeout_ms=values["scylla.request.timeout.ms"],
        tls=TlsConfig(
            enabled=values["scylla.ssl.enabled"],
            truststore=values["scylla.ssl.truststore.path"] or None,
            truststore_password=values["scylla.ssl.truststore.password"],
            keystore=values["scylla.ssl.keystore.path"] or None,
            keystore_password=values["scylla.ssl.keystore.password"],
            certificate_chain=values["scylla.ssl.openssl.keyCertChain"] or None,
            private_key=values["scylla.ssl.openssl.privateKey"] or None,
            cipher_suites=values["scylla.ssl.cipherSuites"],
            check_host=values["scylla.ssl.hostname.verification"],
        ),
    )


def reading_config(values: Mapping[str, Any]) -> ReadingConfig:
    """The reading part of the parsed values."""
    return ReadingConfig(
        tables=values["scylla.table.names"],
        confidence_ms=values["scylla.confidence.window.size"],
        window_ms=values["scylla.query.time.window.size"],
        minimal_wait_ms=values["scylla.minimal.wait.for.window.time"],
        initial_lookback_ms=values["scylla.initial.lookback.ms"],
        max_queries_per_second=values["scylla.max.queries.per.second"],
        max_queries_in_flight=values["scylla.max.queries.in.flight"],
        query_mode=values["scylla.query.mode"],
        backoff_base_ms=values["worker.retry.backoff.base"],
        backoff_max_ms=values["worker.maximum.backoff"],
        backoff_jitter=values["worker.jitter.percentage"] / 100,
    )


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


def output_config(
    values: Mapping[str, Any],
    names: Names,
    key_converter: ConverterConfig,
    value_converter: ConverterConfig,
    transforms: tuple[TransformSpec, ...],
) -> OutputConfig:
    """The records' part of the parsed values."""
    return OutputConfig(
        format=values["cdc.output.format"],
        include_before=values["cdc.include.before"],
        include_after=values["cdc.include.after"],
        key_placement=values["cdc.include.primary-key.placement"],
        payload_key_name=values["cdc.include.primary-key.payload-key-name"],
        preimages=values["experimental.preimages.enabled"],
        tombstones=values["tombstones.on.delete"],
        skipped_operations=values["skipped.operations"] - {"none"},
        collections=values["cdc.include.collections"],
        metadata=values["cdc.include.metadata"],
        range_deletes=values["cdc.range.deletes"],
        compatibility=values["scylla.compatibility"],
        heartbeat_interval_ms=values["heartbeat.interval.ms"],
        schema_topic=names.schema_topic,
        names=names,
        key_converter=key_converter,
        value_converter=value_converter,
        transforms=transforms,
    )
