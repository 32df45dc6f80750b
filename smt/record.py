"""The record that transforms take and give: decoded Python values, with their Connect schemas or without."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

#: A Connect schema in the form in which ``JsonConverter`` writes it: ``{"type": "struct", "fields": […], …}``.
Schema = dict[str, Any]


class Place(NamedTuple):
    """Where a record stands in Kafka, and its time in milliseconds since 1970; None for what is not known."""

    partition: int | None = None
    timestamp: int | None = None
    offset: int | None = None


class Header(tuple[str, Any]):
    """A header, ``(name, value)``, that knows the schema of its value."""

    schema: Schema | None

    def __new__(cls, name: str, value: Any, schema: Schema | None) -> Header:
        made = super().__new__(cls, (name, value))
        made.schema = schema
        return made

    def __getnewargs__(self) -> tuple[str, Any, Schema | None]:
        # A tuple's own are what it holds, in one.
        return (*self, self.schema)


@dataclass(slots=True)
class Record:
    """One record. Structs are dicts; ``value`` None with ``value_schema`` None is a tombstone (null bytes).

    Transforms never change the record they are given, nor anything inside it.
    """

    topic: str
    key: Any
    value: Any
    headers: list[tuple[str, Any]] = field(default_factory=list)
    key_schema: Schema | None = None
    value_schema: Schema | None = None
    place: Place | None = None
