"""Wiring: the parts of a worker, each made of finished others.

In: a configuration, connected clients, described tables, checked topics. Out: a `Worker`.
"""

from __future__ import annotations

import queue
from collections.abc import Mapping

from connector.config import Configuration
from connector.delivery import (
    Delivery,
    Field,
    Follower,
    KafkaClients,
    LastingTopic,
    Membership,
    Standing,
    TopicFacts,
    end_left_open,
    ensure_topics,
    look_at_topic,
)
from connector.errors import DeliveryError
from connector.formats import Encoder
from connector.native import BlockEncoder, Native
from connector.source import (
    Background,
    ChoreDone,
    Chores,
    Connection,
    DescribedTable,
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
from connector.worker.settings import WorkerIdentity, data_spec, delivery_settings, spec_of
from connector.worker.signals import Signals
from connector.worker.slots import Noted
from connector.worker.table_list import Looking, TableList
from connector.worker.topic_troubles import Unseen
from connector.worker.transactions import Transactions
from connector.worker.worker import Worker

POSITIONS_GONE = (
    "the positions that were in it are gone, so nothing is delivered. Stop the connector, say where it begins with "
    f"`scylla-cdc offsets reset --to` {earlier('that happened')} (the default is the oldest "
    "change of each log), and start it again"
)


def build_worker(
    configuration: Configuration,
    who: WorkerIdentity,
    *,
    connection: Connection,
    clients: KafkaClients,
    tables: Tables,
    topics: Mapping[str, TopicFacts],
    unusable: Mapping[str, str],
    encoder: Encoder,
    noted: Noted,
    native: Native,
    start: str | None = None,
) -> Worker:
    """A worker that can start. ``unusable``: topics that take no records, and why. ``start``: the name of this start of
    the connector, if it is one."""
    connector, group = configuration.connector, configuration.group
    offsets = connector.delivery.offset_topic
    reading, slots = reading_settings(connector.reading), noted.slots
    mode = "no_data" if connector.output.strict else connector.reading.snapshot_mode

    def create_topic(name: str) -> TopicFacts:
        return ensure_topics(clients.admin(), [data_spec(configuration, name)])[name]

    events: queue.Queue[ReadEvent | ChoreDone] = queue.Queue()
    background = Background()
    chores = Chores(events.put)
    planner = Planner(
        tables,
        slots=slots,
        owner=who.client_id,
        confidence_ms=reading.confidence_ms,
        grace_ms=reading.grace_ms,
        lookback_ms=connector.reading.initial_lookback_ms,
        initial_snapshot=mode not in ("no_data", "never"),
        snapshot_start=start if mode == "always" else None,
        snapshot_when_needed=mode == "when_needed",
    )
    blocks = None if native.kernel is None else BlockEncoder(native.kernel, encoder)
    hears = connector.reading.signals and not connector.output.strict
    pipeline = Pipeline(configuration, encoder, topics, who.index, create_topic, blocks)
    for topic, why in unusable.items():
        pipeline.suspend_topic(topic, why)
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
    unseen = Unseen()
    stood = Standing(configuration.worker.transaction_timeout_ms / 1000 + COORDINATORS_SECONDS)
    positions = LastingTopic(clients, offsets, POSITIONS_GONE)
    restoring = Restoring(
        configuration,
        clients,
        connection,
        planner,
        tables,
        pipeline,
        chores,
        background,
        one_group,
        unseen,
        stood,
        positions,
    )
    former = None if who.instance_id is None else FormerTopics(clients, configuration, noted)
    delivery = Delivery(
        clients,
        delivery_settings(configuration, who),
        membership,
        topics=lambda: pipeline.topics if former is None else {*pipeline.topics, *former()},
        group=group,
        unseen=unseen,
        blocks=native.client,
        stood=stood,
        positions=positions.confirm,
        facts=pipeline.facts,
        outlived=former is not None,
    )

    def look(topic: str, owners: frozenset[str]) -> TopicFacts | str:
        if topic == offsets:
            # Never created while workers run: it would be empty, and everything would begin anew.
            try:
                positions.check()
            except DeliveryError as error:
                return str(error)
        found = look_at_topic(clients.admin(), spec_of(configuration, topic))
        if owners and isinstance(found, TopicFacts):
            if why := stood.look(clients, topic):
                return why
            # What our own id left open is ended with its next producer, which is started before this topic is written.
            others = owners - {who.client_id}
            told: list[str] = []
            field = Field(
                connector.name, offsets, group, lambda: [topic], lambda topic, why, owners: told.append(why), stood
            )
            end_left_open(clients, field, {*others})
            if told:
                return told[-1]
        return found

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
        look=look,
        unseen=unseen,
        heartbeat_ms=connector.output.heartbeat_interval_ms,
        retry_seconds=reading.retry_max_ms / 1000,
        background=background,
    )

    def lacks(described: DescribedTable) -> str | None:
        return next(map(str, objections(configuration, described)), None)

    watch = Watch(planner, connection, reading, chores, tables, background, lacks=lacks)
    wanted = snapshot_settings(connector.reading, dated=connector.output.metadata)
    snapshots = Snapshots(planner, connection, wanted, chores, tables, transactions, background, pipeline.takes_uncut)
    reads = Reading(
        planner, connection, reading, events.put, transactions, tables, background, snapshots, pipeline.takes_uncut
    )
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
        watch=watch,
        reading=reads,
        snapshots=snapshots,
        signals=Signals(configuration, clients, background) if hears else None,
        notifications=Notifications(configuration, clients, background),
        late=LateChanges(planner, connection, chores, tables, reads, transactions),
        encoder=encoder,
        pipeline=pipeline,
        membership=membership,
        restoring=restoring,
        unread=Unread(planner, tables, restoring.report, restoring.expired),
        follower=Follower(clients, connector.name, offsets, group, slots, positions=positions.check),
        delivery=delivery,
        transactions=transactions,
        table_list=TableList(
            configuration,
            planner,
            tables,
            watch,
            transactions,
            restoring,
            pipeline,
            Looking(clients, connection),
            chores,
            unseen,
            background,
        ),
        native=native,
    )
