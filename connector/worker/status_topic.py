"""The status topic: the last status report of each worker, so that `status` works without connecting to any of them.

In: snapshots. Out: one record per worker, replaced every few seconds, removed by an orderly end. Status is no part of
any promise: a failure to write it is told and stops nothing.
"""

from __future__ import annotations

import time
from concurrent.futures import Future

from connector.aside import aside
from connector.config import Configuration
from connector.delivery import KafkaClients, OutgoingRecord, ReportingProducer, compact_json, ensure_topics
from connector.errors import DeliveryError
from connector.source import Background, Purpose, explained
from connector.worker.settings import WorkerIdentity, status_spec
from connector.worker.status_document import WorkerStatus, scrubbed_text

STATUS = Purpose(
    "status topic", "the status topic is not written", "`scylla-cdc status` considers this worker gone", holds=False
)

PUBLISH_SECONDS = 3.0
LATE = 2
KEPT = 10
LOOK_SECONDS = 10.0
CLOSE_SECONDS = 2.0

#: What the client is asked to let pass as one record.
_MOST_BYTES = 256 * 1024 * 1024


def words_producer(clients: KafkaClients) -> ReportingProducer:
    """For what is said in the topic. A table takes some two kilobytes, and so does a connector of a process: five
    hundred fill what brokers and clients let pass. What brokers see is compressed, to a tenth and less."""
    return ReportingProducer(clients, compression_type="lz4", compression_level=-1, message_max_bytes=_MOST_BYTES)


class StatusTopic:
    """One worker's record in it."""

    def __init__(
        self, clients: KafkaClients, configuration: Configuration, who: WorkerIdentity, background: Background
    ) -> None:
        self._topic = configuration.worker.status.name
        self._key = compact_json([configuration.connector.name, {"worker": who.client_id}])
        self._clients = clients
        self._producer = words_producer(clients)
        self._due = 0.0
        self._farewell = False
        self._task = background.task(STATUS)
        self._spec = status_spec(configuration)
        self._look: Future[object] | None = None
        self._look_due = 0.0
        self._why: str | None = None

    def publish(self, status: WorkerStatus) -> None:
        now = time.monotonic()
        if now >= self._due:
            self._due = now + PUBLISH_SECONDS
            self._send(scrubbed_text(status).encode())

    def take_away(self) -> None:
        """An orderly end does so; a crash leaves the record, with the time at which it was true."""
        self._farewell = True
        self._send(None)

    def close(self) -> None:
        if self._farewell:
            self._producer.finish(CLOSE_SECONDS)
        else:
            self._producer.close()

    def _send(self, value: bytes | None) -> None:
        try:
            self._producer.poll()
            failure, pending = self._producer.failure, self._producer.pending()
            if failure is not None or pending > LATE:
                silence = f"{self._clients.address} has not taken the last {pending} records"
                error = self._clients.health.error or (silence if failure is None else str(failure))
                self._task.failed(self._trouble() or error)
            elif not pending:
                self._task.worked()
            self._producer.failure = None
            if self._producer.is_stuck():
                self._producer.close()
                self._producer, pending = words_producer(self._clients), 0
            if pending <= KEPT:  # old status is not worth keeping
                self._producer.produce(OutgoingRecord(self._topic, self._key, value))
                self._producer.poll()
        except DeliveryError as error:
            self._task.failed(error)

    def _trouble(self) -> str | None:
        """What ails the topic, as far as it is known by now. One that somebody has deleted is made anew: what was in it
        is written again every few seconds."""
        now = time.monotonic()
        if self._look is not None and self._look.done():
            error, self._look = self._look.exception(), None
            self._why = None if error is None else explained(error)
        if self._look is None and now >= self._look_due:
            self._look_due = now + LOOK_SECONDS
            self._look = aside(lambda: ensure_topics(self._clients.admin(), [self._spec]), "status topic")
        return self._why
