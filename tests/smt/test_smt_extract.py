"""ScyllaExtractNewRecordState and extract-new-state: each mode, each option, with schemas and without."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from smt import Record, Schema, SmtOptionError, SmtRecordError, build_transform
from tests.smt.records import (
    ADVANCED,
    DELETE,
    INSERT,
    JAVA,
    KEY,
    LEGACY,
    SET_NULL,
    SOURCE,
    TOMBSTONE,
    TOPIC,
    envelope,
    record,
    run,
    values,
)

SAFE = "extract-new-state"
SCHEMAS = pytest.mark.parametrize("schema", [None, LEGACY], ids=["schemaless", "schema"])
ROW = {"ck": 2, "pk": 1, "v": "3", "w": None}
GONE = {"ck": 2, "pk": 1, "v": None, "w": None}
TRUE, FALSE = {"__deleted": "true"}, {"__deleted": "false"}


@SCHEMAS
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # What an insert, a delete and its tombstone become: Debezium's table of modes.
        ({}, [ROW]),
        ({"drop.tombstones": "false"}, [ROW, None]),
        ({"delete.handling.mode": "none"}, [ROW, None]),
        ({"delete.handling.mode": "none", "drop.tombstones": "false"}, [ROW, None, None]),
        ({"delete.handling.mode": "rewrite"}, [ROW | FALSE, GONE | TRUE]),
        ({"delete.handling.mode": "rewrite", "drop.tombstones": "false"}, [ROW | FALSE, GONE | TRUE, None]),
        ({"delete.tombstone.handling.mode": "drop"}, [ROW]),
        ({"delete.tombstone.handling.mode": "tombstone"}, [ROW, None]),
        ({"delete.tombstone.handling.mode": "rewrite"}, [ROW | FALSE, GONE | TRUE]),
        ({"delete.tombstone.handling.mode": "rewrite-with-tombstone"}, [ROW | FALSE, GONE | TRUE, None]),
        ({"delete.tombstone.handling.mode": "delete-to-tombstone"}, [ROW, None]),
        ({"delete.tombstone.handling.mode": " Delete-To-Tombstone "}, [ROW, None]),
    ],
)
def test_modes(schema: Schema | None, options: dict[str, str], expected: list[Any]) -> None:
    found = run(JAVA, options, record(*INSERT, schema=schema), record(*DELETE, schema=schema), TOMBSTONE)
    assert [one.value for one in found] == expected
    # A tombstone is null bytes: nothing may be left that a converter could write.
    assert all(one.value_schema is None for one in found if one.value is None)
    assert all(list(one.value) == list(want) for one, want in zip(found, expected, strict=True) if want)


def test_safe_defaults_keep_null_and_untouched_apart_and_every_delete() -> None:
    given = [record(*INSERT), record(*SET_NULL), record(*DELETE), TOMBSTONE]
    assert values(SAFE, {}, *given) == [{"ck": 2, "pk": 1, "v": "3"}, {"ck": 2, "pk": 1, "v": None}, None]
    assert values(JAVA, {}, *given) == [ROW, GONE]
    assert build_transform(SAFE).losses == ()
    assert len(build_transform(JAVA).losses) == 2


@pytest.mark.parametrize(
    ("name", "schemaless", "remedy"),
    [
        (JAVA, True, "untouched.fields=omit keeps them apart"),
        # With a schema, which names every field, that is refused.
        (JAVA, False, "cdc.output.format=advanced with cdc.include.after=full writes whole rows"),
        ("ScyllaFlattenColumns", True, "cdc.output.format=advanced with cdc.include.after=full writes whole rows"),
    ],
)
def test_what_becomes_of_cells_is_told_with_what_helps_there_and_of_the_advanced_format_nothing(
    name: str, schemaless: bool, remedy: str
) -> None:
    said = f"columns that a write did not touch become null, like those it set to null ({remedy})"
    assert said in build_transform(name, schemaless_output=schemaless, cells=True).losses
    assert not any("touch" in loss for loss in build_transform(name, cells=False).losses)


def test_omit_needs_values_without_schemas() -> None:
    with pytest.raises(SmtOptionError, match="has a schema"):
        build_transform(SAFE)(record(*INSERT, schema=LEGACY))
    with pytest.raises(SmtOptionError, match=r"untouched\.fields"):
        build_transform(SAFE, schemaless_output=False)
    # On the way to a converter that writes no schema.
    found = build_transform(SAFE, schemaless_output=True)(record(*INSERT, schema=LEGACY))
    assert found is not None and found.value == {"ck": 2, "pk": 1, "v": "3"}
    assert values(SAFE, {"untouched.fields": "null"}, record(*INSERT, schema=LEGACY)) == [ROW]


@SCHEMAS
@pytest.mark.parametrize("op", ["c", "u", "r"])
def test_a_record_without_images_is_what_its_op_says(schema: Schema | None, op: str) -> None:
    others = {"v": None, "w": None} if schema else {}
    assert values(JAVA, {}, record(op, schema=schema)) == [KEY | others]
    assert values(JAVA, {}, record(op, {"ck": 2, "pk": 1, "v": {"value": "old"}, "w": None}, schema=schema)) == [
        KEY | others
    ]
    assert values(JAVA, {"compatibility": "strict"}, record(op, schema=schema)) == []


@SCHEMAS
def test_a_delete_without_images(schema: Schema | None) -> None:
    others = {"v": None, "w": None} if schema else {}
    rewrite = {"delete.handling.mode": "rewrite"}
    assert values(JAVA, rewrite, record("d", schema=schema)) == [KEY | others | TRUE]
    assert values(JAVA, rewrite | {"compatibility": "strict"}, record("d", schema=schema)) == []
    assert values(SAFE, {"untouched.fields": "null"}, record("d", schema=schema)) == [None]


@SCHEMAS
def test_strict_reads_images_as_java_does(schema: Schema | None) -> None:
    update = record("u", {"ck": 2, "pk": 1, "v": {"value": "old"}, "w": None}, schema=schema)
    options = {"compatibility": "strict", "delete.handling.mode": "rewrite"}
    assert values(JAVA, options, update) == [{"ck": 2, "pk": 1, "v": "old", "w": None} | TRUE]


@SCHEMAS
@pytest.mark.parametrize("key", [None, "text", {}])
def test_no_image_and_no_key_is_an_error_with_a_remedy(schema: Schema | None, key: Any) -> None:
    with pytest.raises(SmtRecordError, match=r"key\.converter"):
        run(JAVA, {}, record("u", schema=schema, key=key))
    with pytest.raises(SmtRecordError, match=r"key\.converter"):
        run(JAVA, {"delete.handling.mode": "rewrite"}, record("d", schema=schema, key=key))


@SCHEMAS
@pytest.mark.parametrize("op", ["t", "m"])
def test_truncations_and_messages_have_no_row(schema: Schema | None, op: str) -> None:
    assert run(JAVA, {"drop.tombstones": "false"}, record(op, schema=schema)) == []


@pytest.mark.parametrize(
    "value",
    [
        {"ts_ms": 1},
        {"source": SOURCE, "before": None, "after": {}, "op": 1},
        {"source": "x", "before": None, "after": {}, "op": "c"},
        {"source": SOURCE, "after": {"a": 1}, "op": "c"},
        {"source": SOURCE, "kind": "range", "partition": {"pk": 1}},
        "text",
        5,
        [{"op": "c"}],
    ],
)
def test_other_records_pass_untouched(value: Any) -> None:
    given = Record("t", None, value)
    assert run(JAVA, {"add.fields": "op", "add.headers": "op", "route.by.field": "a"}, given) == [given]


def test_a_schema_of_another_name_passes_untouched() -> None:
    schema = {"type": "struct", "fields": [], "optional": False, "name": "io.debezium.connector.common.Heartbeat"}
    given = Record("t", None, envelope(*INSERT), [], None, schema)
    assert run(JAVA, {}, given) == [given]


def test_columns_of_the_key_are_never_unwrapped() -> None:
    key = {"pk": {"value": 1}, "ck": 2}
    row = {"pk": {"value": 1}, "ck": 2, "v": {"value": {"mode": "modify", "elements": [{"key": 1, "value": None}]}}}
    assert values(SAFE, {}, record("c", None, row, key=key)) == [
        {"pk": {"value": 1}, "ck": 2, "v": {"mode": "modify", "elements": [{"key": 1, "value": None}]}}
    ]


def test_null_clustering_columns_of_a_static_row_stay() -> None:
    row = {"ck": None, "pk": 1, "s": {"value": "x"}, "v": None}
    assert values(SAFE, {}, record("u", None, row, key={"ck": None, "pk": 1})) == [{"ck": None, "pk": 1, "s": "x"}]


def test_the_advanced_format_is_not_unwrapped() -> None:
    row = {"ck": 2, "pk": 1, "v": {"value": 1}, "w": None}
    assert values(SAFE, {"cdc.output.format": "advanced"}, record("c", None, row)) == [row]
    with pytest.raises(SmtOptionError, match=r"untouched\.fields"):
        build_transform(SAFE, {"cdc.output.format": "advanced", "untouched.fields": "omit"})


def test_added_fields() -> None:
    options = {"add.fields": "op, source.ts_us:when,table_name,transaction.id,before.v,nowhere,snapshot"}
    added = {
        "__op": "c",
        "__when": 5001,
        "__table_name": "t",
        "__transaction_id": None,
        "__before_v": None,
        "__snapshot": None,
    }
    assert values(JAVA, options, record(*INSERT, schema=LEGACY)) == [ROW | added]
    # Without a schema, a part of a null struct is known to be null, too.
    assert values(JAVA, options, record(*INSERT)) == [ROW | added]
    assert list(values(JAVA, options | {"add.fields.prefix": ""}, record(*INSERT))[0])[4:] == [
        name.removeprefix("__") for name in added
    ]


def test_added_fields_come_after_the_mark_of_deletes_and_not_with_tombstones() -> None:
    options = {"add.fields": "op", "delete.handling.mode": "rewrite"}
    found = values(JAVA, options, record(*INSERT), record(*DELETE))
    assert [list(one)[-2:] for one in found] == [["__deleted", "__op"]] * 2
    assert values(SAFE, {"add.fields": "op"}, record(*DELETE)) == [None]


@SCHEMAS
def test_added_headers(schema: Schema | None) -> None:
    options = {"add.headers": "op,source.ts_us,nowhere", "delete.handling.mode": "none", "drop.tombstones": "false"}
    given = [record(*INSERT, schema=schema, headers=[("h", 1)]), record(*DELETE, schema=schema), TOMBSTONE]
    assert [one.headers for one in run(JAVA, options, *given)] == [
        [("h", 1), ("__op", "c"), ("__source_ts_us", 5001)],
        [("__op", "d"), ("__source_ts_us", 5001)],
        [("__op", "d")],
    ]


@SCHEMAS
def test_routing_by_a_column(schema: Schema | None) -> None:
    options = {"route.by.field": "v", "delete.handling.mode": "rewrite"}
    blank = ("u", None, {"ck": 2, "pk": 1, "v": {"value": " "}, "w": None})
    found = run(JAVA, options, *(record(*one, schema=schema) for one in (INSERT, SET_NULL, blank, DELETE)))
    assert [one.topic for one in found] == ["3", TOPIC, TOPIC, TOPIC]
    by_key = run(
        JAVA, {"route.by.field": "pk", "drop.tombstones": "false"} | {"delete.handling.mode": "none"}, record("d")
    )
    assert [one.topic for one in by_key] == ["1"]


def test_a_topic_that_a_column_names_is_spelled_as_java_does() -> None:
    rows = [{"ck": 2, "pk": 1, "v": {"value": value}, "w": None} for value in (True, 1e-05)]
    found = run(JAVA, {"route.by.field": "v"}, *(record("u", None, row) for row in rows))
    assert [one.topic for one in found] == ["true", "1.0E-5"]


@SCHEMAS
def test_dropped_fields(schema: Schema | None) -> None:
    headers = [("gone", ["v", "pk", "__op"])]
    options = {"drop.fields.header.name": "gone", "add.fields": "op", "delete.handling.mode": "rewrite"}
    given = [record(*one, schema=schema, headers=headers) for one in (INSERT, DELETE)]
    upsert, delete = run(JAVA, options, *given)
    # Upserts lose added fields too, deletes get them afterwards.
    assert upsert.value == {"ck": 2, "w": None} | FALSE
    assert delete.value == {"ck": 2, "w": None} | TRUE | {"__op": "d"}
    assert upsert.key == KEY
    upsert, _ = run(JAVA, options | {"drop.fields.from.key": "true"}, *given)
    assert upsert.key == {"ck": 2}


def test_fields_that_readers_need_are_dropped_only_when_told() -> None:
    schema = copy.deepcopy(LEGACY)
    after = next(field for field in schema["fields"] if field["field"] == "after")
    after["fields"][0]["optional"] = False
    given = record(*INSERT, schema=schema, headers=[("gone", ["ck", "w"])])
    options = {"drop.fields.header.name": "gone"}
    (kept,) = run(JAVA, options, given)
    assert kept.value == {"ck": 2, "pk": 1, "v": "3"}
    (all_gone,) = run(JAVA, options | {"drop.fields.keep.schema.compatible": "false"}, given)
    assert all_gone.value == {"pk": 1, "v": "3"}
    assert [field["field"] for field in all_gone.value_schema["fields"]] == ["pk", "v"]  # type: ignore[index]


def test_schemas_of_rows() -> None:
    options = {"delete.handling.mode": "rewrite", "add.fields": "op,source.ts_ms,snapshot"}
    upsert, delete = run(JAVA, options, record(*INSERT, schema=LEGACY), record(*DELETE, schema=LEGACY))
    fields = [
        {"type": "int32", "optional": True, "field": "ck"},
        {"type": "int32", "optional": True, "field": "pk"},
        {"type": "string", "optional": True, "field": "v"},
        {"type": "int32", "optional": True, "field": "w"},
        {"type": "string", "optional": True, "field": "__deleted"},
        {"type": "string", "optional": True, "field": "__op"},
        {"type": "int64", "optional": True, "field": "__source_ts_ms"},
        {"type": "string", "optional": True, "name": "io.debezium.data.Enum", "field": "__snapshot"},
    ]
    assert upsert.value_schema == {"type": "struct", "fields": fields, "optional": False, "name": f"{TOPIC}.After"}
    assert delete.value_schema == {"type": "struct", "fields": fields, "optional": False, "name": f"{TOPIC}.Before"}
    # Debezium builds the row's schema anew, even if it adds nothing, and so it is not optional any more.
    (plain,) = run(JAVA, {"cdc.output.format": "advanced"}, record("c", None, {"ck": 2, "pk": 1}, schema=ADVANCED))
    assert plain.value_schema is not None
    assert plain.value_schema["optional"] is False and "field" not in plain.value_schema


def test_strict_tombstones_keep_the_schema_as_in_java() -> None:
    options = {"delete.tombstone.handling.mode": "tombstone", "compatibility": "strict"}
    (found,) = run(JAVA, options, record(*DELETE, schema=LEGACY))
    after = next(field for field in LEGACY["fields"] if field["field"] == "after")
    assert found.value is None and found.value_schema == {part: it for part, it in after.items() if part != "field"}


@pytest.mark.parametrize("options", [{}, {"delete.handling.mode": "rewrite", "add.fields": "op", "add.headers": "op"}])
@SCHEMAS
def test_records_given_are_never_changed(schema: Schema | None, options: dict[str, str]) -> None:
    for one in (INSERT, SET_NULL, DELETE, ("u", None, None)):
        given = record(*one, schema=schema, headers=[("h", "x")])
        before = copy.deepcopy(given)
        run(JAVA, options, given)
        assert given == before


def test_plans_do_not_pile_up() -> None:
    transform = build_transform(JAVA)
    for _ in range(600):
        found = transform(record(*INSERT, schema=copy.deepcopy(LEGACY)))
        assert found is not None and found.value == ROW
