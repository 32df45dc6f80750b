"""Wiring: the parts of a worker, each made of finished others.

In: a configuration, connected clients, described tables, checked topics. Out: a `Worker`. Who is given
what is seen here; what they do with it is theirs.
"""

from __future__ import annotations

import queue
from collections.abc import Mapping
from dataclasses import dataclass

from connector.config import Configuration
from connector.delivery import (
    Delivery,
    Follower,
    KafkaClients,
    LastingTopic,
    Membership,
    Standing,
    TopicFacts,
    ensure_topics,
)
from connector.formats import Encoder
from connector.native import BlockEncoder, Native
from connector.source import (
    Background,
    ChoreDone,
    Chores,
    Connection,
    DescribedTable,
    Describing,
    LateChanges,
    ReadEvent,
    Reading,
    Snapshots,
    Tables,
    Unread,
    Watch,
    reading_settings,
    snapshot_settings,
)
from connector.topology import Planner
from connector.worker.blocked_readers import COORDINATORS_SECONDS
from connector.worker.former_topics import FormerTopics
from connector.worker.lost_positions import earlier
from connector.worker.notifications import Notifications
from connector.worker.objections import objections
from connector.worker.one_group import OneGroup
from connector.worker.pipeline import Pipeline
from connector.worker.restoring import Restoring
from connector.worker.settings import WorkerIdentity, data_spec, delivery_settings
from connector.worker.signals import Signals
from connector.worker.slots import Noted
from connector.worker.table_list import Looking, TableList
from connector.worker.topic_troubles import Unseen
from connector.worker.transactions import Transactions
from connector.worker.worker import Worker
from connector.worker.writable_topics import WritableTopics

POSITIONS_GONE = (
    "the positions that were in it are gone, so nothing is delivered. Stop the connector, say where it begins with "
    f"`scylla-cdc offsets reset --to` {earlier('that happened')} (the default is the oldest "
    "change of each log), and start it again"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What a worker can start with. ``unusable``: topics that take no records, and why. ``start``: the name of this
    start of the connector, if it is one."""

    configuration: Configuration
    who: WorkerIdentity
    connection: Connection
    clients: KafkaClients
    tables: Tables
    topics: Mapping[str, TopicFacts]
    unusable: Mapping[str, str]
    encoder: Encoder
    noted: Noted
    native: Native
    start: str | None = None

    @property
    def offsets_topic(self) -> str:
        return self.configuration.connector.delivery.offset_topic


def build_worker(given: Prepared) -> Worker:
    """A worker that can start."""
    configuration, connection, clients, tables = given.configuration, given.connection, given.clients, given.tables
    connector = configuration.connector
    reading = reading_settings(connector.reading)

    events: queue.Queue[ReadEvent | ChoreDone] = queue.Queue()
    background, chores = Background(), Chores(events.put)
    planner, pipeline, membership = _planner(given), _pipeline(given), _membership(given)
    positions = LastingTopic(clients, given.offsets_topic, POSITIONS_GONE)
    stood = Standing(configuration.worker.transaction_timeout_ms / 1000 + COORDINATORS_SECONDS)
    unseen = Unseen()
    one_group = OneGroup(configuration, clients, given.who.client_id)
    restoring = Restoring(
        configuration=configuration,
        clients=clients,
        connection=connection,
        planner=planner,
        tables=tables,
        pipeline=pipeline,
        chores=chores,
        background=background,
        one_group=one_group,
        unseen=unseen,
        stood=stood,
        positions=positions,
    )
    delivery = _delivery(given, pipeline, membership, unseen, stood, positions)
    transactions = Transactions(
        delivery=delivery,
        planner=planner,
        encoder=given.encoder,
        tables=tables,
        pipeline=pipeline,
        membership=membership,
        restoring=restoring,
        clock=connection.clock,
        chores=chores,
        look=WritableTopics(configuration, clients, given.who.client_id, stood, positions.check).look,
        unseen=unseen,
        heartbeat_ms=connector.output.heartbeat_interval_ms,
        retry_seconds=reading.retry_max_ms / 1000,
        background=background,
    )

    def lacks(described: DescribedTable) -> str | None:
        return next(map(str, objections(configuration, described)), None)

    watch = Watch(
        planner=planner,
        connection=connection,
        settings=reading,
        chores=chores,
        tables=tables,
        background=background,
        describing=Describing(planner, connection, reading, chores, tables, background, lacks=lacks),
    )
    snapshots = Snapshots(
        planner=planner,
        connection=connection,
        settings=snapshot_settings(connector.reading, dated=connector.output.metadata),
        chores=chores,
        tables=tables,
        consumer=transactions,
        background=background,
        takes_uncut=pipeline.takes_uncut,
    )
    reads = Reading(
        planner=planner,
        connection=connection,
        settings=reading,
        sink=events.put,
        consumer=transactions,
        tables=tables,
        background=background,
        onlooker=snapshots,
        takes_uncut=pipeline.takes_uncut,
    )
    hears = connector.reading.signals and not connector.output.strict
    return Worker(
        configuration=configuration,
        who=given.who,
        clients=clients,
        connection=connection,
        events=events,
        background=background,
        chores=chores,
        planner=planner,
        tables=tables,
        watch=watch,
        reading=reads,
        snapshots=snapshots,
        signals=Signals(configuration, clients, background) if hears else None,
        notifications=Notifications(configuration, clients, background),
        late=LateChanges(planner, connection, chores, tables, reads, transactions),
        encoder=given.encoder,
        pipeline=pipeline,
        membership=membership,
        restoring=restoring,
        unread=Unread(planner, tables, restoring.report, restoring.expired),
        follower=_follower(given, positions),
        delivery=delivery,
        transactions=transactions,
        table_list=TableList(
            configuration=configuration,
            planner=planner,
            tables=tables,
            watch=watch,
            transactions=transactions,
            restoring=restoring,
            pipeline=pipeline,
            looking=Looking(clients, connection),
            chores=chores,
            unseen=unseen,
            background=background,
        ),
        native=given.native,
    )


def _planner(given: Prepared) -> Planner:
    connector = given.configuration.connector
    reading = reading_settings(connector.reading)
    mode = "no_data" if connector.output.strict else connector.reading.snapshot_mode
    return Planner(
        given.tables,
        slots=given.noted.slots,
        owner=given.who.client_id,
        confidence_ms=reading.confidence_ms,
        grace_ms=reading.grace_ms,
        lookback_ms=connector.reading.initial_lookback_ms,
        initial_snapshot=mode not in ("no_data", "never"),
        snapshot_start=given.start if mode == "always" else None,
        snapshot_when_needed=mode == "when_needed",
    )


def _pipeline(given: Prepared) -> Pipeline:
    def create_topic(name: str) -> TopicFacts:
        return ensure_topics(given.clients.admin(), [data_spec(given.configuration, name)])[name]

    kernel, encoder = given.native.kernel, given.encoder
    blocks = None if kernel is None else BlockEncoder(kernel, encoder)
    pipeline = Pipeline(given.configuration, encoder, given.topics, given.who.index, create_topic, blocks)
    for topic, why in given.unusable.items():
        pipeline.suspend_topic(topic, why)
    return pipeline


def _membership(given: Prepared) -> Membership:
    return Membership(
        given.clients,
        given.offsets_topic,
        given.configuration.group,
        given.who.client_id,
        slots=given.noted.slots,
        session_timeout_ms=given.configuration.worker.session_timeout_ms,
        instance_id=given.who.instance_id,
    )


def _follower(given: Prepared, positions: LastingTopic) -> Follower:
    configuration = given.configuration
    return Follower(
        given.clients,
        configuration.connector.name,
        given.offsets_topic,
        configuration.group,
        given.noted.slots,
        positions=positions.check,
    )


def _delivery(
    given: Prepared,
    pipeline: Pipeline,
    membership: Membership,
    unseen: Unseen,
    stood: Standing,
    positions: LastingTopic,
) -> Delivery:
    outlived = given.who.instance_id is not None
    former = FormerTopics(given.clients, given.configuration, given.noted) if outlived else None
    return Delivery(
        given.clients,
        delivery_settings(given.configuration, given.who),
        membership,
        topics=lambda: pipeline.all_topics if former is None else pipeline.all_topics | former(),
        group=given.configuration.group,
        unseen=unseen,
        blocks=given.native.client,
        stood=stood,
        positions=positions.confirm,
        facts=pipeline.facts,
        outlived=outlived,
    )
