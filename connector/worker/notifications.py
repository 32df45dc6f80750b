"""Debezium's notifications: what becomes of snapshots, told to the log and to a topic.

In: what the planner has committed of snapshots, how far they are. Out: one notification each, by whoever has the home
slot of the table. They are told after the commit: a worker that dies between them tells nothing twice, and perhaps
not all.
"""

from __future__ import annotations

import logging
import time
import uuid
from typing import Any

from connector.config import Configuration
from connector.delivery import KafkaClients, OutgoingRecord, ReportingProducer, compact_json
from connector.errors import DeliveryError
from connector.source import Background, Purpose
from connector.table_name import TableName
from connector.topology import Event, Snapshot, TableState, WishesPlan, running_snapshot, share_done

log = logging.getLogger(__name__)

NOTIFICATIONS = Purpose("notifications", "notifications are not written", "nobody is told about snapshots", holds=False)
PROGRESS_SECONDS = 5.0
TENTHS = 10
LATE = 100
CLOSE_SECONDS = 1.0


def told(event: Event) -> list[str]:
    """Debezium's types of what happened, in order."""
    before, after = event.before, event.after
    if after.kind not in KINDS or before == after:
        return []
    if before is None:
        return ["STARTED"]
    if after.stopped:
        return ["ABORTED"]
    if after.ended is not None:
        return ["TABLE_SCAN_COMPLETED", "COMPLETED"]
    return ["PAUSED" if after.paused else "RESUMED"]


KINDS = {"initial": "Initial Snapshot", "incremental": "Incremental Snapshot"}


class Notifications:
    """Of one worker."""

    def __init__(self, configuration: Configuration, clients: KafkaClients, background: Background) -> None:
        delivery = configuration.connector.delivery
        self._connector = configuration.connector.name
        self._log = "log" in delivery.notifications
        self._topic = delivery.notification_topic if "sink" in delivery.notifications else None
        self._clients = clients
        self._producer: ReportingProducer | None = None
        self._progress_due = 0.0
        self._tenths: dict[tuple[TableName, str], int] = {}
        background.expect(NOTIFICATIONS)
        self._task = background.task(NOTIFICATIONS)

    def tick(self, planner: WishesPlan) -> None:
        for event in planner.snapshot_events():
            for type_ in told(event):
                self._tell(type_, event.table, event.after, {})
        now = time.monotonic()
        if (self._log or self._topic) and now >= self._progress_due:
            self._progress_due = now + PROGRESS_SECONDS
            for plan in planner.tables.values():
                self._tell_progress(plan)
        if self._producer is not None:
            self._producer.poll()
            failure, self._producer.failure = self._producer.failure, None
            self._task.is_now(None if failure is None else str(failure))
            if self._producer.is_stuck():
                self._producer.close()
                self._producer = None

    def close(self, planner: WishesPlan) -> None:
        """What was committed last is told as well: that all is done may be why the worker ends."""
        self.tick(planner)
        if self._producer is not None:
            self._producer.finish(CLOSE_SECONDS)

    def _tell_progress(self, plan: TableState) -> None:
        run = running_snapshot(plan)
        if run is None or plan.home not in plan.active:
            return
        name, snapshot = run
        done = share_done(plan, name)
        tenth = int(done * TENTHS)
        if tenth > self._tenths.get((plan.table, name), 0):
            self._tenths = {(plan.table, name): tenth} | {
                key: each for key, each in self._tenths.items() if key[0] != plan.table
            }
            self._tell("IN_PROGRESS", plan.table, snapshot, {"progress": f"{done:.2f}"})

    def _tell(self, type_: str, table: TableName, snapshot: Snapshot, more: dict[str, str]) -> None:
        kind, at = KINDS[snapshot.kind], round(time.time() * 1000)
        if self._log:
            log.info("%s of %s: %s%s", kind, table, type_, f" {more['progress']}" if more else "")
        if self._topic is None:
            return
        name = str(table)
        about = "scanned_collection" if type_ == "TABLE_SCAN_COMPLETED" else "data_collections"
        data = {"connector_name": self._connector, about: name, **more}
        if type_ == "IN_PROGRESS":
            data["current_collection_in_progress"] = name
        if type_ == "TABLE_SCAN_COMPLETED":
            data["status"] = "SUCCEEDED"
        if snapshot.asked is not None:
            data["signal_id"] = snapshot.asked
        id_ = str(uuid.uuid4())
        value: dict[str, Any] = {
            "id": id_,
            "aggregate_type": kind,
            "type": type_,
            "additional_data": data,
            "timestamp": at,
        }
        self._send(OutgoingRecord(self._topic, compact_json({"id": id_}), compact_json(value)))

    def _send(self, record: OutgoingRecord) -> None:
        try:
            if self._producer is None:
                self._producer = ReportingProducer(self._clients)
            if self._producer.pending() <= LATE:  # old news are not worth keeping
                self._producer.produce(record)
        except DeliveryError as error:
            self._task.failed(error)
