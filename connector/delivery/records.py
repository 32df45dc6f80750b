"""What is handed to Kafka: data records, and entries of the offsets topic.

Offsets keys are ``["<connector>", {…}]`` in compact JSON, so that several connectors can share one topic; what stands
in the second member and in the value belongs to ``connector.topology``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Headers = Sequence[tuple[str, bytes]] | Sequence[tuple[str, bytes | None]]


class KafkaRecord(Protocol):
    """What can be delivered, whoever made it. ``partition`` None leaves the choice to the key's bytes."""

    @property
    def topic(self) -> str: ...

    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...

    @property
    def headers(self) -> Headers: ...

    @property
    def partition(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class OutgoingRecord:
    """A record that is made in this room."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None


def record_size(record: KafkaRecord) -> int:
    """Bytes it takes in a record batch, rounded up; compared with limits before it is sent."""
    key, value, headers = record.key, record.value, record.headers
    size = 70 + (len(key) if key else 0) + (len(value) if value else 0)
    if headers:
        size += sum(len(name) + len(text or b"") + 10 for name, text in headers)
    return size


@dataclass(frozen=True, slots=True)
class OffsetsEntry:
    """One record of the offsets topic: ``value`` None is a tombstone. ``slot`` is its partition."""

    slot: int
    key: Mapping[str, Any]
    value: Mapping[str, Any] | None

    @property
    def owner(self) -> str | None:
        """The process that claimed the slot: marks name it, positions do not."""
        owner = self.value.get("owner") if self.value else None
        return owner if isinstance(owner, str) else None


def compact_json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def encode_offsets_key(connector: str, key: Mapping[str, Any]) -> bytes:
    return compact_json([connector, dict(key)])


def decode_offsets_entry(connector: str, slot: int, key: bytes | None, value: bytes | None) -> OffsetsEntry | None:
    """The entry, or None for keys of other connectors and for records that are not ours at all."""
    try:
        decoded = json.loads(key or b"null")
        body = json.loads(value) if value is not None else None
    except (ValueError, UnicodeDecodeError):
        return None
    if not (isinstance(decoded, list) and len(decoded) == 2 and decoded[0] == connector):
        return None
    if not isinstance(decoded[1], dict) or not (body is None or isinstance(body, dict)):
        return None
    return OffsetsEntry(slot, decoded[1], body)
