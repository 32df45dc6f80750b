"""Avro bytes in Confluent's wire format: a zero byte, the schema's id, the value in Avro's binary encoding.

In: values of records with their schemas, and a ``SchemaIds``. Out: bytes. Writers are composed once per
schema; the id is asked for when the first value of a schema is written, so that no subject comes into being
for a record that never comes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import Any, Final

from connector.config import ConverterConfig
from connector.formats.avro_names import AvroNames
from connector.formats.avro_schema import DEFAULT_NAME, avro_schema
from connector.formats.converter import SchemaIds, Serialize, Side
from connector.formats.record import Schema
from connector.formats.schemas import without_default

#: Appends the encoding of a value to a buffer.
Write = Callable[[Any, bytearray], None]

_pack_float = Struct("<f").pack
_pack_double = Struct("<d").pack


class AvroConverter:
    """Makes the serialisers of one side (keys or values) of a connector."""

    def __init__(self, config: ConverterConfig, side: Side, ids: SchemaIds) -> None:
        self._config = config
        self._names = AvroNames.of(config)
        self._side = side
        self._ids = ids
        self._null_is_default = config.replace_null_with_default

    def serializer(self, topic: str, schema: Schema | None) -> Serialize:
        """A callable for values of one schema. Null becomes null bytes, and registers nothing."""
        if schema is None:
            return _serialize_null
        head, write = self.head(topic, schema), writer(schema)
        without = None if self._null_is_default else without_default(schema)

        def serialize(value: Any) -> bytes | None:
            if value is None and schema["optional"]:
                # As in Java, whatever the schema is: a tombstone for whoever compacts the topic.
                return None
            buffer = bytearray(head())
            write(value if without is None else without(value), buffer)
            return bytes(buffer)

        return serialize

    def as_they_are(self, schema: Schema) -> bool:
        """Whether values of a schema are written as they are, with defaults."""
        return self._null_is_default or without_default(schema) is None

    def head(self, topic: str, schema: Schema) -> Callable[[], bytes]:
        """A callable for what stands before each value of a schema; the first call asks for the schema's id."""
        text = json.dumps(avro_schema(schema, self._config.connect_meta_data, self._names), separators=(",", ":"))
        subject = self._subject(topic, schema)
        return lru_cache(maxsize=1)(lambda: b"\0" + self._ids.id_for(subject, text).to_bytes(4, "big"))

    def _subject(self, topic: str, schema: Schema) -> str:
        if self._config.subject_strategy == "topic":
            return f"{topic}-{self._side}"
        if schema["type"] != "struct":
            raise ValueError(
                f"the {self._side} is of the type {schema['type']}, and {self._side}.subject.name.strategy names "
                "subjects after structs: use TopicNameStrategy"
            )
        name = self._names.schema(schema.get("name") or DEFAULT_NAME)
        return name if self._config.subject_strategy == "record" else f"{topic}-{name}"


def _serialize_null(value: Any) -> bytes | None:
    if value is not None:
        raise TypeError("a value without a schema has no Avro form: turn schemas on, or use the JSON converter")
    return None


def writer(schema: Schema) -> Write:
    """A callable that writes values of the schema."""
    write = _required_writer(schema)
    if not schema["optional"]:
        return write
    # The branches of the union stand the other way round where there is a default.
    null, present = (b"\x02", b"\x00") if "default" in schema else (b"\x00", b"\x02")

    def write_optional(value: Any, buffer: bytearray) -> None:
        if value is None:
            buffer += null
        else:
            buffer += present
            write(value, buffer)

    return write_optional


def _required_writer(schema: Schema) -> Write:
    kind = schema["type"]
    if kind == "struct":
        return _struct_writer(schema)
    if kind == "array":
        return _array_writer(schema)
    return _PRIMITIVE_WRITERS[kind]


def _struct_writer(schema: Schema) -> Write:
    fields = [(field["field"], writer(field)) for field in schema["fields"]]

    def write_struct(value: Any, buffer: bytearray) -> None:
        for name, write in fields:
            write(value[name], buffer)

    return write_struct


def _array_writer(schema: Schema) -> Write:
    write_item = writer(schema["items"])

    def write_array(value: Any, buffer: bytearray) -> None:
        if value:
            write_long(len(value), buffer)
            for item in value:
                write_item(item, buffer)
        buffer.append(0)

    return write_array


def long_bytes(value: int) -> bytes:
    """Avro's int and long: zigzag, then seven bits a byte, lowest first.

    >>> long_bytes(-1), long_bytes(64)
    (b'\\x01', b'\\x80\\x01')
    """
    left = (value << 1) ^ (value >> 63)
    if left < 0x4000:
        return _LAST[left]
    found = _MORE[left & 0x3FFF]
    left >>= 14
    while left >= 0x4000:
        found += _MORE[left & 0x3FFF]
        left >>= 14
    return found + _LAST[left]


# Seven bits as a byte that has others behind it, and as the last byte of a number; fourteen bits in the same way. Each
# process that starts makes them, also one that writes no Avro.
_MORE_OF_7: Final = [bytes((bits | 0x80,)) for bits in range(0x80)]
_LAST_OF_7: Final = [bytes((bits,)) for bits in range(0x80)]
_MORE: Final = [low + high for high in _MORE_OF_7 for low in _MORE_OF_7]
_LAST: Final = _LAST_OF_7 + [low + high for high in _LAST_OF_7[1:] for low in _MORE_OF_7]


def write_long(value: int, buffer: bytearray) -> None:
    buffer += long_bytes(value)


def _write_bytes(value: bytes, buffer: bytearray) -> None:
    write_long(len(value), buffer)
    buffer += value


def _write_string(value: str, buffer: bytearray) -> None:
    raw = value.encode()
    write_long(len(raw), buffer)
    buffer += raw


def _write_float(value: float, buffer: bytearray) -> None:
    buffer += _pack_float(value)


def _write_double(value: float, buffer: bytearray) -> None:
    buffer += _pack_double(value)


def _write_boolean(value: bool, buffer: bytearray) -> None:
    buffer.append(1 if value else 0)


_PRIMITIVE_WRITERS: Final[dict[str, Write]] = {
    "int8": write_long,
    "int16": write_long,
    "int32": write_long,
    "int64": write_long,
    "float": _write_float,
    "double": _write_double,
    "boolean": _write_boolean,
    "string": _write_string,
    "bytes": _write_bytes,
}
