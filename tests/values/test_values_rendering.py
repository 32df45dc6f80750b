"""Values as records have them; numbers as the JVM writes them (texts recorded from JDK 21)."""

from __future__ import annotations

import ipaddress
import uuid
from decimal import Decimal
from struct import pack, unpack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connector.java_calendar import gregorian_date, java_date, java_days
from connector.java_numbers import Float32, WideDouble, java_double, java_float
from connector.values.binary import encode
from connector.values.rendering import DEFAULT_RULES, RenderingRules, column_renderer, renderer
from connector.values.scalars import Duration
from connector.values.types import CqlType, MapType, UserType, freeze, native, parse_type
from tests.values.strategies import typed_values

STRICT = RenderingRules(strict=True)
KEEP = RenderingRules(keep_empty=True)
UDT = UserType("ks", "u", (("a", native("int")), ("l", parse_type("frozen<list<int>>"))))
TYPES = {"u": UDT}


def rendered(spelled: str, value: Any, rules: RenderingRules = DEFAULT_RULES) -> Any:
    type_ = parse_type(spelled, TYPES)
    return renderer(type_, rules)(encode(freeze(type_), value))


@pytest.mark.parametrize(
    ("spelled", "value", "expected"),
    [
        ("text", "é", "é"),
        ("text", "", ""),
        ("tinyint", -128, -128),
        ("bigint", 2**63 - 1, 2**63 - 1),
        ("boolean", False, False),
        ("blob", b"\xca\xfe", b"\xca\xfe"),
        ("blob", b"", b""),
        ("decimal", Decimal("12345.67"), "12345.67"),
        ("decimal", Decimal("1E+3"), "1E+3"),
        ("decimal", Decimal("0.0000001"), "1E-7"),
        ("decimal", Decimal("0.000001"), "0.000001"),
        ("decimal", Decimal("0E+3"), "0E+3"),
        ("decimal", Decimal("-1.50"), "-1.50"),
        ("decimal", Decimal("123E+2147483647"), "1.23E+2147483649"),
        ("varint", -(10**30), "-1" + "0" * 30),
        ("uuid", uuid.UUID("453662FA-db4b-4938-9033-d8523c0a371c"), "453662fa-db4b-4938-9033-d8523c0a371c"),
        ("inet", ipaddress.ip_address("127.0.0.1"), "127.0.0.1"),
        ("inet", ipaddress.ip_address("2001:db8::1"), "2001:db8:0:0:0:0:0:1"),
        ("inet", ipaddress.ip_address("::ffff:1.2.3.4"), "0:0:0:0:0:ffff:102:304"),
        ("date", 19884, 19884),
        ("date", -719162, -719162),
        ("time", 45296789000000, 45296789000000),
        ("timestamp", -1, -1),
        ("duration", Duration(0, 1, 45_000_000_000_000), "1d12h30m"),
        ("duration", Duration(0, 2, 3_600_000_000_000), "2d1h"),
        ("duration", Duration(-1, -2, 0), "-1mo2d"),
        ("duration", Duration(14, 0, 1_002_003), "1y2mo1ms2us3ns"),
        ("duration", Duration(0, 0, 0), ""),
        ("list<int>", [3, 1], [3, 1]),
        ("list<int>", [], []),
        ("map<int, text>", [(1, "a")], [{"key": 1, "value": "a"}]),
        ("map<frozen<tuple<int>>, int>", [((1,), 2)], [{"key": {"field_0": 1}, "value": 2}]),
        ("tuple<int, text>", (None, None), {"field_0": None, "field_1": None}),
        ("frozen<u>", (1, None), {"a": 1, "l": []}),
        (
            "tuple<int, frozen<list<int>>, frozen<u>>",
            (None, None, None),
            {"field_0": None, "field_1": [], "field_2": None},
        ),
        ("frozen<u>", (None, []), None),
        ("list<frozen<u>>", [(None, None), (1, [2])], [None, {"a": 1, "l": [2]}]),
        ("vector<float, 2>", [1.5, 2.0], [1.5, 2.0]),
    ],
)
def test_values(spelled: str, value: Any, expected: Any) -> None:
    assert rendered(spelled, value) == expected


def test_numbers_too_long_for_python_to_write() -> None:
    assert rendered("varint", 10**5000) == "1" + "0" * 5000
    assert rendered("varint", -(10**100_000)) == "-1" + "0" * 100_000
    assert rendered("decimal", Decimal((1, (7,) * 20_000, -19_999))) == "-7." + "7" * 19_999
    assert rendered("decimal", Decimal(10**5000)) == "1" + "0" * 5000


def test_numbers_without_bound_are_refused_at_once() -> None:
    for spelled in ("varint", "decimal"):
        with pytest.raises(ValueError, match=f"a {spelled} of 4000004 bytes: more than 1048576 do not become a record"):
            column_renderer(parse_type(spelled))(b"\0\0\0\1" + b"\x7f" * 4_000_000)


def test_strict_values_are_the_java_connectors() -> None:
    assert rendered("inet", ipaddress.ip_address("::ffff:1.2.3.4"), STRICT) == "1.2.3.4"
    both = [ipaddress.ip_address("1.2.3.4"), ipaddress.ip_address("::ffff:1.2.3.4")]
    assert rendered("set<inet>", both, STRICT) == ["1.2.3.4"]
    assert rendered("set<inet>", both) == ["1.2.3.4", "0:0:0:0:0:ffff:102:304"]
    assert rendered("date", -141428, STRICT) == -141418
    assert rendered("date", -719162, STRICT) == -719164
    assert rendered("date", 19884, STRICT) == 19884


def test_strict_sets_and_maps_hold_what_java_finds_equal_once() -> None:
    short, long = ipaddress.ip_address("1.2.3.4"), ipaddress.ip_address("::ffff:1.2.3.4")
    other = ipaddress.ip_address("255.0.0.1")
    both = [(short, 1), (other, 2), (long, 3)]
    # The place of the first, the value of the last.
    assert rendered("map<inet, int>", both, STRICT) == [
        {"key": "1.2.3.4", "value": 3},
        {"key": "255.0.0.1", "value": 2},
    ]
    assert [entry["value"] for entry in rendered("map<inet, int>", both)] == [1, 2, 3]
    inside = [((short, 1),), ((long, 1),), ((long, 2),)]
    assert len(rendered("set<frozen<tuple<frozen<tuple<inet, int>>>>>", inside, STRICT)) == 2
    assert rendered("set<frozen<list<inet>>>", [[short], [long]], STRICT) == [["1.2.3.4"]]
    assert rendered("list<inet>", [short, long], STRICT) == ["1.2.3.4", "1.2.3.4"]
    # A collection that is null is an empty one, a user type that is null is not one with nothing in it.
    fields: list[Any] = [((1, None),), ((1, []),), (None,), ((None, None),), ((None, []),)]
    assert rendered("set<frozen<tuple<frozen<u>>>>", fields, STRICT) == [
        {"field_0": {"a": 1, "l": []}},
        {"field_0": None},
        {"field_0": None},
    ]
    assert len(rendered("set<frozen<tuple<frozen<u>>>>", fields)) == 5
    assert rendered("map<frozen<list<inet>>, int>", [], STRICT) == []


def test_null_and_empty_stay_apart_beside_deltas() -> None:
    assert rendered("frozen<u>", (None, None), KEEP) == {"a": None, "l": None}
    assert rendered("frozen<u>", (1, []), KEEP) == {"a": 1, "l": []}
    assert rendered("tuple<frozen<list<int>>>", (None,), KEEP) == {"field_0": None}


def test_columns_stored_cell_by_cell() -> None:
    early, late = uuid.UUID("80000000-0000-11f0-8000-000000000000"), uuid.UUID("00000000-0001-11f0-8000-000000000000")
    log = MapType(native("timeuuid"), native("int"))
    raw = encode(log, [(early, 1), (late, 2)])
    column = parse_type("list<int>")
    assert column_renderer(column)(raw) == [1, 2]
    # java.util.UUID compares the lowest bits of the time first, as signed numbers.
    assert column_renderer(column, STRICT)(raw) == [1, 2]
    raw = encode(log, [(uuid.UUID("7fffffff-0000-11f0-8000-000000000000"), 1), (late, 2)])
    assert column_renderer(column)(raw) == [1, 2]
    assert column_renderer(column, STRICT)(raw) == [2, 1]
    for spelled in ("list<int>", "set<int>", "map<int, int>"):
        assert column_renderer(parse_type(spelled))(b"\0\0\0\0") is None
    assert column_renderer(parse_type("frozen<set<int>>"))(b"\0\0\0\0") == []


@settings(max_examples=120, deadline=None)
@given(typed_values)
def test_every_type_renders(typed: tuple[CqlType, Any]) -> None:
    type_, value = typed
    raw = encode(type_, value)
    for rules in (RenderingRules(), STRICT, KEEP):
        renderer(type_, rules)(raw)
    assert renderer(native("int"))(b"") is None


JDK_DOUBLES = {
    0.0: "0.0",
    1e7: "1.0E7",
    9999999.999: "9999999.999",
    1e-3: "0.001",
    9.99e-4: "9.99E-4",
    5e-324: "4.9E-324",
    2.2250738585072014e-308: "2.2250738585072014E-308",
    1.7976931348623157e308: "1.7976931348623157E308",
    1e23: "1.0E23",
    2e23: "2.0E23",
    -123456789.0: "-1.23456789E8",
    float("inf"): "Infinity",
}
JDK_FLOATS = {0.1: "0.1", 1e10: "1.0E10", 3.4028235e38: "3.4028235E38", 1e-45: "1.4E-45", 2.71828: "2.71828"}
JDK_FLOATS |= {
    1e7: "1.0E7",
    9999999.0: "9999999.0",
    0.001: "0.001",
    33554432.0: "3.3554432E7",
    1.1754944e-38: "1.1754944E-38",
}


@pytest.mark.parametrize(("value", "text"), JDK_DOUBLES.items())
def test_doubles(value: float, text: str) -> None:
    assert java_double(value) == text


@pytest.mark.parametrize(("value", "text"), JDK_FLOATS.items())
def test_floats(value: float, text: str) -> None:
    assert java_float(unpack(">f", pack(">f", value))[0]) == text
    assert java_float(-unpack(">f", pack(">f", value))[0]) == "-" + text


def test_words_and_signs() -> None:
    assert [java_double(float("nan")), java_double(-0.0), java_float(-0.0), java_float(float("-inf"))] == [
        "NaN",
        "-0.0",
        "-0.0",
        "-Infinity",
    ]


@given(st.floats(allow_nan=False))
def test_texts_of_doubles_read_back(value: float) -> None:
    text = java_double(value)
    assert float(text.replace("Infinity", "inf")) == value
    assert "E" not in text or not 1e-3 <= abs(value) < 1e7


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_texts_of_floats_read_back(value: float) -> None:
    assert unpack(">f", pack(">f", float(java_float(value))))[0] == value


def test_numbers_remember_that_java_writes_them_otherwise() -> None:
    assert type(rendered("float", 1.5)) is Float32
    assert type(rendered("double", 1.5)) is float
    assert type(rendered("double", 1e10)) is WideDouble
    assert type(rendered("double", -0.0)) is float


def test_calendar() -> None:
    assert gregorian_date(-719162) == (1, 1, 1)
    assert gregorian_date(-719163) == (0, 12, 31)
    assert gregorian_date(0) == (1970, 1, 1)
    # Recorded from java.util.GregorianCalendar.
    assert {days: java_days(days) for days in (-141427, -141428, -141437, -141438, -719528)} == {
        -141427: -141427,
        -141428: -141418,
        -141437: -141427,
        -141438: -141428,
        -719528: -719530,
    }


@given(st.integers(-3_000_000, 3_000_000))
def test_java_shows_the_date_that_was_meant(days: int) -> None:
    if not -141437 <= days < -141427:
        assert java_date(java_days(days)) == gregorian_date(days)
