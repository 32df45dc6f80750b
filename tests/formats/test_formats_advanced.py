"""The advanced format beyond the golden cases: missing images, placements, the strict mode."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from connector.changes import Row
from connector.formats.encoder import Encoder
from tests.formats.golden import NOW_NS
from tests.formats.options import output_options
from tests.formats.rows import Log, table

LOG = Log(table({"pk": "int", "ck": "int", "v": "text", "w": "int", "l": "list<int>"}, clustering=("ck",)))
KEY = {"pk": 1, "ck": 2}
EARLY, LATE = uuid.UUID("7fffffff-0000-11f0-8000-000000000000"), uuid.UUID("00000000-0001-11f0-8000-000000000000")


def encoded(*rows: Row, **properties: str) -> list[tuple[Any, Any]]:
    encoder = Encoder(output_options(**{"cdc.output.format": "advanced"}, **properties), clock=lambda: NOW_NS)
    records = [record for change in LOG.changes(*rows) for record in encoder.encode(change)]
    return [(record.key, json.loads(record.value or b"null")) for record in records]


def images(before: str, after: str) -> dict[str, str]:
    return {"cdc.include.before": before, "cdc.include.after": after}


BEFORE = LOG.row(0, 0, v="old", w=1, **KEY)
UPDATE = LOG.row(1, 1, v="new", **KEY)
AFTER = LOG.row(9, 2, v="new", w=5, **KEY)


@pytest.mark.parametrize("mode", ["full", "only-updated"])
def test_an_update_without_images_is_written_all_the_same(mode: str) -> None:
    ((_, value),) = encoded(UPDATE, **images(mode, mode))
    assert (value["op"], value["before"], value["after"]) == ("u", None, None)


def test_an_update_without_its_post_image_shows_the_pre_image_as_it_is() -> None:
    ((_, value),) = encoded(BEFORE, UPDATE, **images("full", "full"))
    assert value["before"] == {"ck": 2, "l": None, "pk": 1, "v": "old", "w": 1}
    assert value["after"] is None


def test_before_takes_what_was_not_modified_from_the_post_image() -> None:
    ((_, value),) = encoded(BEFORE, UPDATE, AFTER, **images("full", "full"))
    assert value["before"] == {"ck": 2, "l": None, "pk": 1, "v": "old", "w": 5}
    ((_, value),) = encoded(BEFORE, UPDATE, AFTER, **images("full", "none"))
    assert value["before"] == {"ck": 2, "l": None, "pk": 1, "v": "old", "w": 1}


def test_removed_elements_make_a_column_modified() -> None:
    rows = [
        LOG.row(0, 0, l=[(EARLY, 1), (LATE, 2)], **KEY),
        LOG.row(1, 1, removed={"l": [EARLY]}, **KEY),
        LOG.row(9, 2, True, l=[(LATE, 2)], w=3, **KEY),
    ]
    ((_, value),) = encoded(*rows, **images("only-updated", "only-updated"))
    assert value["before"] == {"ck": 2, "l": [1, 2], "pk": 1, "v": None, "w": None}
    assert value["after"] == {"ck": 2, "l": [2], "pk": 1, "v": None, "w": None}


def test_to_java_a_zero_length_value_modifies_nothing() -> None:
    rows = [
        BEFORE,
        LOG.row(1, 1, **KEY, raw={"w": b"", "v": b""}),
        LOG.row(9, 2, True, **KEY, raw={"w": b"", "v": b""}),
    ]
    ((_, value),) = encoded(*rows, **images("only-updated", "full"))
    assert (value["before"]["w"], value["before"]["v"]) == (1, "old")
    ((_, value),) = encoded(*rows, **images("only-updated", "full"), **{"scylla.compatibility": "strict"})
    assert (value["before"]["w"], value["before"]["v"]) == (None, "old")


KEYS_ONLY = LOG.row(1, 1, **KEY)
WAS_NULL = LOG.row(0, 0, deleted=("l",), v="old", w=5, **KEY)


@pytest.mark.parametrize(
    ("before", "after", "sides", "shown"),
    [
        # Of pre-images that hold what was modified alone, and of full ones.
        (BEFORE, AFTER, ("full", "full"), (("old", 1), ("new", 5))),
        (WAS_NULL, AFTER, ("full", "full"), (("old", 5), ("new", 5))),
        (WAS_NULL, AFTER, ("only-updated", "only-updated"), (("old", None), ("new", None))),
        (WAS_NULL, AFTER, ("only-updated", "full"), (("old", None), ("new", 5))),
        (WAS_NULL, None, ("only-updated", "none"), (("old", 5), None)),
        (None, AFTER, ("full", "only-updated"), (None, ("new", 5))),
    ],
)
def test_what_keys_only_deltas_modified_is_told_by_the_images(
    before: Row | None, after: Row | None, sides: tuple[str, str], shown: tuple[Any, Any]
) -> None:
    rows = [row for row in (before, KEYS_ONLY, after) if row is not None]
    ((_, value),) = encoded(*rows, **images(*sides))
    assert tuple(side and (side["v"], side["w"]) for side in (value["before"], value["after"])) == shown


def test_to_java_keys_only_deltas_modify_nothing() -> None:
    strict = {"scylla.compatibility": "strict"}
    ((_, value),) = encoded(BEFORE, KEYS_ONLY, AFTER, **images("only-updated", "only-updated"), **strict)
    assert value["before"] == value["after"] == {"ck": 2, "l": None, "pk": 1, "v": None, "w": None}
    ((_, value),) = encoded(BEFORE, KEYS_ONLY, AFTER, **images("full", "full"), **strict)
    assert value["before"] == value["after"]


def test_lists_are_in_their_order_unless_strict() -> None:
    row = LOG.row(9, 1, True, l=[(EARLY, 1), (LATE, 2)], **KEY)
    insert = LOG.row(2, 0, l=[(EARLY, 1), (LATE, 2)], **KEY)
    ((_, value),) = encoded(insert, row, **images("none", "full"))
    assert value["after"]["l"] == [1, 2]
    ((_, value),) = encoded(insert, row, **images("none", "full"), **{"scylla.compatibility": "strict"})
    assert value["after"]["l"] == [2, 1]


def test_without_kafka_key_records_have_none() -> None:
    options = output_options(**{"cdc.output.format": "advanced"}, **images("full", "none"))
    placed = options.but(key_placement=frozenset(("payload-after", "payload-key")))
    encoder = Encoder(placed, clock=lambda: NOW_NS)
    (change,) = LOG.changes(BEFORE, LOG.row(3, 1, True, **KEY))
    record, tombstone = encoder.encode(change)
    assert (record.key, tombstone.key, tombstone.value) == (None, None, None)
    value = json.loads(record.value or b"")
    assert value["key"] == KEY
    assert value["before"] == {"l": None, "v": "old", "w": 1}


def test_the_placement_decides_over_the_schema_too() -> None:
    properties = {
        "cdc.output.format": "advanced",
        "cdc.include.primary-key.placement": "kafka-key,payload-before,payload-key",
        "cdc.include.primary-key.payload-key-name": "id",
        "value.converter.schemas.enable": "true",
        "key.converter.schemas.enable": "true",
    }
    encoder = Encoder(output_options(**properties), clock=lambda: NOW_NS)
    (change,) = LOG.changes(UPDATE)
    (record,) = encoder.encode(change)
    schema = json.loads(record.value or b"")["schema"]
    fields = {field["field"]: field for field in schema["fields"]}
    assert list(fields) == ["source", "before", "after", "id", "op", "ts_ms", "transaction", "ts_us", "ts_ns"]
    assert [field["field"] for field in fields["before"]["fields"]] == ["ck", "l", "pk", "v", "w"]
    assert [field["field"] for field in fields["after"]["fields"]] == ["l", "v", "w"]
    assert (fields["id"]["name"], fields["id"]["optional"]) == ("cases.ks.t.Key", False)
    assert json.loads(record.key or b"")["schema"] == {key: fields["id"][key] for key in fields["id"] if key != "field"}


@pytest.mark.parametrize("name", ["pk-x", 'the "key"', "clé.1"])
def test_the_key_in_the_payload_has_any_name(name: str) -> None:
    placed = {"cdc.include.primary-key.placement": "kafka-key,payload-key"}
    named = {"cdc.include.primary-key.payload-key-name": name}
    ((_, value),) = encoded(UPDATE, **images("none", "none"), **placed, **named)
    ((_, plain),) = encoded(UPDATE, **images("none", "none"), **placed)
    assert value.pop(name) == plain.pop("key") == KEY
    assert value == plain
