"""The converters that a configuration names, for keys, values and headers.

In: their parts of the configuration. Out: converters, and a callable from a header to its bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from connector.config import ConverterConfig
from connector.formats.avro_converter import AvroConverter
from connector.formats.converter import Converter, SchemaIds, Serialize, Side
from connector.formats.json_converter import JsonConverter
from connector.formats.plain_converters import PackedConverter, StringConverter
from connector.formats.record import Schema
from smt import simple_text

_TEXT: Final[Schema] = {"type": "string", "optional": False}
#: Headers have few schemas; a memory that has grown beyond this is fed by records that each bring their own.
_MOST_SCHEMAS: Final = 256


def side_converter(config: ConverterConfig, side: Side, ids: SchemaIds | None) -> Converter:
    """The converter of keys or of values."""
    if config.kind == "json":
        return JsonConverter(config)
    if config.kind == "avro":
        if ids is None:
            raise ValueError(f"the {side} converter is Avro: it needs a Schema Registry")
        return AvroConverter(config, side, ids)
    return StringConverter(config) if config.kind == "string" else PackedConverter(config)


def header_converter(config: ConverterConfig) -> Callable[[tuple[str, Any]], bytes | None]:
    """From a header, ``(name, value)``, to the bytes of its value."""
    if config.kind == "simple":
        return _simple
    converter = side_converter(config, "value", None)
    known: dict[int, tuple[Schema | None, Serialize]] = {}

    def convert(header: tuple[str, Any]) -> bytes | None:
        value = header[1]
        schema = getattr(header, "schema", _TEXT if isinstance(value, str) else None)
        found = known.get(id(schema))
        if found is None:
            if len(known) >= _MOST_SCHEMAS:
                known.clear()
            found = known[id(schema)] = (schema, converter.serializer("", schema))
        return found[1](value)

    return convert


def _simple(header: tuple[str, Any]) -> bytes | None:
    text = simple_text(getattr(header, "schema", None), header[1])
    return None if text is None else text.encode()
