"""The converters of Kafka Connect for single values: texts, numbers, booleans and bytes.

In: values with their Connect schemas. Out: bytes as the Java classes of these names write them; ``TypeError`` where
those refuse a value. Keys and values are structs until a transform makes something else of them.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from connector.config import ConverterConfig
from connector.formats.converter import Serialize
from connector.formats.headers import java_text, java_timestamp
from connector.formats.record import Schema
from connector.formats.schemas import DATE, TIME, TIMESTAMP, without_default

#: By kind of converter: the one type that it takes, and how it is written.
_PACKED: Final[dict[str, tuple[str, Callable[[Any], bytes]]]] = {
    "integer": ("int32", Struct(">i").pack),
    "long": ("int64", Struct(">q").pack),
    "short": ("int16", Struct(">h").pack),
    "float": ("float", Struct(">f").pack),
    "double": ("double", Struct(">d").pack),
    "boolean": ("boolean", Struct(">?").pack),
    "bytes": ("bytes", bytes),
}
_DAY_MS: Final = 86_400_000
#: What a value without a schema is, as JsonConverter would have read it.
_OF_PYTHON: Final = {bool: "boolean", int: "int64", float: "double", str: "string", bytes: "bytes"}


class StringConverter:
    """Any value as Java's ``toString`` gives it: for texts and numbers what one expects."""

    def __init__(self, config: ConverterConfig) -> None:
        self._encoding = config.encoding

    def serializer(self, topic: str, schema: Schema | None) -> Serialize:
        """A callable for values of one schema."""
        encoding = self._encoding
        # Java's toString shows what a struct holds, and no default in place of what it does not.
        without = without_default(schema) if schema is not None else None
        shown = without or (lambda value: value)
        return lambda value: None if value is None else to_string(schema, shown(value)).encode(encoding, "replace")


class PackedConverter:
    """Makes serialisers that write one type, and refuse every other."""

    def __init__(self, config: ConverterConfig) -> None:
        self._kind = config.kind
        self._type, self._pack = _PACKED[config.kind]

    def serializer(self, topic: str, schema: Schema | None) -> Serialize:
        """A callable for values of one schema."""
        expected, pack = self._type, self._pack
        named = f"{self._kind.capitalize()}Converter" if self._kind != "bytes" else "ByteArrayConverter"

        def serialize(value: Any) -> bytes | None:
            found = schema["type"] if schema is not None else _OF_PYTHON.get(type(value), "struct")
            if schema is not None and schema.get("name") in (DATE, TIMESTAMP, TIME):
                found = str(schema["name"])
            # Java's converters of bytes and booleans look at the schema even of null.
            if found != expected and (value is not None or (schema is not None and expected in ("bytes", "boolean"))):
                raise TypeError(
                    f"the {named} takes {expected}, and this is {found}: take a field out of it by ExtractField"
                )
            return None if value is None else pack(value)

        return serialize


def to_string(schema: Schema | None, value: Any) -> str:
    """``String.valueOf`` of a Connect value; dates and times as ``java.util.Date`` in UTC."""
    name = schema.get("name") if schema is not None else None
    if value is None or isinstance(value, str):
        return java_text(value) if value is None else value
    if name == DATE:
        return java_timestamp(value * _DAY_MS)
    if name in (TIMESTAMP, TIME):
        return java_timestamp(value)
    kind = schema["type"] if schema is not None else None
    if kind == "struct" and schema is not None:
        present = ((field, value.get(field["field"], field.get("default"))) for field in schema["fields"])
        shown = (f"{field['field']}={to_string(field, part)}" for field, part in present if part is not None)
        return "Struct{" + ",".join(shown) + "}"
    if isinstance(value, dict):
        of_key, of_value = (schema["keys"], schema["values"]) if schema is not None else (None, None)
        entries = (f"{to_string(of_key, key)}={to_string(of_value, part)}" for key, part in value.items())
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, list):
        items = schema["items"] if schema is not None else None
        return "[" + ", ".join(to_string(items, item) for item in value) + "]"
    return java_text(value)
