"""The server's order of values, as observed on a server and as read from its comparators."""

from __future__ import annotations

import random
import uuid
from decimal import Decimal
from itertools import pairwise
from struct import pack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connector.values.binary import encode
from connector.values.ordering import order_key
from connector.values.types import CqlType, native, parse_type
from tests.values.strategies import NATIVE_VALUES, typed_values


def ordered(spelled: str, *cells: bytes) -> None:
    """The cells are in strictly ascending order."""
    key = order_key(parse_type(spelled))
    keys = [key(cell) for cell in cells]
    for lower, higher in pairwise(keys):
        assert lower < higher, (lower, higher)
    shuffled = list(cells)
    random.Random(1).shuffle(shuffled)
    assert sorted(shuffled, key=key) == list(cells)


def test_timeuuids_by_time_then_by_signed_bytes() -> None:
    low = ["8080808080808080", "80ff000000000000", "8000000000000080", "80000000000000ff", "8000000000000000"]
    low += ["800000000000007f", "8100000000000000", "bf7f000000000000", "ffffffffffffffff", "0000000000000000"]
    low += ["7f7f7f7f7f7f7f7f"]
    head = bytes.fromhex("13814000" + "1dd2" + "11b2")
    ordered("timeuuid", *(head + bytes.fromhex(text) for text in low))
    earlier = bytes.fromhex("ffffffff" + "1dd1" + "11b2") + b"\x7f" * 8
    ordered("timeuuid", earlier, head + b"\x80" * 8)


def test_uuids_by_version_first() -> None:
    early = uuid.UUID("ffffffff-0000-1000-0000-000000000000").bytes
    late = uuid.UUID("00000000-0001-1000-8000-000000000000").bytes
    late_higher = uuid.UUID("00000000-0001-1000-f000-000000000000").bytes
    fourth = uuid.UUID("00000000-0000-4000-8000-000000000000").bytes
    ordered("uuid", early, late, late_higher, fourth)


def test_floating_point() -> None:
    doubles = [float("-inf"), -1.5, -0.0, 0.0, 5e-324, 1.0, float("inf"), float("nan")]
    ordered("double", b"", *(pack(">d", value) for value in doubles))
    floats = [float("-inf"), -1.5, -0.0, 0.0, 1.0, float("inf"), float("nan")]
    ordered("float", b"", *(pack(">f", value) for value in floats))
    key = order_key(native("double"))
    assert key(bytes.fromhex("7ff8000000000001")) == key(bytes.fromhex("fff8000000000000"))


def test_decimals_by_value() -> None:
    key, decimal = order_key(native("decimal")), native("decimal")
    assert key(encode(decimal, Decimal("1.0"))) == key(encode(decimal, Decimal("1.00")))
    texts = ["-1E+2147483647", "-2", "-1.99", "0", "1E-2147483647", "1", "1.0000000000000000000000000000000001", "1E+9"]
    ordered("decimal", b"", *(encode(decimal, Decimal(text)) for text in texts))


def test_inet_and_text_by_unsigned_bytes_dates_from_the_most_negative() -> None:
    ordered("inet", bytes.fromhex("01000000"), bytes.fromhex("20010db8" + "00" * 12), bytes.fromhex("7f000001"))
    ordered("text", b"", b"a", "é".encode(), "\uffff".encode(), "😀".encode())
    ordered("date", *(encode(native("date"), value) for value in (-(2**31), -1, 0, 2**31 - 1)))


def test_collections_element_by_element() -> None:
    ordered("frozen<list<int>>", *(encode(parse_type("list<int>"), v) for v in ([], [-1], [-1, 5], [1], [1, -9], [2])))
    pairs: list[list[tuple[int, str]]] = [[], [(1, "a")], [(1, "a"), (2, "")], [(1, "b")], [(2, "a")]]
    ordered("frozen<map<int, text>>", *(encode(parse_type("map<int, text>"), value) for value in pairs))
    tuples = [(None, None), (None, "a"), (-1, None), (-1, ""), (3, None)]
    ordered("tuple<int, text>", *(encode(parse_type("tuple<int, text>"), value) for value in tuples))
    ordered("vector<int, 2>", *(encode(parse_type("vector<int, 2>"), v) for v in ([-1, 9], [1, -5], [1, 2])))


def test_fields_that_are_missing_are_null() -> None:
    nothing, one = pack(">i", -1), pack(">ii", 4, 1)
    key = order_key(parse_type("tuple<int, text>"))
    assert key(b"") == key(nothing) == key(nothing + nothing)
    assert key(one) == key(one + nothing)


NUMBERS = ["tinyint", "smallint", "int", "bigint", "timestamp", "time", "varint", "date"]


@given(st.sampled_from(NUMBERS).flatmap(lambda n: st.tuples(st.just(n), NATIVE_VALUES[n], NATIVE_VALUES[n])))
def test_numbers_by_value(drawn: tuple[str, int, int]) -> None:
    name, left, right = drawn
    key, type_ = order_key(native(name)), native(name)
    assert (key(encode(type_, left)) < key(encode(type_, right))) == (left < right)
    assert (key(encode(type_, left)) == key(encode(type_, right))) == (left == right)
    assert key(b"") < key(encode(type_, left)) or name in ("date",)


@settings(max_examples=120, deadline=None)
@given(typed_values)
def test_every_type_has_keys_and_its_bytes_equal_keys(typed: tuple[CqlType, Any]) -> None:
    type_, value = typed
    key, raw = order_key(type_), encode(type_, value)
    assert key(raw) == key(bytes(raw))
    assert not key(raw) < key(raw)
    assert key(b"") <= key(raw)


@pytest.mark.parametrize("spelled", ["timeuuid", "uuid", "float", "double", "int", "list<int>", "vector<int, 2>"])
def test_malformed_cells_are_refused(spelled: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        order_key(parse_type(spelled))(b"\x01\x02\x03")
