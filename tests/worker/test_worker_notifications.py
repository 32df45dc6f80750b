"""Notifications of a worker that ends: what it has told is written."""

from __future__ import annotations

import json

from confluent_kafka import Consumer, TopicPartition

from connector.source import Background
from connector.table_name import TableName
from connector.topology import Event, Snapshot, TableState, Wish
from connector.worker.notifications import Notifications
from connector.worker.settings import kafka_clients
from tests.config.files import loaded
from tests.servers.mock_kafka import mock_kafka
from tests.servers.patience import until

TOPIC = "news"
TABLE = TableName("shop", "one")


class _Commits:
    """A planner that has committed these."""

    def __init__(self, *events: Event) -> None:
        self._events = [*events]
        self.tables: dict[TableName, TableState] = {}

    def hear_from(self, number: int, topic: str | None = None) -> None:
        pass

    def wish(self, table: TableName, wish: Wish) -> None:
        pass

    def snapshot_events(self) -> list[Event]:
        events, self._events = self._events, []
        return events


def test_what_was_told_last_is_written_when_the_worker_ends() -> None:
    began = Snapshot("initial", 1)
    first = Event(TABLE, "1", None, began)
    last = Event(TABLE, "1", began, Snapshot("initial", 1, ended=2))
    told = {"notification.enabled.channels": "sink", "notification.sink.topic.name": TOPIC}
    with mock_kafka() as kafka:
        kafka.create(TOPIC)
        where = {"bootstrap.servers": kafka.bootstrap_servers}
        configuration = loaded(connector=told, worker=where)
        notifications = Notifications(configuration, kafka_clients(configuration), Background())
        notifications.tick(_Commits(first))
        notifications.close(_Commits(last))
        reader = Consumer({**where, "group.id": "check"})
        try:
            reader.assign([TopicPartition(TOPIC, 0, 0)])
            types: list[str] = []

            def all_are_there() -> bool:
                found = (message.value() for message in reader.consume(10, 0.1) if message.error() is None)
                types.extend(json.loads(value)["type"] for value in found if value is not None)
                return types == ["STARTED", "TABLE_SCAN_COMPLETED", "COMPLETED"]

            until(all_are_there, what="all that was told")
        finally:
            reader.close()
