"""Dead letters: batches that cannot become records, kept in a topic for inspection.

In: the raw batch as bytes and a description of where it stood and what was wrong. Out: an outgoing record with headers
in the style of Kafka Connect, whose values are enough to read the batch again with `scylla-cdc read`.
"""

from __future__ import annotations

from dataclasses import dataclass

from connector.delivery.records import OutgoingRecord, record_size
from connector.errors import PoisonRow
from connector.secrets import scrub

# A row of many megabytes is often why it is here: its beginning and its full length are enough to find it again.
MAX_VALUE_BYTES = 256 * 1024

PREFIX = "__connect.errors."


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Why and where."""

    connector: str
    task: str
    topic: str
    table: str
    stream_id: str
    time: str
    batch_seq_no: int | None
    error: PoisonRow
    raw: bytes


def dead_letter_record(
    topic: str, letter: DeadLetter, with_context: bool = True, most: int | None = None
) -> OutgoingRecord:
    """The record for the dead-letter topic; the key names the stream, so that one stream's letters stay in order.

    ``most``: bytes that the record may have; its headers are kept in any case.
    """
    headers: list[tuple[str, bytes | None]] = [
        ("scylla.cdc.table", letter.table.encode()),
        ("scylla.cdc.stream_id", letter.stream_id.encode()),
        ("scylla.cdc.time", letter.time.encode()),
        ("scylla.cdc.length", str(len(letter.raw)).encode()),
    ]
    if letter.batch_seq_no is not None:
        headers.append(("scylla.cdc.batch_seq_no", str(letter.batch_seq_no).encode()))
    if with_context:
        kind = type(letter.error)
        context = {
            "topic": letter.topic,
            "connector.name": letter.connector,
            "task.id": letter.task,
            "stage": letter.error.stage,
            "class.name": f"{kind.__module__}.{kind.__qualname__}",
            "exception.class.name": f"{kind.__module__}.{kind.__qualname__}",
            "exception.message": scrub(str(letter.error)),
        }
        headers += [(PREFIX + name, value.encode()) for name, value in context.items()]
    key = letter.stream_id.encode()
    length = MAX_VALUE_BYTES
    if most is not None:
        length = max(0, min(length, most - record_size(OutgoingRecord(topic, key, b"", tuple(headers)))))
    return OutgoingRecord(topic, key, letter.raw[:length], tuple(headers))
