"""Records: decoded, as transforms see them, and encoded, as Kafka gets them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

#: A Connect schema, in the form in which ``JsonConverter`` writes it: ``{"type": "struct", "fields": […], …}``.
Schema = dict[str, Any]

RecordKind = Literal["data", "tombstone", "range_delete", "heartbeat", "schema"]


class Record(NamedTuple):
    """One record for Kafka. ``partition`` None leaves the choice to the partitioner, by the key's bytes."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] = []  # noqa: RUF012  (never changed)
    kind: RecordKind = "data"
    partition: int | None = None


@dataclass(slots=True)
class DecodedRecord:
    """One record before its converters: Python values with their Connect schemas.

    Structs are dicts in field order. A null value with a null schema is a tombstone.
    """

    topic: str
    key_schema: Schema | None
    key: Any
    value_schema: Schema | None
    value: Any
    headers: list[tuple[str, Any]] = field(default_factory=list)
    kind: RecordKind = "data"
    partition: int | None = None
    #: Milliseconds since 1970, for transforms that ask; None as in Java, whose source records have no time yet.
    timestamp: int | None = None
