"""The record that transforms take and give: decoded Python values, with their Connect schemas or without."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: A Connect schema in the form in which ``JsonConverter`` writes it: ``{"type": "struct", "fields": […], …}``.
Schema = dict[str, Any]


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
