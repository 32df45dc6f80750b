"""Hand-written records, decoded and shown without Kafka: what lands, and what becomes a dead letter and why."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.decode.records import decoded_json
from spark_jobs.fold.fold import folded
from spark_jobs.fold.view import visible_rows
from spark_jobs.functions.serialised_columns import register_functions
from spark_jobs.model.definitions import TableDefinition, parse_definition
from spark_jobs.model.layout import Layout
from spark_jobs.model.patches import changes_patch
from spark_jobs.model.shape import shape
from tests.spark_jobs.landing_feed import cell, change, schema_record

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800), pytest.mark.usefixtures("interpreted")]

RANGES = "t.range-deletes"
IMAGES = {"format": "advanced", "after": "full", "collections": "skip", "range_deletes": "topic"}


def _version(columns: str, **more: Any) -> TableDefinition:
    return parse_definition(schema_record("ks", "t", columns, **more).decode())


class Feed:
    """Records of one table on their way to rows and letters. A record may come with key, topic and Kafka's time."""

    def __init__(self, spark: SparkSession, *versions: TableDefinition, source: TableDefinition | None = None) -> None:
        self.spark = spark
        self.layout: Layout = shape(versions, source=source)
        self.records: list[tuple[Any, ...]] = []

    def add(self, value: Any, key: Any = None, topic: str = "t", kafka_ms: int = 2_000_000_000_000) -> None:
        raw = value if isinstance(value, bytes) else json.dumps(value).encode()
        named = None if key is None else bytearray(json.dumps(key).encode())
        self.records.append((named, bytearray(raw), topic, 0, len(self.records), kafka_ms))

    def landed(self) -> tuple[list[Any], dict[int, str]]:
        """The visible rows, and the reasons of the letters by the place of their record."""
        schema = "key binary, value binary, topic string, partition int, offset bigint, ms bigint"
        batch = self.spark.createDataFrame(self.records, schema).selectExpr("*", "timestamp_millis(ms) AS timestamp")
        register_functions(self.spark, self.layout)
        decoded_json(batch, self.layout, 1, RANGES).createOrReplaceTempView("fed")
        letters = self.spark.sql("SELECT offset, reason FROM fed WHERE reason IS NOT NULL").collect()
        text = folded(self.layout, [changes_patch(self.layout, "SELECT * FROM fed WHERE segment = 1")])
        rows = self.spark.sql(visible_rows(self.layout, text)).collect()
        return sorted((_plain(row) for row in rows), key=repr), {row["offset"]: row["reason"] for row in letters}


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_plain(part) for part in value)
    return value


def _ranged(start: Any, end: Any, time: int = 5) -> dict[str, Any]:
    bounds = {"start": {"values": start, "inclusive": True}, "end": {"values": end, "inclusive": True}}
    return {"source": {"ts_us": time}, "kind": "range", "partition": {"pk": 1}, **bounds}


def test_values_whose_text_is_none_of_their_type_are_letters_and_end_nothing(spark: SparkSession) -> None:
    feed = Feed(
        spark,
        _version(
            "pk partition_key int; ck clustering inet; n regular decimal; d regular duration; "
            "m regular map<varint, int>; f regular frozen<tuple<inet, int>>; l regular list<varint>"
        ),
    )
    key = {"pk": 1, "ck": "1.2.3.4"}
    delta = {"mode": "modify", "elements": [{"key": "1", "value": 2}]}
    good = [{"n": cell("1E+3"), "d": cell("-1mo2d"), "m": cell(delta), "f": cell({"field_0": "::1", "field_1": None})}]
    wrong: list[dict[str, Any]] = [
        {"n": cell("abc")},
        {"d": cell("five minutes")},
        {"m": cell({"mode": "modify", "elements": [{"key": "x", "value": 1}]})},
        {"m": cell({"mode": "modify", "elements": [None]})},
        {"l": cell({"mode": "modify", "elements": [{"key": str(uuid.uuid1()), "value": "1.5"}]})},
        {"f": cell({"field_0": "300.1.1.1", "field_1": 1})},
        {"ck": "nowhere"},
        {"n": cell("7"), "pk": "text"},
    ]
    for row in good + wrong:
        feed.add(change("c", 10, {**key, **row}))
    for start, end in ((["1.2.3.4"], ["nowhere"]), (None, []), (["1.1.1.1", "1.1.1.1"], []), ([], [None])):
        feed.add(_ranged(start, end), topic=RANGES)
    feed.add(change("x", 10, {**key, "n": cell("8")}))
    rows, letters = feed.landed()
    assert rows == [(1, "1.2.3.4", "-1mo2d", ("::1", None), None, {"1": 2}, "1E+3")]
    assert letters == {**dict.fromkeys(range(1, 13), "CORRUPT"), 13: "BAD_OP"}


def test_a_row_of_a_snapshot_is_the_whole_row_at_its_time(spark: SparkSession) -> None:
    feed = Feed(spark, _version("pk partition_key int; ck clustering int; s static int; v regular int; w regular int"))
    nothing: dict[str, Any] = {"s": None, "v": None, "w": None}
    for ck in (1, 2, 3):
        feed.add(change("u", 10, {"pk": 1, "ck": ck, **nothing, "v": cell(7), "w": cell(7)}))
    feed.add(change("r", 20, {"pk": 1, "ck": 1, **nothing, "v": cell(8), "w": cell(None)}))
    feed.add(change("r", 20, {"pk": 1, "ck": 2, **nothing, "v": cell(None), "w": cell(None)}))
    feed.add(change("r", 20, {"pk": 1, "ck": None, **nothing, "s": cell(5)}))
    feed.add(change("r", 20, {"pk": 2, "ck": None, **nothing, "s": cell(6)}))
    feed.add(change("u", 15, {"pk": 1, "ck": 1, **nothing, "w": cell(1)}))
    feed.add(change("u", 25, {"pk": 1, "ck": 2, **nothing, "w": cell(2)}))
    rows, letters = feed.landed()
    assert not letters
    assert rows == [(1, 1, 5, 8, None), (1, 2, 5, None, 2), (1, 3, 5, 7, 7), (2, None, 6, None, None)]


def test_images_take_the_row_from_the_key_where_the_value_does_not_name_it(spark: SparkSession) -> None:
    feed = Feed(
        spark, _version("pk partition_key int; ck clustering text; s static int; v regular list<int>", output=IMAGES)
    )
    for ck in ("a", "b", "c", "d"):
        feed.add(change("c", 10, {"pk": 1, "ck": ck, "v": [1, 2]}), {"pk": 1, "ck": ck})
    gone = {"source": {"ts_us": 11}, "before": None, "after": None, "op": "d"}
    feed.add(gone, {"pk": 1, "ck": "a"})
    feed.add(gone, {"schema": {"type": "struct"}, "payload": {"pk": 1, "ck": "b"}})
    feed.add({**gone, "before": {"pk": 1, "ck": "c"}})
    feed.add(gone)
    feed.add(gone, "nothing")
    feed.add({"source": {"ts_us": 12}, "before": None, "after": {"s": 7}, "op": "u"}, {"pk": 1, "ck": None})
    feed.add({"source": {"ts_us": 12}, "before": None, "after": {"v": [3]}, "op": "c"}, {"pk": 2, "ck": "z"})
    feed.add({"source": {"ts_us": 10}, "after": {"v": [4]}, "op": "u"}, {"pk": 3, "ck": "y"})
    feed.add({"source": {"ts_us": 11}, "after": None, "op": "u"}, {"pk": 3, "ck": "y"})
    rows, letters = feed.landed()
    assert rows == [(1, "d", 7, (1, 2)), (2, "z", None, (3,))]
    assert letters == {7: "NO_ROW", 8: "NO_KEY"}


def test_fields_that_a_user_type_does_not_have_are_letters_wherever_they_stand(spark: SparkSession) -> None:
    kinds = {"inner": [["a", "int"]], "addr": [["street", "text"], ["at", "frozen<inner>"]]}
    columns = "pk partition_key int; u regular addr; f regular frozen<addr>; l regular list<frozen<inner>>"
    columns += "; m regular map<frozen<inner>, frozen<map<int, frozen<tuple<inner>>>>>"
    feed = Feed(spark, _version(columns, types=kinds))
    row = {"street": "x", "at": {"a": 1}}
    more = {"street": "x", "at": {"a": 1, "new": 2}}

    def elements(*pairs: tuple[Any, Any]) -> dict[str, Any]:
        return cell({"mode": "modify", "elements": [{"key": key, "value": value} for key, value in pairs]})

    def parts(**given: Any) -> dict[str, Any]:
        return cell({"mode": "modify", "elements": {name: cell(value) for name, value in given.items()}})

    at = "8d1c5f00-1234-11ee-8080-808080808080"
    known = {"u": parts(**row), "f": cell(row), "l": elements((at, {"a": 1})), "m": elements(({"a": 1}, None))}
    feed.add(change("c", 10, {"pk": 1, **known}))
    for given in (
        {"u": parts(street="y", new=1)},
        {"u": parts(**more)},
        {"f": cell({**row, "new": None})},
        {"f": cell(more)},
        {"l": elements((at, {"a": 1, "new": 1}))},
        {"m": elements(({"a": 1, "new": 1}, None))},
        {"m": elements(({"a": 1}, [{"key": 1, "value": {"field_0": {"new": 1}}}]))},
    ):
        feed.add(change("u", 11, {"pk": 1, **given}))
    rows, letters = feed.landed()
    assert rows == [(1, ("x", (1,)), ((1,),), None, ("x", (1,)))]
    assert letters == dict.fromkeys(range(1, 8), "UNKNOWN_FIELD")


def test_kept_columns_are_those_of_all_rows_that_the_source_has(spark: SparkSession) -> None:
    """A row of which only other columns have values was not there, a static one among them was a letter, and so was,
    without metadata, a field that a user type has by now."""
    head = "pk partition_key int; ck clustering int; v regular text; u regular u; f regular frozen<u>"
    kept = _version(head, types={"u": [["a", "int"]]})
    more = f"{head}; s static int; n regular int; m regular map<int, int>"
    after = _version(more, types={"u": [["a", "int"], ["b", "int"]]})
    feed = Feed(spark, kept, after, kept, source=after)
    rows: list[dict[str, Any]] = [
        {"pk": 1, "ck": 1, "n": cell(7)},
        {"pk": 1, "ck": 2, "m": cell({"mode": "modify", "elements": [{"key": 1, "value": 1}]})},
        {"pk": 1, "ck": 3, "u": cell({"mode": "modify", "elements": {"b": cell(5)}})},
        {"pk": 1, "ck": 4, "u": cell({"mode": "modify", "elements": {"a": cell(6), "b": cell(5)}})},
        {"pk": 1, "ck": 5, "f": cell({"a": 1, "b": 2})},
        {"pk": 2, "s": cell(1)},
        {"pk": 3, "ck": 1, "n": cell(None)},
        {"pk": 3, "s": cell(None)},
    ]
    for at, row in enumerate(rows):
        feed.add(json.loads(change("u", 1000 + at, row)))
    # In the order of columns that a landed table has: keys, then the others by name.
    nothing = (None, None, None)
    others = [(1, 1, *nothing), (1, 2, *nothing), (2, None, *nothing)]
    of_types = [(1, 3, *nothing), (1, 4, None, (6,), None), (1, 5, (1,), None, None)]
    assert feed.landed() == (sorted([*others, *of_types], key=repr), {})
    # What the source has dropped is no row's, and what it has written of that is nobody's letter.
    feed.layout = shape([kept, after, kept], source=_version(head, types={"u": [["a", "int"], ["b", "int"]]}))
    assert feed.landed() == (sorted(of_types, key=repr), {})


def test_a_recreated_table_may_give_its_columns_other_parts_to_play(spark: SparkSession) -> None:
    old = _version(
        "pk partition_key int; ck clustering int; v regular text; w regular int",
        table_id="5132b130-ae79-11e4-ab27-0800200c9a66",
    )
    new = _version(
        "v partition_key text; w clustering int; pk regular int; ck regular text",
        table_id="6132b130-ae79-11e5-ab27-0800200c9a66",
    )
    feed = Feed(spark, old, new)
    assert new.created_ms is not None
    before, after = new.created_ms - 1, new.created_ms
    feed.add(change("c", 9, {"pk": 1, "ck": 2, "v": cell("old"), "w": cell(1)}), kafka_ms=before)
    feed.add(_ranged([1], [3]), topic=RANGES, kafka_ms=before)
    feed.add(b"not json", kafka_ms=before)
    feed.add(change("c", 9, {"v": "new", "w": 1, "pk": cell(5), "ck": cell("x")}), kafka_ms=after)
    feed.add(b"not json", kafka_ms=after)
    rows, letters = feed.landed()
    assert rows == [("new", 1, "x", 5)]
    assert letters == {4: "CORRUPT"}
