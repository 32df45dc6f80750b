"""Raw bytes of values: round trips over all types, agreement with the Python driver, malformed bytes."""

from __future__ import annotations

import ipaddress
import math
import uuid
from decimal import Decimal
from typing import Any

import pytest
from cassandra import cqltypes
from cassandra.util import Duration as DriverDuration
from hypothesis import given, settings
from hypothesis import strategies as st

from connector.values.binary import decode, encode, fixed_size, split_cells
from connector.values.scalars import Duration, decode_vint, encode_vint
from connector.values.types import (
    CqlType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
    native,
    parse_type,
)
from tests.values.strategies import NATIVE_VALUES, typed_values


def same(left: Any, right: Any) -> bool:
    """Equality under which NaN equals itself and −0.0 is not 0.0."""
    if isinstance(left, float) and isinstance(right, float):
        return repr(left) == repr(right)
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return left.as_tuple() == right.as_tuple()
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    return bool(left == right)


def normal(value: Any) -> Any:
    """Decimals without a negative zero, which CQL does not know."""
    if isinstance(value, Decimal) and value.is_zero():
        return value.copy_abs()
    if isinstance(value, list):
        return [normal(element) for element in value]
    if isinstance(value, tuple) and not isinstance(value, Duration):
        return tuple(normal(element) for element in value)
    return value


@settings(max_examples=150, deadline=None)
@given(typed_values)
def test_values_survive_the_way_there_and_back(typed: tuple[CqlType, Any]) -> None:
    type_, value = typed
    assert same(decode(type_, encode(type_, value)), normal(value)), type_.cql()


DRIVER_TYPES = {
    "ascii": cqltypes.AsciiType,
    "bigint": cqltypes.LongType,
    "blob": cqltypes.BytesType,
    "boolean": cqltypes.BooleanType,
    "decimal": cqltypes.DecimalType,
    "double": cqltypes.DoubleType,
    "float": cqltypes.FloatType,
    "int": cqltypes.Int32Type,
    "smallint": cqltypes.ShortType,
    "text": cqltypes.UTF8Type,
    "timeuuid": cqltypes.TimeUUIDType,
    "tinyint": cqltypes.ByteType,
    "uuid": cqltypes.UUIDType,
    "varint": cqltypes.IntegerType,
}


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(DRIVER_TYPES)).flatmap(lambda name: st.tuples(st.just(name), NATIVE_VALUES[name])))
def test_the_driver_writes_the_same_bytes(named: tuple[str, Any]) -> None:
    name, value = named
    assert encode(native(name), value) == DRIVER_TYPES[name].serialize(value, 4)


@given(NATIVE_VALUES["duration"])
def test_the_driver_writes_the_same_durations(value: Duration) -> None:
    assert encode(native("duration"), value) == cqltypes.DurationType.serialize(DriverDuration(*value), 4)


@pytest.mark.parametrize(
    ("spelled", "value", "expected"),
    [
        ("int", -1, "ffffffff"),
        ("smallint", 258, "0102"),
        ("date", 19884, "80004dac"),
        ("date", -(2**31), "00000000"),
        ("time", 1, "0000000000000001"),
        ("timestamp", 1718022896789, "000001900224fc95"),
        ("boolean", True, "01"),
        ("varint", 127, "7f"),
        ("varint", 128, "0080"),
        ("varint", -128, "80"),
        ("varint", -129, "ff7f"),
        ("varint", 0, "00"),
        ("decimal", Decimal("12345.67"), "0000000212d687"),
        ("decimal", Decimal("1E+3"), "fffffffd01"),
        ("inet", ipaddress.ip_address("127.0.0.1"), "7f000001"),
        ("inet", ipaddress.ip_address("::ffff:1.2.3.4"), "00000000000000000000ffff01020304"),
        ("duration", Duration(-1, -2, -3), "010305"),
        ("uuid", uuid.UUID(int=1), "00000000000000000000000000000001"),
        ("list<int>", [1], "000000010000000400000001"),
        ("map<text, int>", [("a", 1)], "0000000100000001610000000400000001"),
        ("frozen<tuple<int, text>>", (1, None), "0000000400000001ffffffff"),
        ("vector<float, 2>", [1.0, 2.0], "3f80000040000000"),
        ("vector<text, 2>", ["a", ""], "016100"),
        ("vector<smallint, 2>", [1, 2], "020001020002"),
        ("vector<vector<int, 1>, 2>", [[1], [2]], "0000000100000002"),
    ],
)
def test_known_bytes(spelled: str, value: Any, expected: str) -> None:
    type_ = parse_type(spelled)
    assert encode(type_, value).hex() == expected
    assert decode(type_, bytes.fromhex(expected)) == value


@given(st.integers(0, 2**64 - 1))
def test_vints(number: int) -> None:
    raw = encode_vint(number)
    assert decode_vint(b"x" + raw, 1) == (number, 1 + len(raw))
    assert len(raw) == max(1, min(9, math.ceil(number.bit_length() / 7)))


FIXED = ["tinyint", "smallint", "int", "bigint", "float", "double", "timestamp", "time", "date", "uuid", "timeuuid"]


@pytest.mark.parametrize("name", [*FIXED, "boolean", "inet", "counter"])
def test_bytes_of_a_wrong_length_are_refused(name: str) -> None:
    for length in (3, 5, 9, 17):
        with pytest.raises(ValueError, match=r"not a CQL|bytes"):
            decode(native(name), b"\0" * length)


@pytest.mark.parametrize("name", [*FIXED, "boolean", "inet", "varint", "decimal", "duration"])
def test_a_zero_length_cell_is_null(name: str) -> None:
    assert decode(native(name), b"") is None
    for type_ in (ListType(native(name)), MapType(native(name), native(name)), TupleType((native(name),))):
        assert decode(type_, b"") is None


@pytest.mark.parametrize(("name", "value"), [("text", ""), ("ascii", ""), ("blob", b"")])
def test_a_zero_length_text_is_empty(name: str, value: Any) -> None:
    assert decode(native(name), b"") == value


@pytest.mark.parametrize(
    ("spelled", "raw"),
    [
        ("text", "ff"),
        ("ascii", "c3a9"),
        ("decimal", "00000002"),
        ("duration", "0103"),
        ("duration", "01030500"),
        ("duration", "f80100000000"),
        ("list<int>", "00000001"),
        ("list<int>", "0000000100000004000000"),
        ("list<int>", "00000001000000040000000100"),
        ("list<int>", "ffffffff"),
        ("list<int>", "7fffffff"),
        ("list<int>", "0001"),
        ("map<int, int>", "000000010000000400000001"),
        ("frozen<tuple<int>>", "0000000400000001ffffffff"),
        ("frozen<tuple<int, int>>", "000000040000000100"),
        ("frozen<tuple<int>>", "00000005000000"),
        ("vector<int, 2>", "00000001"),
        ("vector<text, 2>", "0161"),
        ("vector<text, 1>", "026161ff"),
        ("vector<float, 2>", "3f800000"),
    ],
)
def test_malformed_bytes_are_refused(spelled: str, raw: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        decode(parse_type(spelled), bytes.fromhex(raw))


@settings(max_examples=150, deadline=None)
@given(typed_values, st.data())
def test_damaged_bytes_decode_or_raise_value_errors(typed: tuple[CqlType, Any], data: st.DataObject) -> None:
    type_, value = typed
    raw = bytearray(encode(type_, value))
    if raw:
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)))
    for damaged in (bytes(raw), bytes(raw[:cut]), bytes(raw) + b"\0"):
        try:
            decode(type_, damaged)
        except ValueError:
            pass


@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        ("int", 2**31),
        ("int", "1"),
        ("tinyint", 128),
        ("text", 1),
        ("ascii", "é"),
        ("date", 2**31),
        ("time", -1),
        ("time", 86_400_000_000_000),
        ("decimal", Decimal("NaN")),
        ("decimal", 1.5),
        ("varint", "1"),
        ("uuid", "x"),
        ("inet", "1.2.3.4"),
        ("blob", "x"),
        ("duration", Duration(1, -1, 0)),
        ("duration", Duration(2**31, 0, 0)),
        ("list<int>", [None]),
        ("map<int, int>", [(1, None)]),
        ("frozen<tuple<int>>", (1, 2)),
        ("vector<int, 2>", [1]),
    ],
)
def test_what_a_type_cannot_hold_is_refused(spelled: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        encode(parse_type(spelled), value)


def test_short_user_values_are_padded() -> None:
    older = UserType("ks", "u", (("a", native("int")),))
    newer = UserType("ks", "u", (("a", native("int")), ("b", native("text"))))
    assert decode(newer, encode(older, (7,))) == (7, None)


def test_huge_numbers() -> None:
    huge = 10**5000 + 1
    assert decode(native("varint"), encode(native("varint"), huge)) == huge
    assert decode(native("decimal"), encode(native("decimal"), Decimal(huge))) == huge


def test_fixed_sizes_are_those_the_server_counts_as_fixed() -> None:
    fixed = {name for name in NATIVE_VALUES if fixed_size(NativeType(name)) is not None}
    assert fixed == {"boolean", "int", "bigint", "float", "double", "timestamp", "uuid", "timeuuid"}
    assert fixed_size(VectorType(native("int"), 3)) == 12
    assert fixed_size(SetType(native("int"))) is None


def test_split_cells_keeps_nulls() -> None:
    assert split_cells(bytes.fromhex("00000002ffffffff0000000161")) == [None, b"a"]
