"""Wiring: the parts of a worker, each made of finished others.

In: a configuration, connected clients, described tables, checked topics. Out: a `Worker`.
"""

from __future__ import annotations

import queue
from collections.abc import Mapping

from connector.config import Configuration
from connector.delivery import Delivery, Follower, KafkaClients, Membership, TopicFacts, ensure_topics
from connector.formats import Encoder
from connector.source import (
    Background,
    ChoreDone,
    Chores,
    Connection,
    LateChanges,
    ReadEvent,
    Reading,
    Tables,
    Watch,
    reading_settings,
)
from connector.topology import Planner
from connector.worker.one_group import OneGroup
from connector.worker.pipeline import Pipeline
from connector.worker.restoring import Restoring
from connector.worker.settings import WorkerIdentity, data_spec, delivery_settings
from connector.worker.transactions import Transactions
from connector.worker.worker import Worker


def build_worker(
    configuration: Configuration,
    who: WorkerIdentity,
    *,
    connection: Connection,
    clients: KafkaClients,
    tables: Tables,
    topics: Mapping[str, TopicFacts],
    encoder: Encoder,
    slots: int,
) -> Worker:
    """A worker that can start."""
    connector, group = configuration.connector, configuration.group
    offsets = connector.delivery.offset_topic
    reading = reading_settings(connector.reading)

    def create_topic(name: str) -> TopicFacts:
        return ensure_topics(clients.admin(), [data_spec(configuration, name)])[name]

    events: queue.SimpleQueue[ReadEvent | ChoreDone] = queue.SimpleQueue()
    background = Background()
    chores = Chores(events.put)
    planner = Planner(
        tables,
        slots=slots,
        owner=who.client_id,
        confidence_ms=reading.confidence_ms,
        grace_ms=reading.grace_ms,
        lookback_ms=connector.reading.initial_lookback_ms,
    )
    pipeline = Pipeline(configuration, encoder, topics, who.index, create_topic)
    membership = Membership(
        clients,
        offsets,
        group,
        who.client_id,
        slots=slots,
        session_timeout_ms=configuration.worker.session_timeout_ms,
        instance_id=who.instance_id,
    )
    one_group = OneGroup(configuration, clients, who.client_id)
    restoring = Restoring(configuration, clients, connection, planner, tables, pipeline, chores, background, one_group)
    smallest = min((facts.max_message_bytes for facts in topics.values()), default=1_048_588)
    delivery = Delivery(
        clients,
        delivery_settings(configuration, who, max(16_384, min(1_000_000, smallest))),
        membership,
        topics=lambda: pipeline.topics,
        group=group,
    )
    transactions = Transactions(
        delivery,
        planner,
        encoder,
        tables,
        pipeline,
        membership,
        restoring,
        connection.clock,
        chores,
        heartbeat_ms=connector.output.heartbeat_interval_ms,
        background=background,
    )
    reads = Reading(planner, connection, reading, events.put, transactions, tables, background)
    return Worker(
        configuration=configuration,
        who=who,
        clients=clients,
        connection=connection,
        events=events,
        background=background,
        chores=chores,
        planner=planner,
        tables=tables,
        watch=Watch(planner, connection, reading, chores, tables, background),
        reading=reads,
        late=LateChanges(planner, connection, chores, tables, reads, transactions),
        encoder=encoder,
        pipeline=pipeline,
        membership=membership,
        restoring=restoring,
        follower=Follower(clients, connector.name, offsets, group, slots),
        delivery=delivery,
        transactions=transactions,
    )
