"""The two sides of a record that transforms work on: the key (``$Key``) and the value (``$Value``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from smt.record import Record, Schema

Apply = Callable[[Record], Record | None]


@dataclass(frozen=True, slots=True)
class Side:
    """``get`` gives schema and content of that side, ``put`` a record with another one."""

    name: str
    get: Callable[[Record], tuple[Schema | None, Any]]
    put: Callable[[Record, Schema | None, Any], Record]


def _put_key(record: Record, schema: Schema | None, key: Any) -> Record:
    return Record(record.topic, key, record.value, record.headers, schema, record.value_schema, record.place)


def _put_value(record: Record, schema: Schema | None, value: Any) -> Record:
    return Record(record.topic, record.key, value, record.headers, record.key_schema, schema, record.place)


KEY = Side("Key", lambda record: (record.key_schema, record.key), _put_key)
VALUE = Side("Value", lambda record: (record.value_schema, record.value), _put_value)
SIDES = {side.name: side for side in (KEY, VALUE)}


def with_topic(record: Record, topic: str) -> Record:
    return Record(topic, record.key, record.value, record.headers, record.key_schema, record.value_schema, record.place)


def with_headers(record: Record, headers: list[tuple[str, Any]]) -> Record:
    return Record(record.topic, record.key, record.value, headers, record.key_schema, record.value_schema, record.place)
