"""Connect schemas of CQL types: the names that Avro subjects are made of, and the members in the converter's order."""

from __future__ import annotations

import pytest

from connector.formats.schemas import schema_of, type_token
from connector.values.types import UserType, native, parse_type

U = UserType("ks", "My-type.x", (("a", native("int")), ("t", native("text"))))
TYPES = {U.name: U}


@pytest.mark.parametrize(
    ("spelled", "token"),
    [
        ("text", "VARCHAR"),
        ("ascii", "ASCII"),
        ("timeuuid", "TIMEUUID"),
        ("list<int>", "List_INT"),
        ("set<text>", "Set_VARCHAR"),
        ("map<int, frozen<list<text>>>", "Map_INT_List_VARCHAR"),
        ("tuple<int, text>", "Tuple_INT_VARCHAR"),
        ('frozen<"My-type.x">', "UDT_My_type_x"),
    ],
)
def test_tokens(spelled: str, token: str) -> None:
    assert type_token(parse_type(spelled, TYPES)) == token


INT32 = {"type": "int32", "optional": True}
STRING = {"type": "string", "optional": True}


@pytest.mark.parametrize(
    ("spelled", "expected"),
    [
        ("tinyint", {"type": "int8", "optional": True}),
        ("float", {"type": "float", "optional": True}),
        ("blob", {"type": "bytes", "optional": True}),
        ("time", {"type": "int64", "optional": True}),
        (
            "date",
            {"type": "int32", "optional": True, "name": "org.apache.kafka.connect.data.Date", "version": 1},
        ),
        (
            "timestamp",
            {"type": "int64", "optional": True, "name": "org.apache.kafka.connect.data.Timestamp", "version": 1},
        ),
        ("vector<float, 3>", {"type": "array", "items": {"type": "float", "optional": True}, "optional": True}),
        ("set<int>", {"type": "array", "items": INT32, "optional": True}),
        (
            "map<int, text>",
            {
                "type": "array",
                "items": {
                    "type": "struct",
                    "fields": [INT32 | {"field": "key"}, STRING | {"field": "value"}],
                    "optional": False,
                    "name": "b.MapEntry_INT_VARCHAR",
                },
                "optional": True,
            },
        ),
        (
            "tuple<int, text>",
            {
                "type": "struct",
                "fields": [INT32 | {"field": "field_0"}, STRING | {"field": "field_1"}],
                "optional": True,
                "name": "b.Tuple_INT_VARCHAR",
            },
        ),
        (
            'frozen<"My-type.x">',
            {
                "type": "struct",
                "fields": [INT32 | {"field": "a"}, STRING | {"field": "t"}],
                "optional": True,
                "name": "b.UDT_My_type_x",
            },
        ),
    ],
)
def test_schemas(spelled: str, expected: dict[str, object]) -> None:
    made = schema_of(parse_type(spelled, TYPES), "b")
    assert made == expected
    assert list(made) == list(expected)


def test_key_columns_have_names_without_a_prefix() -> None:
    assert schema_of(parse_type("tuple<int>"), "")["name"] == "Tuple_INT"
