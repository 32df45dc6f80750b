"""Spellings of CQL types."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from connector.values.types import (
    CqlType,
    ListType,
    MapType,
    TupleType,
    UserType,
    freeze,
    is_multi_cell,
    native,
    parse_type,
)
from tests.values.strategies import frozen_types, user_types_of

ADDRESS = UserType("ks", "addr", (("street", native("text")), ("tags", ListType(native("text")))))
STRANGE = UserType("ks", 'My"Type', (("a", native("int")),))
TYPES = {"addr": ADDRESS, 'My"Type': STRANGE}


@pytest.mark.parametrize(
    "spelled",
    [
        "int",
        "list<int>",
        "frozen<list<int>>",
        "map<text, frozen<addr>>",
        "frozen<map<text, frozen<addr>>>",
        "frozen<tuple<int, text, frozen<list<int>>>>",
        "addr",
        "frozen<addr>",
        'frozen<"My""Type">',
        "vector<float, 3>",
        "list<vector<float, 3>>",
        "set<frozen<set<int>>>",
    ],
)
def test_spellings_come_back(spelled: str) -> None:
    assert parse_type(spelled, TYPES).cql() == spelled


@settings(max_examples=120, deadline=None)
@given(frozen_types)
def test_all_types_come_back(type_: CqlType) -> None:
    assert parse_type(type_.cql(), user_types_of(type_)) == type_


def test_what_is_inside_is_frozen() -> None:
    parsed = parse_type("frozen<map<text, list<int>>>")
    assert isinstance(parsed, MapType)
    assert parsed.cql() == "frozen<map<text, frozen<list<int>>>>"
    address = parse_type("addr", TYPES)
    assert isinstance(address, UserType)
    assert not address.frozen
    assert dict(address.fields)["tags"].cql() == "frozen<list<text>>"
    assert parse_type("tuple<int>").cql() == "frozen<tuple<int>>"


def test_varchar_is_text() -> None:
    assert parse_type("VARCHAR") == native("text")
    assert parse_type("ks.addr", TYPES) == parse_type("addr", TYPES)


@pytest.mark.parametrize(
    ("spelled", "multi_cell"),
    [
        ("int", False),
        ("list<int>", True),
        ("frozen<list<int>>", False),
        ("addr", True),
        ("frozen<addr>", False),
        ("tuple<int>", False),
        ("vector<int, 2>", False),
    ],
)
def test_multi_cell(spelled: str, multi_cell: bool) -> None:
    type_ = parse_type(spelled, TYPES)
    assert is_multi_cell(type_) is multi_cell
    assert not is_multi_cell(freeze(type_))
    assert isinstance(parse_type("tuple<int>"), TupleType)


@pytest.mark.parametrize(
    ("spelled", "why"),
    [
        ("", "ends too early"),
        ("lisst<int>", "takes no parameters"),
        ("list<int", "ends too early"),
        ("list<int>>", "unexpected"),
        ("map<int>", "is missing"),
        ("unknown", "no user type"),
        ("vector<int, x>", "dimensions"),
        ("vector<int, 0>", "dimensions"),
        ("<int>", "unexpected"),
        ("'org.apache.cassandra.db.marshal.EmptyType'", "unexpected character"),
    ],
)
def test_what_cannot_be_read_says_why(spelled: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_type(spelled, TYPES)
