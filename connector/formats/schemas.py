"""Connect schemas: the few constructors that are needed, and the schema of each CQL type.

Schemas are plain dicts in the form, and with the order of members, that the Java ``JsonConverter`` writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, assert_never

from connector.formats.record import Schema
from connector.values import ByNative, CqlType, ListType, MapType, NativeType, SetType, TupleType, UserType, VectorType

DATE: Final = "org.apache.kafka.connect.data.Date"
TIMESTAMP: Final = "org.apache.kafka.connect.data.Timestamp"
#: No type of CQL's, but what TimestampConverter may make.
TIME: Final = "org.apache.kafka.connect.data.Time"

_NATIVE: Final[ByNative[tuple[str, str | None]]] = {
    "ascii": ("string", None),
    "bigint": ("int64", None),
    "blob": ("bytes", None),
    "boolean": ("boolean", None),
    "counter": ("int64", None),
    "date": ("int32", DATE),
    "decimal": ("string", None),
    "double": ("double", None),
    "duration": ("string", None),
    "float": ("float", None),
    "inet": ("string", None),
    "int": ("int32", None),
    "smallint": ("int16", None),
    "text": ("string", None),
    "time": ("int64", None),
    "timestamp": ("int64", TIMESTAMP),
    "timeuuid": ("string", None),
    "tinyint": ("int8", None),
    "uuid": ("string", None),
    "varint": ("string", None),
}


def schema(
    type_: str,
    optional: bool = True,
    name: str | None = None,
    version: int | None = None,
    parameters: dict[str, str] | None = None,
    default: Any = None,
    **parts: Any,
) -> Schema:
    """A schema; ``parts`` are ``items`` or ``fields``."""
    made: Schema = {"type": type_, **parts, "optional": optional}
    if name is not None:
        made["name"] = name
    if version is not None:
        made["version"] = version
    if parameters is not None:
        made["parameters"] = parameters
    if default is not None:
        made["default"] = default
    return made


def struct(name: str | None, fields: Iterable[tuple[str, Schema]], optional: bool = True) -> Schema:
    return schema("struct", optional, name, fields=[{**type_, "field": field} for field, type_ in fields])


def array(items: Schema, optional: bool = True) -> Schema:
    return schema("array", optional, items=items)


def required(type_: Schema) -> Schema:
    """The same schema, not optional."""
    return {**type_, "optional": False}


def schema_of(type_: CqlType, base: str) -> Schema:
    """The schema of a CQL type, always optional; names of nested structs begin with ``base``."""
    prefix = f"{base}." if base else ""
    if isinstance(type_, NativeType):
        primitive, logical = _NATIVE[type_.name]
        return schema(primitive, name=logical, version=1 if logical else None)
    if isinstance(type_, ListType | SetType | VectorType):
        return array(schema_of(type_.element, base))
    if isinstance(type_, MapType):
        name = f"{prefix}MapEntry_{type_token(type_.key)}_{type_token(type_.value)}"
        entry = [("key", schema_of(type_.key, base)), ("value", schema_of(type_.value, base))]
        return array(struct(name, entry, optional=False))
    if isinstance(type_, TupleType):
        name = f"{prefix}{type_token(type_)}"
        return struct(name, ((f"field_{at}", schema_of(part, base)) for at, part in enumerate(type_.elements)))
    if isinstance(type_, UserType):
        name = f"{prefix}{type_token(type_)}"
        return struct(name, ((field, schema_of(part, base)) for field, part in type_.fields))
    assert_never(type_)


def type_token(type_: CqlType) -> str:
    """How the Java connector spells a type inside a schema's name: by the Java driver's names at protocol v4."""
    if isinstance(type_, NativeType):
        return "VARCHAR" if type_.name == "text" else type_.name.upper()
    if isinstance(type_, ListType):
        return f"List_{type_token(type_.element)}"
    if isinstance(type_, SetType):
        return f"Set_{type_token(type_.element)}"
    if isinstance(type_, MapType):
        return f"Map_{type_token(type_.key)}_{type_token(type_.value)}"
    if isinstance(type_, TupleType):
        return "_".join(("Tuple", *(type_token(element) for element in type_.elements)))
    if isinstance(type_, UserType):
        return f"UDT_{type_.name.replace('.', '_').replace('-', '_')}"
    if isinstance(type_, VectorType):
        return f"Vector_{type_token(type_.element)}_{type_.dimensions}"
    assert_never(type_)


STRING: Final = schema("string")
INT64: Final = schema("int64")
TRANSACTION: Final = struct(
    "event.block",
    [
        ("id", schema("string", False)),
        ("total_order", schema("int64", False)),
        ("data_collection_order", schema("int64", False)),
    ],
)
# Connect writes the version behind the name.
TRANSACTION["version"] = 1
SNAPSHOT: Final = schema(
    "string",
    name="io.debezium.data.Enum",
    version=1,
    parameters={"allowed": "true,last,false,incremental"},
    default="false",
)


def source_schema(metadata: bool) -> Schema:
    """The ``source`` block; ``metadata`` appends what the log row says of itself."""
    fields = [
        ("version", required(STRING)),
        ("connector", required(STRING)),
        ("name", required(STRING)),
        ("ts_ms", required(INT64)),
        ("snapshot", SNAPSHOT),
        ("db", required(STRING)),
        ("sequence", STRING),
        ("ts_us", INT64),
        ("ts_ns", INT64),
        ("keyspace_name", required(STRING)),
        ("table_name", required(STRING)),
    ]
    if metadata:
        fields += [
            ("stream_id", STRING),
            ("time", STRING),
            ("batch_seq_no", schema("int32")),
            ("operation", schema("int8")),
            ("ttl", INT64),
        ]
    return struct("com.scylladb.cdc.debezium.connector", fields, optional=False)


def envelope_schema(
    base: str, before: Schema, after: Schema, metadata: bool, key: tuple[str, Schema] | None = None
) -> Schema:
    """The value of a data record; ``key`` is the name and schema of the primary key inside it, if it stands there."""
    fields = [("source", source_schema(metadata)), ("before", before), ("after", after)]
    if key is not None:
        fields.append(key)
    fields += [
        ("op", STRING),
        ("ts_ms", INT64),
        ("transaction", TRANSACTION),
        ("ts_us", INT64),
        ("ts_ns", INT64),
    ]
    return struct(f"{base}.Envelope", fields, optional=False)


def without_default(schema: Schema) -> Callable[[Any], Any] | None:
    """What takes the default out of the one field that has one, `source.snapshot`, in values of a schema, wherever
    transforms have put the source; None where it is not there.

    The Java connector leaves the field unset where a record is of no snapshot, and its converters fill in the default,
    unless they are told not to. Here values have it from the start.
    """
    if _has_snapshot(schema):
        return _unset
    inner = {
        field["field"]: unset for field in schema.get("fields", ()) if (unset := without_default(field)) is not None
    }
    if not inner:
        return None
    return lambda value: (
        value if value is None else {**value, **{name: unset(value[name]) for name, unset in inner.items()}}
    )


def _has_snapshot(schema: Schema) -> bool:
    return any(field["field"] == "snapshot" and "default" in field for field in schema.get("fields", ()))


def _unset(source: Any) -> Any:
    return {**source, "snapshot": None} if source and source["snapshot"] == SNAPSHOT["default"] else source
