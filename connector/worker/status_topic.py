"""The status topic: what each worker last said of itself, so that `status` works without asking any of them.

In: snapshots. Out: one record per worker, replaced every few seconds, removed by an orderly end. Status is no part of
any promise: a failure to write it is logged once and stops nothing.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from connector.config import Configuration
from connector.delivery.clients import KafkaClients
from connector.delivery.producer import ReportingProducer
from connector.delivery.records import OutgoingRecord, compact_json
from connector.errors import DeliveryError
from connector.worker.settings import WorkerIdentity

log = logging.getLogger(__name__)

PUBLISH_SECONDS = 3.0
CLOSE_SECONDS = 2.0


class StatusTopic:
    """One worker's record in it."""

    def __init__(self, clients: KafkaClients, configuration: Configuration, who: WorkerIdentity) -> None:
        self._topic = configuration.worker.status.name
        self._key = compact_json([configuration.connector.name, {"worker": who.client_id}])
        self._producer = ReportingProducer(clients)
        self._due = 0.0
        self._complained = False

    def publish(self, status: dict[str, Any]) -> None:
        now = time.monotonic()
        if now >= self._due:
            self._due = now + PUBLISH_SECONDS
            self._send(compact_json(status))

    def close(self, orderly: bool) -> None:
        """An orderly end takes the record away; a crash leaves it, with the time at which it was true."""
        if orderly:
            self._send(None)
            try:
                self._producer.flush(time.monotonic() + CLOSE_SECONDS)
            except DeliveryError as error:
                log.debug("status topic: %s", error)
        self._producer.close()

    def _send(self, value: bytes | None) -> None:
        if self._producer.pending() > 10:
            return  # Kafka is away: old status is not worth keeping
        try:
            self._producer.failure = None
            self._producer.produce(OutgoingRecord(self._topic, self._key, value))
            self._producer.poll()
        except DeliveryError as error:
            if not self._complained:
                log.warning("status cannot be published: %s", error)
            self._complained = True
