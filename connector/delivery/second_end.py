"""Another end of a transaction that the coordinator has ended once, where a partition has missed its marker.

In: a producer with the transactional id of whose it was, and what stands there. Out: one more transaction of it in the
same partitions, whose markers speak for both.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from confluent_kafka import Message, TopicPartition

from connector.delivery.clients import READ_COMMITTED, KafkaClients
from connector.delivery.records import (
    REPEATED_HEADER,
    WRITTEN_HEADER,
    Headers,
    OutgoingRecord,
    commit_name,
    written_at,
)
from connector.delivery.transactional_producer import TransactionalProducer
from connector.errors import DeliveryError, ProducerFenced, UnknownOutcome

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SecondEnd:
    """Of transactions that told ``group`` of slots of the offsets topic."""

    clients: KafkaClients
    group: str
    offsets_topic: str
    deadline: float

    def commit(self, producer: TransactionalProducer, entries: Sequence[Message]) -> None:
        """With all that it left in slots: who reads entries twice reads the same positions twice."""
        producer.begin()
        again = _repeated(entries)
        producer.produce_all([replace(record, headers=_dated(at)) for record, at in zip(again, entries, strict=True)])
        producer.flush(self.deadline)
        try:
            self._tell_group(producer, commit_name(entries[-1].headers()) or "")
        except (ProducerFenced, UnknownOutcome):
            raise
        except DeliveryError as error:
            log.debug("committing a hanging transaction of %s: %s", producer.transactional_id, error)
        producer.commit()

    def commit_data(self, producer: TransactionalProducer, record: Message, offset: int) -> None:
        """Of what begins at ``offset`` of a data topic, by a record that is there: it says that it is repeated."""
        producer.begin()
        header = (REPEATED_HEADER, str(offset).encode())
        producer.produce_all([replace(each, headers=(*each.headers, header)) for each in _repeated([record])])
        producer.flush(self.deadline)
        producer.commit()

    def abort(self, producer: TransactionalProducer, records: Sequence[Message]) -> None:
        """Of what begins with these records, if they are its own."""
        producer.begin()
        try:
            producer.produce_all(_repeated(records))
            producer.flush(self.deadline)
            self._tell_group(producer, "")
        except (ProducerFenced, UnknownOutcome):
            raise
        except DeliveryError as error:
            log.debug("ending a hanging transaction of %s: %s", producer.transactional_id, error)
        producer.abort()

    def _tell_group(self, producer: TransactionalProducer, name: str) -> None:
        """What the owner told the group in that transaction is pending for ever as well."""
        # Of no member: to the broker that is somebody who does not know of the group's rounds, as old producers are.
        stranger = self.clients.consumer(self.group, READ_COMMITTED)
        try:
            offsets = [TopicPartition(self.offsets_topic, 0, 0, metadata=name)]
            producer.send_offsets(offsets, stranger.consumer_group_metadata())
        finally:
            stranger.close()


def _repeated(messages: Iterable[Message]) -> list[OutgoingRecord]:
    """The same once more: who reads uncommitted data sees nothing that was not there before."""
    return [
        OutgoingRecord(
            message.topic() or "",
            message.key(),
            message.value(),
            headers=message.headers() or (),
            partition=message.partition(),
        )
        for message in messages
    ]


def _dated(entry: Message) -> Headers:
    """Whoever writes it again may have another clock."""
    headers = entry.headers() or []
    written = str(written_at(headers, entry.timestamp()[1])).encode()
    return (*((name, value) for name, value in headers if name != WRITTEN_HEADER), (WRITTEN_HEADER, written))
