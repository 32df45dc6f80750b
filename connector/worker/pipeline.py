"""From a batch to the records that stand for it, or to the dead letter that does.

In: complete batches. Out: records for Kafka. What can never become a record is a dead letter (`errors.tolerance=all`)
or a `PoisonRow` that fails its group; in neither case is it tried for ever or dropped.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping

from connector.changes import Batch, changes_of
from connector.config import Configuration
from connector.delivery.dead_letters import DeadLetter, dead_letter_record
from connector.delivery.records import KafkaRecord, record_size
from connector.delivery.topics import TopicFacts
from connector.errors import ConfigurationError, PoisonRow
from connector.formats.encoder import Encoder

log = logging.getLogger(__name__)

# What the broker adds to a record beside its bytes, generously.
RECORD_OVERHEAD = 128


class Pipeline:
    """Of one worker. ``failed_topics`` and ``poison`` outlive aborts: what caused one must not cause the next."""

    def __init__(
        self,
        configuration: Configuration,
        encoder: Encoder,
        topics: Mapping[str, TopicFacts],
        task: int,
        create_topic: Callable[[str], TopicFacts] | None = None,
    ) -> None:
        self.encoder = encoder
        self._connector = configuration.connector
        self._topics = dict(topics)
        self._create_topic = create_topic
        self._task = task
        self._dead_letter_topic = (
            configuration.connector.delivery.dead_letter_topic if configuration.connector.delivery.dead_letters else ""
        )
        self._tolerant = configuration.connector["errors.tolerance"] == "all"
        self.failed_topics: dict[str, str] = {}
        self.poison: dict[tuple[bytes, bytes], str] = {}
        self.records: Counter[str] = Counter()
        self.dead_letters: Counter[str] = Counter()
        self.last_dead_letter: str | None = None

    def records_of(self, batch: Batch) -> list[KafkaRecord]:
        """All records of a batch, in order. Raises PoisonRow if it can have none."""
        table = batch.layout.description.full_name
        try:
            records: list[KafkaRecord] = self._encoded(batch)
        except PoisonRow as poison:
            return self._dead_letter(batch, table, poison)
        self.records[table] += len(records)
        return records

    def _encoded(self, batch: Batch) -> list[KafkaRecord]:
        remembered = self.poison.get((batch.stream_id, batch.time))
        if remembered is not None:
            raise PoisonRow(remembered)
        encode = self.encoder.encode
        records: list[KafkaRecord] = []
        for change in changes_of(batch):
            records += encode(change)
        for record in records:
            if not self.has_topic(record.topic):
                raise PoisonRow(f"topic {record.topic}: {self.failed_topics[record.topic]}")
            facts = self._topics.get(record.topic)
            if facts is not None and record_size(record) + RECORD_OVERHEAD > facts.max_message_bytes:
                # Found out before it is sent: the broker would refuse it together with its neighbours.
                raise PoisonRow(
                    f"a record of {record_size(record)} bytes is larger than topic {record.topic} takes "
                    f"(max.message.bytes is {facts.max_message_bytes})"
                )
        return records

    def has_topic(self, topic: str) -> bool:
        """Whether records may go there. One that a transform sends records to, and that no table's name foretold, is
        created now, as Kafka Connect does."""
        if topic in self.failed_topics:
            return False
        if topic not in self._topics and self._create_topic is not None:
            try:
                self._topics[topic] = self._create_topic(topic)
            except ConfigurationError as error:
                self.failed_topics[topic] = "; ".join(problem.problem for problem in error.problems)
                return False
        return True

    def _dead_letter(self, batch: Batch, table: str, poison: PoisonRow) -> list[KafkaRecord]:
        if not self._tolerant:
            raise poison
        topic = self._dead_letter_topic
        self.dead_letters[table] += 1
        self.last_dead_letter = str(poison)
        log.warning("%s: dead letter: %s", table, poison)
        if not topic:
            # Tolerated without a topic to keep it in, as in Kafka Connect: counted and logged, nothing else.
            return []
        if topic in self.failed_topics:
            raise PoisonRow(f"dead-letter topic {topic}: {self.failed_topics[topic]}; the letter was: {poison}")
        number = batch.rows[0][batch.layout.batch_seq_no] if batch.rows else None
        letter = DeadLetter(
            connector=self._connector.name,
            task=str(self._task),
            topic=self._connector.output.names.data_topic(
                batch.layout.description.keyspace, batch.layout.description.name
            ),
            table=table,
            stream_id=batch.stream_id.hex(),
            time=str(batch.timeuuid),
            batch_seq_no=int.from_bytes(number, "big", signed=True) if number else None,
            stage="VALUE_CONVERTER",
            error=poison,
            raw=raw_rows(batch),
        )
        return [dead_letter_record(topic, letter, self._connector.delivery.dead_letter_headers)]


def raw_rows(batch: Batch) -> bytes:
    """The rows as the log has them: cells in hexadecimal, so that nothing has to be decoded to keep them."""
    columns = batch.layout.columns
    rows = [
        {name: None if cell is None else "0x" + cell.hex() for name, cell in zip(columns, row)} for row in batch.rows
    ]
    return json.dumps(rows, separators=(",", ":")).encode()
