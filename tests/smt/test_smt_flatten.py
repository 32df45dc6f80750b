"""ScyllaFlattenColumns: cells become columns, all else stays as it is."""

from __future__ import annotations

import copy

import pytest

from smt import Record, Schema
from tests.smt.records import ADVANCED, DELETE, INSERT, LEGACY, SET_NULL, TOMBSTONE, cell, envelope, record, run, struct

FLATTEN = "ScyllaFlattenColumns"


@pytest.mark.parametrize("schema", [None, LEGACY])
def test_images(schema: Schema | None) -> None:
    found = run(FLATTEN, {}, *(record(*one, schema=schema) for one in (INSERT, SET_NULL, DELETE)))
    assert [one.value for one in found] == [
        envelope("c", None, {"ck": 2, "pk": 1, "v": "3", "w": None}),
        envelope("u", None, {"ck": 2, "pk": 1, "v": None, "w": None}),
        envelope("d", {"ck": 2, "pk": 1, "v": None, "w": None}, None),
    ]


def test_schema() -> None:
    (found,) = run(FLATTEN, {}, record(*INSERT, schema=LEGACY))
    expected = copy.deepcopy(ADVANCED)
    assert found.value_schema == expected
    assert LEGACY["fields"][1]["fields"][2]["name"].endswith(".v.Cell")


def test_a_user_type_with_one_field_is_flattened_only_in_strict_mode() -> None:
    user_type = struct("p.UDT_box", {"value": {"type": "int32", "optional": True}}, optional=True)
    image = struct(
        "p.After", {"pk": {"type": "int32", "optional": True}, "u": user_type, "c": cell("c", user_type)}, optional=True
    )
    schema = struct("p.Envelope", {"after": image}, optional=False)
    given = Record(
        "t", {"pk": 1}, {"after": {"pk": 1, "u": {"value": 5}, "c": {"value": {"value": 6}}}}, [], None, schema
    )
    assert run(FLATTEN, {}, given)[0].value == {"after": {"pk": 1, "u": {"value": 5}, "c": {"value": 6}}}
    strict = run(FLATTEN, {"compatibility": "strict"}, given)[0]
    assert strict.value == {"after": {"pk": 1, "u": 5, "c": {"value": 6}}}


def test_other_values_pass_untouched() -> None:
    given = [
        TOMBSTONE,
        Record("t", None, "text"),
        Record("t", None, {"ts_ms": 1}),
        record("c", None, {"a": 1}, schema=ADVANCED),
    ]
    assert run(FLATTEN, {}, *given) == given


def test_the_key_says_which_columns_are_plain() -> None:
    row = {"pk": {"value": 1}, "v": {"value": 2}}
    given = Record("t", {"pk": {"value": 1}}, envelope("c", None, row))
    assert run(FLATTEN, {}, given)[0].value["after"] == {"pk": {"value": 1}, "v": 2}
