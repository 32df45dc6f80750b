"""The legacy format beyond the golden cases: what it leaves out, deltas of collections, metadata, pre-images."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from connector.changes import Row
from connector.formats.encoder import Encoder
from connector.values.types import UserType, native, parse_type
from tests.formats.golden import NOW_NS
from tests.formats.options import output_options
from tests.formats.rows import STREAM, TIME, Log, table

U = UserType("ks", "u", (("a", native("int")), ("b", parse_type("frozen<list<int>>"))))
DELTA = {"cdc.include.collections": "delta"}
FIRST, SECOND = uuid.UUID(int=1 << 100, version=1), uuid.UUID(int=1 << 101, version=1)
COLUMNS = {
    "pk": "frozen<tuple<int, text>>",
    "ck": "int",
    "m": "map<int, text>",
    "st": "set<text>",
    "l": "list<int>",
    "u": "u",
    "fu": "frozen<u>",
    "fl": "frozen<list<int>>",
    "t": "frozen<tuple<int, int>>",
    "vec": "vector<float, 2>",
    "v": "text",
}
LOG = Log(table(COLUMNS, clustering=("ck",), types={"u": U}))


def encoded(log: Log, *rows: Row, **properties: str) -> list[tuple[Any, Any]]:
    encoder = Encoder(output_options(**properties), clock=lambda: NOW_NS)
    records = [record for change in log.changes(*rows) for record in encoder.encode(change)]
    return [
        (json.loads(record.key or b"null"), None if record.value is None else json.loads(record.value))
        for record in records
    ]


def after(*rows: Row, **properties: str) -> Any:
    ((_, value),) = encoded(LOG, *rows, **properties)
    return value["after"]


def test_collections_tuples_and_user_types_are_left_out() -> None:
    row = LOG.row(2, 0, True, pk=(1, "x"), ck=2, m=[(1, "a")], fl=[1], t=(1, 2), vec=[1.5, 2.0], v="y")
    ((key, value),) = encoded(LOG, row)
    assert key == {"ck": 2}
    assert value["after"] == {"ck": 2, "v": {"value": "y"}, "vec": {"value": [1.5, 2.0]}}


def test_a_key_of_nothing_but_collections_is_an_empty_struct() -> None:
    log = Log(table({"pk": "frozen<list<int>>", "v": "int"}))
    ((key, value),) = encoded(log, log.row(2, 0, True, pk=[1], v=3))
    assert key == {}
    assert value["after"] == {"v": {"value": 3}}


def test_zero_length_values_are_null_cells() -> None:
    log = Log(table({"pk": "int", "i": "int", "t": "text"}))
    ((_, value),) = encoded(log, log.row(2, 0, True, raw={"i": b"", "t": b""}, pk=1))
    assert value["after"] == {"i": {"value": None}, "pk": 1, "t": {"value": ""}}


def test_to_java_zero_length_values_are_not_there() -> None:
    log = Log(table({"pk": "int", "i": "int", "t": "text", "d": "date"}))
    empty = {"i": b"", "t": b"", "d": b""}
    rows = [log.row(0, 0, pk=1, raw=empty), log.row(1, 1, True, pk=1, raw=empty, deleted=("d",))]
    strict = {"scylla.compatibility": "strict", "experimental.preimages.enabled": "true"}
    ((_, value),) = encoded(log, *rows, **strict)
    assert value["after"] == value["before"] == {"d": {"value": None}, "i": None, "pk": 1, "t": {"value": ""}}


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ({}, None),
        ({"m": [(1, "a")]}, {"mode": "modify", "elements": [{"key": 1, "value": "a"}]}),
    ],
)
def test_map_deltas(held: dict[str, Any], expected: Any) -> None:
    shown = after(LOG.row(1, 0, True, pk=(1, "x"), ck=2, **held), **DELTA)["m"]
    assert shown == (None if expected is None else {"value": expected})


def delta(column: str, value: Any = None, deleted: bool = False, removed: Any = None) -> Any:
    row = LOG.row(
        1,
        0,
        True,
        deleted=(column,) if deleted else (),
        removed=None if removed is None else {column: removed},
        pk=(1, "x"),
        ck=2,
        **{column: value},
    )
    return after(row, **DELTA)[column]


def test_deltas_of_collections() -> None:
    assert delta("m", [(1, "a")], removed=[7]) == {
        "value": {"mode": "modify", "elements": [{"key": 1, "value": "a"}, {"key": 7, "value": None}]}
    }
    assert delta("m", [(1, "a")], deleted=True) == {
        "value": {"mode": "overwrite", "elements": [{"key": 1, "value": "a"}]}
    }
    assert delta("m", deleted=True) == {"value": {"mode": "overwrite", "elements": []}}
    assert delta("st", ["a"], removed=["b"]) == {
        "value": {"mode": "modify", "elements": [{"key": "a", "value": True}, {"key": "b", "value": None}]}
    }
    assert delta("l", [(FIRST, 5)], removed=[SECOND]) == {
        "value": {
            "mode": "modify",
            "elements": [{"key": str(FIRST), "value": 5}, {"key": str(SECOND), "value": None}],
        }
    }


def test_deltas_of_user_types() -> None:
    assert delta("u", (1, None)) == {"value": {"mode": "modify", "elements": {"a": {"value": 1}, "b": None}}}
    assert delta("u", (None, None), removed=[1]) == {
        "value": {"mode": "modify", "elements": {"a": None, "b": {"value": None}}}
    }
    assert delta("u", (None, [1, 2]), deleted=True) == {
        "value": {"mode": "overwrite", "elements": {"a": None, "b": {"value": [1, 2]}}}
    }
    assert delta("u", (None, None), deleted=True) == {
        "value": {"mode": "overwrite", "elements": {"a": None, "b": None}}
    }


def test_frozen_values_beside_deltas_are_plain_cells() -> None:
    assert delta("fl", []) == {"value": []}
    assert delta("fl", deleted=True) == {"value": None}
    assert delta("fu", (None, None)) == {"value": {"a": None, "b": None}}
    assert delta("t", (1, None)) == {"value": {"field_0": 1, "field_1": None}}
    ((key, _),) = encoded(LOG, LOG.row(3, 0, True, pk=(1, "x"), ck=2), **DELTA, **{"tombstones.on.delete": "false"})
    assert key == {"ck": 2, "pk": {"field_0": 1, "field_1": "x"}}


def test_images_beside_deltas_are_overwrites() -> None:
    rows = [
        LOG.row(0, 0, deleted=("st",), pk=(1, "x"), ck=2, m=[(1, "a")], u=(1, None), v="old"),
        LOG.row(1, 1, True, deleted=("st", "l"), removed={"m": [1]}, pk=(1, "x"), ck=2, u=(None, [3]), v="new"),
    ]
    ((_, value),) = encoded(LOG, *rows, **DELTA, **{"experimental.preimages.enabled": "true"})
    before = value["before"]
    assert before["m"] == {"value": {"mode": "overwrite", "elements": [{"key": 1, "value": "a"}]}}
    assert before["u"] == {"value": {"mode": "overwrite", "elements": {"a": {"value": 1}, "b": None}}}
    assert before["st"] == before["l"] == {"value": {"mode": "overwrite", "elements": []}}
    assert before["v"] == {"value": "old"}
    assert before["fl"] is None


def test_metadata_ends_the_source_block() -> None:
    row = LOG.row(-3, 4, True, ttl=60, pk=(1, "x"), ck=2)
    (_, value), _ = encoded(LOG, row, **{"cdc.include.metadata": "true"})
    assert list(value["source"].items())[11:] == [
        ("stream_id", STREAM.hex()),
        ("time", str(TIME)),
        ("batch_seq_no", 4),
        ("operation", -3),
        ("ttl", 60),
    ]


def test_a_pre_image_is_used_only_when_asked_for_and_never_by_a_later_change() -> None:
    log = Log(table({"pk": "int", "v": "text"}))
    rows = [log.row(0, 0, pk=1, v="old"), log.row(1, 1, True, pk=1, v="new")]
    ((_, without),) = encoded(log, *rows)
    assert without["before"] is None
    assert without["ts_us"] == NOW_NS // 1000
    encoder = Encoder(output_options(**{"experimental.preimages.enabled": "true"}), clock=lambda: NOW_NS)
    later = log.row(1, 0, True, time=uuid.UUID(int=TIME.int + (1 << 96)), pk=1, v="newer")
    changes = log.changes(*rows) + log.changes(later)
    shown = [json.loads(encoder.encode(change)[0].value or b"") for change in changes]
    assert [value["before"] for value in shown] == [{"pk": 1, "v": {"value": "old"}}, None]
    assert [value["ts_us"] for value in shown] == [None, NOW_NS // 1000]


def test_a_delete_with_its_pre_image_keeps_all_times() -> None:
    log = Log(table({"pk": "int", "v": "text"}))
    rows = [log.row(0, 0, pk=1, v="old"), log.row(4, 1, True, pk=1)]
    (_, value), (_, tombstone) = encoded(log, *rows, **{"experimental.preimages.enabled": "true"})
    assert value["before"] == {"pk": 1, "v": {"value": "old"}}
    assert value["ts_ns"] == NOW_NS
    assert tombstone is None


def test_the_pre_image_belongs_to_the_first_of_several_operations_on_a_row() -> None:
    log = Log(table({"pk": "int", "v": "text", "w": "int"}))
    rows = [
        log.row(0, 0, pk=1, v="old"),
        log.row(2, 1, ttl=5, pk=1, v="new"),
        log.row(1, 2, True, deleted=("w",), pk=1),
    ]
    (_, first), (_, second) = encoded(log, *rows, **{"experimental.preimages.enabled": "true"})
    assert first["before"] == {"pk": 1, "v": {"value": "old"}, "w": None}
    assert (second["before"], second["ts_us"]) == (None, NOW_NS // 1000)


def test_times_before_1970_are_cut_towards_zero() -> None:
    log = Log(table({"pk": "int"}))
    ticks = 0x01B21DD213814000 - 15_000
    early = uuid.UUID(fields=(ticks & 0xFFFFFFFF, ticks >> 32 & 0xFFFF, 0x1000 | ticks >> 48, 0x80, 0, 1))
    ((_, value),) = encoded(log, log.row(2, 0, True, time=early, pk=1))
    assert [value["source"][name] for name in ("ts_us", "ts_ms", "ts_ns")] == [-1500, -1, -1_000_000]


@pytest.mark.parametrize(("ms", "ns"), [(9223372036854, 9223372036854000000), (9223372036855, -9223372036854551616)])
def test_nanoseconds_after_2262_go_round_as_in_java(ms: int, ns: int) -> None:
    ticks = ms * 10_000 + 0x01B21DD213814000
    time = uuid.UUID(fields=(ticks & 0xFFFFFFFF, ticks >> 32 & 0xFFFF, ticks >> 48 | 0x1000, 0, 0, 0))
    log = Log(table({"pk": "int"}))
    (change,) = log.changes(log.row(2, 0, True, time, pk=1))
    (record,) = Encoder(output_options(), clock=lambda: NOW_NS).encode(change)
    assert json.loads(record.value or b"")["source"]["ts_ns"] == ns


def test_names_of_cells_are_made_fit_for_avro() -> None:
    log = Log(table({"pk": "int", "My col": "int", "m-x": "map<int, int>"}))
    encoder = Encoder(output_options(**DELTA, **{"value.converter.schemas.enable": "true"}))
    (change,) = log.changes(log.row(2, 0, True, pk=1))
    schema = json.loads(encoder.encode(change)[0].value or b"")["schema"]
    after = {field["field"]: field["name"] for field in schema["fields"][2]["fields"] if "name" in field}
    assert after == {"My col": "cases.ks.t.My_col.Cell", "m-x": "cases.ks.t.m_x.Cell"}
