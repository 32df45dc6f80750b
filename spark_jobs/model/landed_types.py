"""CQL types as Spark types, and the expressions that compare their values as ScyllaDB does.

In: a ``CqlType`` and the SQL of a value as the records have it. Out: the type the value is stored with, the type and
expression a reader sees, the tie key (rule of equal times), and the order key of clustering columns and elements.
Stored values hold no maps, since Spark cannot compare maps: a map is stored as an array of its entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, assert_never

from connector.values import ByNative, CqlType, ListType, MapType, NativeType, SetType, TupleType, UserType, VectorType
from spark_jobs.model.names import literal, physical, quoted, struct_of


class _Landed(NamedTuple):
    """How a native type is stored, and what makes its tie key and its order key of the stored value.

    ``made``: Python, at decode, since SQL cannot; the key is stored as well. ``value``: the value is its own key.
    """

    stored: str
    tie: Literal["made", "value", "signed", "floating"]
    order: Literal["made", "value", "floating", "timeuuid", "uuid"]


_NATIVE: ByNative[_Landed] = {
    "ascii": _Landed("string", "value", "value"),
    "bigint": _Landed("bigint", "signed", "value"),
    "blob": _Landed("binary", "value", "value"),
    "boolean": _Landed("boolean", "value", "value"),
    "counter": _Landed("bigint", "signed", "value"),
    "date": _Landed("int", "value", "value"),
    "decimal": _Landed("string", "made", "made"),
    "double": _Landed("double", "floating", "floating"),
    "duration": _Landed("string", "made", "made"),
    "float": _Landed("float", "floating", "floating"),
    "inet": _Landed("string", "made", "made"),
    "int": _Landed("int", "signed", "value"),
    "smallint": _Landed("smallint", "signed", "value"),
    "text": _Landed("string", "value", "value"),
    "time": _Landed("bigint", "value", "value"),
    "timestamp": _Landed("bigint", "signed", "value"),
    "timeuuid": _Landed("string", "value", "timeuuid"),
    "tinyint": _Landed("tinyint", "signed", "value"),
    "uuid": _Landed("string", "value", "uuid"),
    "varint": _Landed("string", "made", "made"),
}
# Not every table format has integers of less than 32 bits.
_SHORT = frozenset({"tinyint", "smallint"})

# TIMESTAMP counts microseconds in 64 bits; a CQL timestamp counts milliseconds in 64 bits.
GREATEST_MILLIS = 9_223_372_036_854_775
FLIP_32 = 0x80808080


def fields_of(type_: TupleType | UserType) -> list[tuple[str, CqlType]]:
    """The fields of a tuple or user type with the names that records give them."""
    if isinstance(type_, UserType):
        return list(type_.fields)
    return [(f"field_{index}", element) for index, element in enumerate(type_.elements)]


def stored_fields(type_: TupleType | UserType) -> list[tuple[str, CqlType]]:
    """The fields with the names that they have in changelog and state: table formats refuse some characters."""
    return [(physical(name), kind) for name, kind in fields_of(type_)]


def stored_type(type_: CqlType) -> str:
    """The Spark type of a value in changelog and state."""
    return _spark_type(type_, stored_fields)


def recorded_type(type_: CqlType) -> str:
    """The Spark type that parses a value of a record: fields have the names that records give them."""
    return _spark_type(type_, fields_of)


def as_stored(type_: CqlType, sql: str) -> str:
    """A record's value with the stored type's names of fields."""
    stored = stored_type(type_)
    return sql if stored == recorded_type(type_) else f"CAST({sql} AS {stored})"


def as_recorded(type_: CqlType, sql: str) -> str:
    """A stored value with the names of fields that records have."""
    recorded = recorded_type(type_)
    return sql if recorded == stored_type(type_) else f"CAST({sql} AS {recorded})"


def _spark_type(type_: CqlType, fields: Callable[[TupleType | UserType], list[tuple[str, CqlType]]]) -> str:
    if isinstance(type_, NativeType):
        return _NATIVE[type_.name].stored
    if isinstance(type_, ListType | SetType | VectorType):
        return f"array<{_spark_type(type_.element, fields)}>"
    if isinstance(type_, MapType):
        return f"array<struct<key:{_spark_type(type_.key, fields)},value:{_spark_type(type_.value, fields)}>>"
    if isinstance(type_, TupleType | UserType):
        inner = ",".join(f"{quoted(name)}:{_spark_type(kind, fields)}" for name, kind in fields(type_))
        return f"struct<{inner}>"
    assert_never(type_)


def has_map(type_: CqlType) -> bool:
    if isinstance(type_, NativeType):
        return False
    if isinstance(type_, MapType):
        return True
    if isinstance(type_, ListType | SetType | VectorType):
        return has_map(type_.element)
    if isinstance(type_, TupleType | UserType):
        return any(has_map(field) for _, field in fields_of(type_))
    assert_never(type_)


def has_fields(type_: CqlType) -> bool:
    """Whether a tuple or user type is in it."""
    if isinstance(type_, NativeType):
        return False
    if isinstance(type_, MapType):
        return has_fields(type_.key) or has_fields(type_.value)
    if isinstance(type_, ListType | SetType | VectorType):
        return has_fields(type_.element)
    if isinstance(type_, TupleType | UserType):
        return True
    assert_never(type_)


def user_types_in(type_: CqlType) -> Iterator[UserType]:
    """The user types in it, also those in others."""
    if isinstance(type_, ListType | SetType | VectorType):
        yield from user_types_in(type_.element)
    elif isinstance(type_, MapType):
        yield from user_types_in(type_.key)
        yield from user_types_in(type_.value)
    elif isinstance(type_, TupleType | UserType):
        if isinstance(type_, UserType):
            yield type_
        for _, field in fields_of(type_):
            yield from user_types_in(field)
    else:
        assert isinstance(type_, NativeType)


def present(type_: CqlType, sql: str, as_type: str | None = None, depth: int = 0) -> str:
    """A stored value as a reader sees it. ``as_type`` is what the user declared for the column."""
    if isinstance(type_, NativeType):
        if as_type is not None:
            return f"CAST({sql} AS {as_type})"
        if type_.name == "date":
            return f"date_from_unix_date({sql})"
        if type_.name == "timestamp":
            return f"timestamp_millis({sql})"
        if type_.name in _SHORT:
            return f"CAST({sql} AS {_NATIVE[type_.name].stored})"
        return sql
    name = f"x{depth}"
    if isinstance(type_, ListType | SetType | VectorType):
        inner = present(type_.element, name, as_type, depth + 1)
        return sql if inner == name else f"transform({sql}, {name} -> {inner})"
    if isinstance(type_, MapType):
        return present_entries(type_, sql, f"{name}.key", f"{name}.value", name, as_type, depth + 1)
    if isinstance(type_, TupleType | UserType):
        plain = [(field, f"{sql}.{quoted(field)}") for field, _ in stored_fields(type_)]
        shown = [
            (field, present(kind, f"{sql}.{quoted(stored)}", as_type, depth + 1))
            for (field, _), (stored, kind) in zip(fields_of(type_), stored_fields(type_))
        ]
        if plain == shown:
            return sql
        return f"CASE WHEN {sql} IS NOT NULL THEN {struct_of(shown)} END"
    assert_never(type_)


def present_entries(
    type_: MapType, entries: str, key: str, value: str, name: str, as_type: str | None, depth: int
) -> str:
    """An array of entries as a map; as an array of structs where the key holds a map, which Spark refuses."""
    shown_key = present(type_.key, key, as_type, depth)
    shown = struct_of([("key", shown_key), ("value", present(type_.value, value, as_type, depth))])
    array = f"transform({entries}, {name} -> {shown})"
    return array if has_map(type_.key) else f"map_from_entries({array})"


def without_maps(type_: CqlType, shown: str, depth: int = 0) -> str:
    """What a reader sees, with arrays of entries where it has maps: as JSON, a map's keys that are neither text nor
    numbers (bytes, tuples) are told by where they are in memory."""
    if isinstance(type_, NativeType) or not has_map(type_):
        return shown
    name = f"x{depth}"
    if isinstance(type_, ListType | SetType | VectorType):
        return f"transform({shown}, {name} -> {without_maps(type_.element, name, depth + 1)})"
    if isinstance(type_, MapType):
        entries = shown if has_map(type_.key) else f"map_entries({shown})"
        parts = [(part, without_maps(kind, f"{name}.{part}", depth + 1)) for part, kind in _parts(type_)]
        return f"transform({entries}, {name} -> {struct_of(parts)})"
    if isinstance(type_, TupleType | UserType):
        fields = [
            (field, without_maps(kind, f"{shown}.{quoted(field)}", depth + 1)) for field, kind in fields_of(type_)
        ]
        return f"CASE WHEN {shown} IS NOT NULL THEN {struct_of(fields)} END"
    assert_never(type_)


def _parts(type_: MapType) -> tuple[tuple[str, CqlType], tuple[str, CqlType]]:
    return ("key", type_.key), ("value", type_.value)


def has_timestamp(type_: CqlType) -> bool:
    if isinstance(type_, NativeType):
        return type_.name == "timestamp"
    if isinstance(type_, ListType | SetType | VectorType):
        return has_timestamp(type_.element)
    if isinstance(type_, MapType):
        return has_timestamp(type_.key) or has_timestamp(type_.value)
    if isinstance(type_, TupleType | UserType):
        return any(has_timestamp(field) for _, field in fields_of(type_))
    assert_never(type_)


def out_of_range(type_: CqlType, sql: str, depth: int = 0) -> str | None:
    """A condition that finds values which the reader's type cannot hold, or None where there are none."""
    if not has_timestamp(type_):
        return None
    if isinstance(type_, NativeType):
        return f"({sql} > {GREATEST_MILLIS}L OR {sql} < -{GREATEST_MILLIS}L)"
    name = f"x{depth}"
    if isinstance(type_, ListType | SetType | VectorType):
        return f"exists({sql}, {name} -> {out_of_range(type_.element, name, depth + 1)})"
    if isinstance(type_, MapType):
        found = [out_of_range(kind, f"{name}.{part}", depth + 1) for part, kind in _parts(type_)]
        return f"exists({sql}, {name} -> {' OR '.join(text for text in found if text)})"
    if isinstance(type_, TupleType | UserType):
        found = [out_of_range(kind, f"{sql}.{quoted(field)}", depth + 1) for field, kind in fields_of(type_)]
        return "(" + " OR ".join(text for text in found if text) + ")"
    assert_never(type_)


def tie_is_stored(type_: CqlType) -> bool:
    """Whether the tie key has to be made at decode and stored: SQL cannot serialise these types."""
    return not isinstance(type_, NativeType) or _NATIVE[type_.name].tie == "made"


def is_minus_zero(value: str) -> str:
    """Spark takes it for 0.0, but writes it as another text; only of zeros is one made, which is dear."""
    return f"({value} = 0 AND CAST({value} AS string) = '-0.0')"


def tie_fields(type_: CqlType, value: str, stored: str | None) -> list[tuple[str, str]]:
    """The struct fields that stand before the value, so that structs compare like serialised bytes.

    Two's complement read as unsigned puts negative numbers above the others, each half in its own order; IEEE
    bytes put negative ones above and, among those, the greater magnitude first.
    """
    if tie_is_stored(type_):
        assert stored is not None
        return [("x", stored)]
    assert isinstance(type_, NativeType)
    match _NATIVE[type_.name].tie:
        case "signed":
            return [("n", f"{value} < 0")]
        case "floating":
            return [("n", f"({value} < 0 OR {is_minus_zero(value)})"), ("m", f"abs({value})")]
        case "value" | "made":
            return []


def order_is_stored(type_: CqlType) -> bool:
    """Whether the order key has to be made at decode and stored."""
    return not isinstance(type_, NativeType) or _NATIVE[type_.name].order == "made"


def order_is_value(type_: CqlType) -> bool:
    """Whether Spark orders the stored values as ScyllaDB's comparator does."""
    return isinstance(type_, NativeType) and _NATIVE[type_.name].order == "value"


def order_key(type_: CqlType, value: str, stored: str | None) -> str:
    """An expression that sorts, and is equal, exactly as ScyllaDB's comparator sees the values."""
    if order_is_stored(type_):
        assert stored is not None
        return stored
    assert isinstance(type_, NativeType)
    match _NATIVE[type_.name].order:
        case "floating":
            return struct_of([("v", value), ("p", f"NOT {is_minus_zero(value)}")])
        case "timeuuid":
            return _timeuuid_key(value)
        case "uuid":
            version = f"substr({value}, 15, 1)"
            by_time = f"concat('1', {_uuid_time(value)}, substr({value}, 20, 4), substr({value}, 25, 12))"
            by_bytes = f"concat({version}, replace({value}, '-', ''))"
            return f"CASE WHEN {version} = '1' THEN {by_time} ELSE {by_bytes} END"
        case "value" | "made":
            return value


def order_type(type_: CqlType) -> str:
    """The Spark type of ``order_key``."""
    if order_is_stored(type_):
        return "binary"
    assert isinstance(type_, NativeType)
    if _NATIVE[type_.name].order == "floating":
        return f"struct<v:{stored_type(type_)},p:boolean>"
    return stored_type(type_)


def _uuid_time(value: str) -> str:
    return f"concat(substr({value}, 16, 3), substr({value}, 10, 4), substr({value}, 1, 8))"


def _timeuuid_key(value: str) -> str:
    """Time first, then the 8 low bytes as signed ones: each byte's sign is flipped, four at a time."""
    halves = [f"concat(substr({value}, 20, 4), substr({value}, 25, 4))", f"substr({value}, 29, 8)"]
    flipped = [f"lpad(hex(CAST(conv({half}, 16, 10) AS bigint) ^ {FLIP_32}L), 8, '0')" for half in halves]
    return f"concat({_uuid_time(value)}, {flipped[0]}, {flipped[1]})"


def text_value(type_: CqlType, sql: str) -> str:
    """A stored value from the text it has inside an untyped array of a JSON record (range bounds)."""
    if isinstance(type_, NativeType):
        if type_.name == "blob":
            return f"try_to_binary({sql}, 'base64')"
        stored = _NATIVE[type_.name].stored
        return sql if stored == "string" else f"try_cast({sql} AS {stored})"
    wrapped = f"concat('{{\"v\":', {sql}, '}}')"
    return f"from_json({wrapped}, {literal('v ' + recorded_type(type_))}).v"


_WIDER = {
    "tinyint": ("smallint", "int", "bigint", "varint"),
    "smallint": ("int", "bigint", "varint"),
    "int": ("bigint", "varint"),
    "bigint": ("varint",),
    "ascii": ("text",),
    "float": ("double",),
    "timeuuid": ("uuid",),
}


def adapted(old: CqlType, new: CqlType, sql: str, depth: int = 0, tie: str | None = None) -> str | None:
    """A value stored with an older type of its column as the current type has it; None where that is impossible.

    ``tie`` is the value's serialisation where that is stored: all that a blob is. Fields of user types are found by
    their place: CQL renames them, and adds new ones at the end.
    """
    if old == new or stored_type(old) == stored_type(new):
        return sql
    name = f"y{depth}"
    if isinstance(new, NativeType) and new.name == "blob":
        return tie or (_as_blob(old.name, sql) if isinstance(old, NativeType) else None)
    if isinstance(old, NativeType) and isinstance(new, NativeType):
        wider = new.name in _WIDER.get(old.name, ())
        return f"CAST({sql} AS {stored_type(new)})" if wider else None
    if isinstance(old, ListType | SetType | VectorType) and isinstance(new, ListType | SetType | VectorType):
        inner = adapted(old.element, new.element, name, depth + 1)
        return None if inner is None else f"transform({sql}, {name} -> {inner})"
    if isinstance(old, MapType) and isinstance(new, MapType):
        key = adapted(old.key, new.key, f"{name}.key", depth + 1)
        value = adapted(old.value, new.value, f"{name}.value", depth + 1)
        if key is None or value is None:
            return None
        return f"transform({sql}, {name} -> {struct_of([('key', key), ('value', value)])})"
    if isinstance(old, TupleType | UserType) and isinstance(new, TupleType | UserType):
        before, after = stored_fields(old), stored_fields(new)
        parts = [(field, f"CAST(NULL AS {stored_type(kind)})") for field, kind in after]
        for at, ((was, old_kind), (field, kind)) in enumerate(zip(before, after)):
            part = adapted(old_kind, kind, f"{sql}.{quoted(was)}", depth)
            if part is None:
                return None
            parts[at] = (field, part)
        return f"CASE WHEN {sql} IS NOT NULL THEN {struct_of(parts)} END"
    return None


_BYTES_OF = {"tinyint": 2, "smallint": 4, "int": 8, "bigint": 16, "counter": 16, "timestamp": 16, "time": 16}
"""Hexadecimal digits of the serialisation, of numbers in two's complement."""


def _as_blob(name: str, sql: str) -> str | None:
    """The serialisation of a stored value, where SQL can write it."""
    if name in _BYTES_OF:
        return f"unhex(right(lpad(hex(CAST({sql} AS bigint)), 16, '0'), {_BYTES_OF[name]}))"
    if name in ("ascii", "text"):
        return f"CAST({sql} AS binary)"
    if name in ("uuid", "timeuuid"):
        return f"unhex(replace({sql}, '-', ''))"
    if name == "boolean":
        return f"CASE WHEN {sql} THEN X'01' WHEN NOT {sql} THEN X'00' END"
    if name == "date":
        return f"unhex(lpad(hex(CAST({sql} AS bigint) + 2147483648), 8, '0'))"
    return None
