"""Layouts: joining a page's columns with a description; descriptions and their plain form."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connector.changes import CdcOptions, Column, DroppedColumn, layout_of
from connector.errors import FatalSourceError, RetriableSourceError
from connector.values.types import MapType, SetType, UserType, is_multi_cell, native, parse_type
from tests.formats.rows import log_columns, table

U = UserType("ks", "u", (("a", native("int")),))
DESCRIPTION = table(
    {"pk": "int", "ck2": "text", "ck1": "int", "B": "text", "a": "list<int>", "u": "u"},
    clustering=("ck1", "ck2"),
    types={"u": U},
)
COLUMNS = log_columns(DESCRIPTION)


def with_columns(*more: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    return (*COLUMNS, *more)


def test_places_are_in_byte_order_and_keys_in_their_own() -> None:
    layout = layout_of(DESCRIPTION, COLUMNS)
    assert [place.name for place in layout.places] == ["B", "a", "ck1", "ck2", "pk", "u"]
    assert [place.name for place in layout.keys] == ["pk", "ck1", "ck2"]
    assert layout.unknown == ()
    place = layout.places[1]
    assert [layout.columns[at or 0] for at in (place.value, place.deleted, place.deleted_elements)] == [
        "a",
        "cdc$deleted_a",
        "cdc$deleted_elements_a",
    ]
    assert place.log_type.cql() == "frozen<map<timeuuid, int>>"
    assert layout_of(DESCRIPTION, COLUMNS) is layout


@pytest.mark.parametrize(
    ("spelled", "gone", "expected"),
    [
        ("int", None, "int"),
        ("frozen<set<int>>", None, "frozen<set<int>>"),
        ("frozen<set<int>>", "frozen<set<int>>", "set<int>"),
        ("frozen<map<int, text>>", "frozen<set<int>>", "map<int, text>"),
        ("frozen<u>", "frozen<set<smallint>>", "u"),
        ("frozen<map<timeuuid, int>>", None, "frozen<map<timeuuid, int>>"),
        ("vector<float, 3>", None, "vector<float, 3>"),
        ("org.apache.cassandra.db.marshal.VectorType<float, 3>", None, "vector<float, 3>"),
        ("set<int>", "set<int>", "set<int>"),
        ("map<int, text>", "set<int>", "map<int, text>"),
    ],
)
def test_a_column_that_only_the_log_has_is_regular(spelled: str, gone: str | None, expected: str) -> None:
    more = [("new", spelled), ("cdc$deleted_new", "boolean")]
    if gone:
        more.append(("cdc$deleted_elements_new", gone))
    layout = layout_of(DESCRIPTION, with_columns(*more))
    assert layout.unknown == ("new",)
    (place,) = [place for place in layout.places if place.name == "new"]
    assert (place.column.kind, place.column.type.cql()) == ("regular", expected)
    assert is_multi_cell(place.column.type) is (gone is not None)


def test_a_new_list_cannot_be_told_from_a_map_of_timeuuids() -> None:
    more = [("new", "frozen<map<timeuuid, int>>"), ("cdc$deleted_elements_new", "frozen<set<timeuuid>>")]
    with pytest.raises(RetriableSourceError, match="whether it is a list or a map"):
        layout_of(DESCRIPTION, with_columns(*more))


def test_a_new_column_of_an_unknown_type_asks_for_a_newer_description() -> None:
    with pytest.raises(RetriableSourceError, match="no user type 'v'"):
        layout_of(DESCRIPTION, with_columns(("new", "frozen<v>")))


def test_a_column_that_the_log_lost_is_not_there() -> None:
    columns = tuple(column for column in COLUMNS if not column[0].endswith("B"))
    assert [place.name for place in layout_of(DESCRIPTION, columns).places] == ["a", "ck1", "ck2", "pk", "u"]


def test_pages_that_are_not_of_a_log_are_refused() -> None:
    with pytest.raises(FatalSourceError, match=r"no column cdc\$time"):
        layout_of(DESCRIPTION, tuple(column for column in COLUMNS if column[0] != "cdc$time"))
    with pytest.raises(RetriableSourceError, match="no column ck1"):
        layout_of(DESCRIPTION, tuple(column for column in COLUMNS if column[0] != "ck1"))


def test_content_is_plain_and_canonical() -> None:
    description = replace(
        DESCRIPTION,
        cdc=CdcOptions(preimage="full", postimage=True, ttl=0),
        dropped=(DroppedColumn("x", parse_type("set<int>"), 5),),
    )
    content = description.content
    assert [column["name"] for column in content["columns"]] == ["pk", "ck1", "ck2", "B", "a", "u"]
    assert content["columns"][1] == {"name": "ck1", "type": "int", "kind": "clustering", "position": 0, "order": "asc"}
    assert content["types"] == {"u": [["a", "int"]]}
    assert content["dropped"] == [{"name": "x", "type": "set<int>", "dropped_us": 5}]
    assert content["cdc"] == {"enabled": True, "preimage": "full", "postimage": True, "delta": "full", "ttl": 0}


def test_the_fingerprint_changes_with_the_description_only() -> None:
    shuffled = replace(DESCRIPTION, columns=tuple(reversed(DESCRIPTION.columns)))
    assert shuffled.fingerprint == DESCRIPTION.fingerprint
    changed = [
        replace(DESCRIPTION, table_id="other"),
        replace(DESCRIPTION, columns=(*DESCRIPTION.columns, Column("z", native("int")))),
        replace(DESCRIPTION, cdc=CdcOptions(ttl=1)),
        replace(DESCRIPTION, user_types=(UserType("ks", "u", (("a", native("int")), ("b", native("int")))),)),
    ]
    assert len({DESCRIPTION.fingerprint, *(other.fingerprint for other in changed)}) == 5


def test_types_inside_types_are_listed() -> None:
    outer = UserType("ks", "outer", (("m", MapType(SetType(U), native("int"))),))
    description = table({"pk": "int", "v": "frozen<outer>"}, types={"outer": outer})
    assert sorted(description.content["types"]) == ["outer", "u"]


def test_the_flag_of_one_column_is_not_taken_for_removed_elements_of_another() -> None:
    description = table({"pk": "int", "a": "int", "elements_a": "int"})
    layout = layout_of(description, (*log_columns(description), ("n", "int"), ("cdc$deleted_elements_n", "boolean")))
    places = {place.name: place for place in layout.places}
    assert places["a"].deleted_elements is None
    assert places["elements_a"].deleted == layout.columns.index("cdc$deleted_elements_a")
    assert places["n"].column.type == native("int")
