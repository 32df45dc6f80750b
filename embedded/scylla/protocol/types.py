"""How CQL types are named on the wire: the [option] that describes a column.

In: a `CqlType`. Out: bytes, remembered per type because every result repeats them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from connector.values import ByNative, CqlType, ListType, MapType, NativeType, SetType, TupleType, UserType, VectorType
from embedded.scylla.protocol.primitives import SHORT, encode_string

_CUSTOM: Final = 0x0000
_LIST: Final = 0x0020
_MAP: Final = 0x0021
_SET: Final = 0x0022
_UDT: Final = 0x0030
_TUPLE: Final = 0x0031

_NATIVE: Final[ByNative[int]] = {
    "ascii": 0x0001,
    "bigint": 0x0002,
    "blob": 0x0003,
    "boolean": 0x0004,
    "counter": 0x0005,
    "decimal": 0x0006,
    "double": 0x0007,
    "float": 0x0008,
    "int": 0x0009,
    "timestamp": 0x000B,
    "uuid": 0x000C,
    "text": 0x000D,
    "varint": 0x000E,
    "timeuuid": 0x000F,
    "inet": 0x0010,
    "date": 0x0011,
    "time": 0x0012,
    "smallint": 0x0013,
    "tinyint": 0x0014,
    "duration": 0x0015,
}

_MARSHAL: Final[ByNative[str]] = {
    "ascii": "AsciiType",
    "bigint": "LongType",
    "blob": "BytesType",
    "boolean": "BooleanType",
    "counter": "CounterColumnType",
    "date": "SimpleDateType",
    "decimal": "DecimalType",
    "double": "DoubleType",
    "duration": "DurationType",
    "float": "FloatType",
    "inet": "InetAddressType",
    "int": "Int32Type",
    "smallint": "ShortType",
    "text": "UTF8Type",
    "time": "TimeType",
    "timestamp": "TimestampType",
    "timeuuid": "TimeUUIDType",
    "tinyint": "ByteType",
    "uuid": "UUIDType",
    "varint": "IntegerType",
}
_PACKAGE: Final = "org.apache.cassandra.db.marshal."


def marshal_class(cql_type: CqlType) -> str:
    """The Java class name that stands for a type where the protocol has no code for it."""
    if isinstance(cql_type, NativeType):
        return _PACKAGE + _MARSHAL[cql_type.name]
    if isinstance(cql_type, VectorType):
        return f"{_PACKAGE}VectorType({marshal_class(cql_type.element)}, {cql_type.dimensions})"
    if isinstance(cql_type, TupleType):
        return f"{_PACKAGE}TupleType({','.join(marshal_class(element) for element in cql_type.elements)})"
    if isinstance(cql_type, UserType):
        fields = ",".join(f"{name.encode().hex()}:{marshal_class(field)}" for name, field in cql_type.fields)
        return f"{_PACKAGE}UserType({cql_type.keyspace},{cql_type.name.encode().hex()},{fields})"
    if isinstance(cql_type, MapType):
        inner = f"MapType({marshal_class(cql_type.key)},{marshal_class(cql_type.value)})"
    elif isinstance(cql_type, SetType):
        inner = f"SetType({marshal_class(cql_type.element)})"
    elif isinstance(cql_type, ListType):
        inner = f"ListType({marshal_class(cql_type.element)})"
    else:
        raise TypeError(f"no marshal class for {cql_type!r}")
    inner = _PACKAGE + inner
    return f"{_PACKAGE}FrozenType({inner})" if cql_type.frozen else inner


@lru_cache(maxsize=4096)
def encode_type(cql_type: CqlType) -> bytes:
    """The [option] of a type. Whether something is frozen is not said on the wire."""
    if isinstance(cql_type, NativeType):
        return SHORT.pack(_NATIVE[cql_type.name])
    if isinstance(cql_type, ListType):
        return SHORT.pack(_LIST) + encode_type(cql_type.element)
    if isinstance(cql_type, SetType):
        return SHORT.pack(_SET) + encode_type(cql_type.element)
    if isinstance(cql_type, MapType):
        return SHORT.pack(_MAP) + encode_type(cql_type.key) + encode_type(cql_type.value)
    if isinstance(cql_type, TupleType):
        parts = [SHORT.pack(_TUPLE), SHORT.pack(len(cql_type.elements))]
        return b"".join(parts + [encode_type(element) for element in cql_type.elements])
    if isinstance(cql_type, UserType):
        parts = [
            SHORT.pack(_UDT),
            encode_string(cql_type.keyspace),
            encode_string(cql_type.name),
            SHORT.pack(len(cql_type.fields)),
        ]
        return b"".join(parts + [encode_string(name) + encode_type(field) for name, field in cql_type.fields])
    return SHORT.pack(_CUSTOM) + encode_string(marshal_class(cql_type))
