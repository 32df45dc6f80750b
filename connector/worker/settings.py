"""From a `Configuration` to what delivery wants to know: clients, identities, topics.

In: the validated configuration. Out: settings, and the specs of every topic that the connector uses.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from connector.config import Configuration, StorageTopic
from connector.delivery import DeliverySettings, KafkaClients, TopicSpec, no_bulk_client
from connector.formats import routed_topics
from connector.native import bulk_client
from connector.table_name import TableName

# Marks and positions are small and rewritten often. The broker compacts closed segments only, and usually once half of
# them is new: small ones that are closed after ten minutes keep a slot at some megabytes. What is younger than a minute
# is left alone, so that who follows the topic sees each record. Times are their writer's: what somebody left open is
# told by them from what he committed. What the worker's file says comes first.
OFFSETS_CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": "4194304",
    "segment.ms": "600000",
    "min.cleanable.dirty.ratio": "0.1",
    "min.compaction.lag.ms": "60000",
    "max.compaction.lag.ms": "1200000",
    "message.timestamp.type": "CreateTime",
}
_LAGS = {"min.compaction.lag.ms", "max.compaction.lag.ms"}


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """``client_id`` is the transactional id as well: the owner that marks name, and what a successor fences."""

    client_id: str
    instance_id: str | None
    index: int


def identity(configuration: Configuration, index: int) -> WorkerIdentity:
    """New at every start by default; with ``group.instance.id`` the same at every start, so that `init_transactions`
    ends what the predecessor left open."""
    name, instance = configuration.client_name, configuration.worker.group_instance_id
    if instance is None:
        return WorkerIdentity(f"{name}-{secrets.token_hex(6)}", None, index)
    instance = Configuration.kafka_name(instance)
    return WorkerIdentity(f"{name}-{instance}-{index}", f"{instance}-{index}", index)


def kafka_clients(configuration: Configuration) -> KafkaClients:
    kafka = configuration.kafka
    bulk = bulk_client if configuration.worker.native else no_bulk_client
    return KafkaClients({}, kafka.producer, kafka.consumer, kafka.admin, bulk)


def delivery_settings(configuration: Configuration, who: WorkerIdentity) -> DeliverySettings:
    delivery = configuration.connector.delivery
    return DeliverySettings(
        connector=configuration.connector.name,
        offsets_topic=delivery.offset_topic,
        transactional_id=who.client_id,
        transaction_timeout_ms=delivery.transaction_timeout_ms,
        boundary_interval_ms=delivery.transaction_interval_ms,
        exactly_once=delivery.exactly_once,
    )


def specs_of_present(
    configuration: Configuration, missing: Collection[TableName], existing: Collection[str]
) -> list[TopicSpec]:
    """`topic_specs`, but of tables that are not there only those topics that are: nothing is made for a name that is
    misspelt, and what somebody left open in a topic is looked for all the same."""
    tables = [table for table in configuration.connector.reading.tables if table not in missing]
    wanted = {spec.name for spec in topic_specs(configuration.with_tables(tables, ""))}
    return [spec for spec in topic_specs(configuration) if spec.name in wanted or spec.name in existing]


def topic_specs(configuration: Configuration) -> list[TopicSpec]:
    """Every topic, as it must be. Data topics come first; storage topics are compacted."""
    connector = configuration.connector
    names, output = connector.output.names, connector.output
    specs: list[TopicSpec] = []
    for table in connector.reading.tables:
        specs += _routed(configuration, names.data_topic(table.keyspace, table.name), "data")
        if output.range_deletes == "topic":
            specs += _routed(configuration, names.range_deletes_topic(table.keyspace, table.name), "range_delete")
    if output.heartbeat_interval_ms > 0:
        specs += _routed(configuration, names.heartbeat_topic(), "heartbeat")
    # Where several meet in one topic, it is the first's: of changes, whatever else is sent there.
    specs = list({spec.name: spec for spec in reversed(specs)}.values())[::-1]
    if connector.delivery.dead_letters and connector.delivery.dead_letter_topic:
        replication = connector.delivery.dead_letter_replication
        specs.append(
            TopicSpec(
                connector.delivery.dead_letter_topic,
                replication=replication,
                property="errors.deadletterqueue.topic.name",
                essential=False,
                keeps_all=True,
            )
        )
    if output.schema_topic:
        # No property says how many replicas it has: as many as the positions.
        copies = configuration.worker.offsets.replication_factor
        specs.append(
            TopicSpec(output.schema_topic, 1, copies, _small({}), compacted=True, property="scylla.schema.topic")
        )
    if "sink" in connector.delivery.notifications and connector.delivery.notification_topic:
        specs.append(
            TopicSpec(
                connector.delivery.notification_topic, 1, property="notification.sink.topic.name", essential=False
            )
        )
    specs.append(status_spec(configuration))
    specs.append(offsets_spec(configuration))
    return specs


def _routed(
    configuration: Configuration, topic: str, kind: Literal["data", "range_delete", "heartbeat"]
) -> list[TopicSpec]:
    """Where the records of a topic go behind the transforms; nothing is known where a column decides."""
    output = configuration.connector.output
    tombstones = kind == "data" and output.tombstones
    topics = routed_topics(output.transforms, topic, kind, tombstones=tombstones)
    return [data_spec(configuration, each, keeps_all=kind != "heartbeat") for each in sorted(topics or ())]


def offsets_spec(configuration: Configuration) -> TopicSpec:
    return _storage(
        configuration.worker.offsets,
        "offset.storage.topic",
        connector_topic=configuration.connector.delivery.offset_topic,
    )


def configs_spec(configuration: Configuration) -> TopicSpec:
    """Created only when something is to be written to it."""
    return _storage(configuration.worker.configs, "config.storage.topic", connector_topic=None)


def signals_spec(configuration: Configuration) -> TopicSpec:
    """Created only when something is to be written to it."""
    return TopicSpec(
        configuration.connector.reading.signal_topic, 1, property="signal.kafka.topic", essential=False, keeps_all=True
    )


def status_spec(configuration: Configuration) -> TopicSpec:
    return _storage(configuration.worker.status, "status.storage.topic", connector_topic=None)


def data_spec(configuration: Configuration, topic: str, *, keeps_all: bool = True) -> TopicSpec:
    """A topic of records, with the settings of the first group of `topic.creation` that it belongs to."""
    group = configuration.connector.delivery.topic_creation.settings_for(topic)
    return TopicSpec(
        topic,
        group.partitions,
        group.replication_factor,
        dict(group.config),
        property="topic.prefix",
        create=configuration.connector.delivery.create_topics,
        essential=False,
        keeps_all=keeps_all,
    )


def spec_of(configuration: Configuration, topic: str) -> TopicSpec:
    """What a topic of records must be, also one whose name nothing but a transform foretells."""
    foretold = {spec.name: spec for spec in topic_specs(configuration)}
    return foretold.get(topic) or data_spec(configuration, topic)


def _storage(topic: StorageTopic, property_name: str, connector_topic: str | None) -> TopicSpec:
    return TopicSpec(
        connector_topic or topic.name,
        topic.partitions,
        topic.replication_factor,
        _small(topic.config),
        compacted=True,
        property=property_name,
    )


def _small(given: Mapping[str, str]) -> dict[str, str]:
    # A broker refuses bounds that contradict each other: one of ours must not meet one that was given.
    ours = OFFSETS_CONFIG.keys() - (_LAGS if _LAGS & given.keys() else set())
    return {name: value for name, value in OFFSETS_CONFIG.items() if name in ours} | dict(given)
