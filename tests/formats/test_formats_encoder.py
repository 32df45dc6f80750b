"""The encoder: skipped operations, tombstones, range deletes, heartbeats, transforms, records that cannot be made."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from connector.changes import TableDescription
from connector.config import TransformSpec
from connector.errors import ConfigurationError, PoisonRecord, PoisonRow, Problem
from connector.formats.encoder import Encoder
from connector.formats.record import DecodedRecord, Record
from connector.formats.transforms import build_transforms, check_transform
from tests.formats.golden import NOW_NS
from tests.formats.options import output_options
from tests.formats.rows import Log, table

LOG = Log(table({"p": "int", "a": "int", "b": "text", "s": "text", "v": "text"}, ("p",), ("a", "b"), ("s",)))
SINGLE = Log(table({"id": "int", "v": "text"}, partition=("id",)))


def encoder(**properties: str) -> Encoder:
    return Encoder(output_options(**properties), clock=lambda: NOW_NS)


def encode(made: Encoder, log: Log, *rows: Any) -> list[Record]:
    return [record for change in log.changes(*rows) for record in made.encode(change)]


def test_skipped_operations_get_no_record_nor_tombstone_and_are_counted() -> None:
    made = encoder(**{"skipped.operations": "c,d"})
    assert encode(made, LOG, LOG.row(2, 0, True, p=1, a=1, b="x")) == []
    assert encode(made, LOG, LOG.row(3, 0, True, p=1, a=1, b="x")) == []
    assert len(encode(made, LOG, LOG.row(1, 0, True, p=1, a=1, b="x"))) == 1
    assert made.skipped == {("ks.t", "operation_c"): 1, ("ks.t", "operation_d"): 1}


def test_tombstones_can_be_switched_off() -> None:
    row = LOG.row(3, 0, True, p=1, a=1, b="x")
    kinds = [[record.kind for record in encode(encoder(), LOG, row)]]
    kinds += [[record.kind for record in encode(encoder(**{"tombstones.on.delete": "false"}), LOG, row)]]
    assert kinds == [["data", "tombstone"], ["data"]]


RANGE = (LOG.row(5, 0, p=1, a=1), LOG.row(8, 1, True, p=1, a=5, b="x"))


def test_range_deletes_are_skipped_counted_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    made = encoder()
    assert encode(made, LOG, *RANGE) == []
    assert encode(made, LOG, LOG.row(4, 0, True, p=1)) == []
    assert encode(made, LOG, *RANGE) == []
    assert made.skipped == {("ks.t", "range_delete"): 2, ("ks.t", "partition_delete"): 1}
    (said,) = caplog.messages
    assert said.startswith("ks.t: skipped a delete of several rows")


def test_range_deletes_as_records() -> None:
    made = encoder(**{"cdc.range.deletes": "topic"})
    (record,) = encode(made, LOG, *RANGE)
    assert (record.topic, record.kind, record.key) == ("cases.ks.t.range-deletes", "range_delete", b'{"p":1}')
    value = json.loads(record.value or b"")
    assert list(value) == ["source", "kind", "partition", "start", "end", "ts_ms", "ts_us", "ts_ns"]
    assert (value["kind"], value["partition"]) == ("range", {"p": 1})
    assert value["start"] == {"values": [1], "inclusive": True}
    assert value["end"] == {"values": [5, "x"], "inclusive": False}
    assert value["ts_ns"] == NOW_NS
    (record,) = encode(made, LOG, LOG.row(-4, 0, True, p=2))
    value = json.loads(record.value or b"")
    assert (value["kind"], value["partition"], value["start"], value["end"]) == ("partition", {"p": 2}, None, None)
    (record,) = encode(made, LOG, LOG.row(5, 0, p=1), LOG.row(7, 1, True, p=1))
    value = json.loads(record.value or b"")
    assert (value["kind"], value["start"]["values"], value["end"]["values"]) == ("range", [], [])


@pytest.mark.parametrize("more", [{}, {"transforms": "x", "transforms.x.type": "InsertHeader"}])
def test_records_with_metadata_say_which_version_of_which_table_they_were_made_by(more: dict[str, str]) -> None:
    if more:
        more = {**more, "transforms.x.header": "h", "transforms.x.value.literal": "v"}
    writes = [[LOG.row(1, 0, True, p=1, a=1, b="x")], [LOG.row(3, 0, True, p=1, a=1, b="x")], RANGE]
    made = encoder(**{"cdc.include.metadata": "true", "cdc.range.deletes": "topic", **more})
    version = json.loads(made.schema_record(LOG.description).value or b"")
    said = [("scylla.table.id", b"id"), ("scylla.schema.version", version["version"].encode())]
    added = [("h", b"v")] if more else []
    found = [(record.kind, record.headers) for rows in writes for record in encode(made, LOG, *rows)]
    assert found == [
        (kind, [*added, *(() if kind == "tombstone" else said)])
        for kind in ("data", "data", "tombstone", "range_delete")
    ]
    assert not any(record.headers for rows in writes for record in encode(encoder(), LOG, *rows))


def test_bounds_with_schemas_are_structs_with_a_length() -> None:
    made = encoder(**{"cdc.range.deletes": "topic", "value.converter.schemas.enable": "true"})
    (record,) = encode(made, LOG, *RANGE)
    document = json.loads(record.value or b"")
    assert document["payload"]["start"] == {"values": {"a": 1, "b": None}, "length": 1, "inclusive": True}
    assert document["payload"]["end"] == {"values": {"a": 5, "b": "x"}, "length": 2, "inclusive": False}
    assert document["schema"]["name"] == "cases.ks.t.RangeDelete"


def test_partition_deletes_of_single_row_partitions_stay_deletes() -> None:
    data, tombstone = encode(encoder(**{"cdc.range.deletes": "topic"}), SINGLE, SINGLE.row(4, 0, True, id=1))
    assert json.loads(data.value or b"")["op"] == "d"
    assert tombstone.value is None


def test_heartbeats() -> None:
    (record,) = encoder().heartbeat()
    assert record == Record(
        "__debezium-heartbeat.cases", b'{"serverName":"cases"}', b'{"ts_ms":1700000000123}', [], "heartbeat", 0
    )


def test_a_heartbeat_that_a_transform_has_no_use_for_is_a_mistake_in_the_configuration() -> None:
    keyed = {"transforms": "key", "transforms.key.type": "ValueToKey", "transforms.key.fields": "op"}
    with pytest.raises(ConfigurationError, match=r"__debezium-heartbeat\.cases: .*exist: op .*TopicNameMatches"):
        encoder(**keyed).heartbeat()
    routed = {"transforms": "day", "transforms.day.type": "TimestampRouter"}
    (record,) = encoder(**routed).heartbeat()
    assert record.topic == "__debezium-heartbeat.cases-20231114"
    with pytest.raises(ConfigurationError, match="no timestamp"):
        encoder(**routed, **{"scylla.compatibility": "strict"}).heartbeat()


def test_schema_records() -> None:
    made = encoder(
        **{"cdc.output.format": "advanced", "cdc.include.after": "full", "key.converter.schemas.enable": "true"}
    )
    record = made.schema_record(LOG.description)
    key, value = json.loads(record.key or b""), json.loads(record.value or b"")
    assert record.topic == "cases.schemas"
    assert list(value) == [
        "keyspace_name", "table_name", "table_id", "version", "columns", "types", "dropped", "cdc", "output",
    ]  # fmt: skip
    assert key == {"keyspace_name": "ks", "table_name": "t", "version": value["version"]}
    assert value["output"] == {
        "format": "advanced",
        "collections": "none",
        "range_deletes": "skip",
        "metadata": False,
        "before": "none",
        "after": "full",
        "skipped_operations": ["t"],
        "compatibility": "default",
    }
    assert made.schema_record(LOG.description) == record


def test_schema_versions_follow_table_and_output() -> None:
    def version(made: Encoder, description: TableDescription) -> str:
        return str(json.loads(made.schema_record(description).value or b"")["version"])

    versions = {
        version(encoder(), LOG.description),
        version(encoder(**{"cdc.range.deletes": "topic"}), LOG.description),
        version(encoder(), replace(LOG.description, table_id="other")),
    }
    assert len(versions) == 3


@pytest.mark.parametrize("column", ["v", "p"])
def test_a_cell_that_cannot_be_decoded_is_poison_that_names_the_column(column: str) -> None:
    row = LOG.row(1, 2, True, raw={column: b"\xff"}, p=1, a=1, b="x")
    with pytest.raises(PoisonRow, match=rf"ks\.t.*batch_seq_no 2: column {column}: "):
        encode(encoder(), LOG, row)


def test_a_bad_image_is_poison_only_where_it_is_used() -> None:
    rows = [SINGLE.row(0, 0, raw={"v": b"\xff"}, id=1), SINGLE.row(1, 1, True, id=1, v="x")]
    assert len(encode(encoder(), SINGLE, *rows)) == 1
    with pytest.raises(PoisonRow, match="column v"):
        encode(encoder(**{"experimental.preimages.enabled": "true"}), SINGLE, *rows)


def test_a_changed_table_gets_a_new_plan() -> None:
    made = encoder()
    newer = Log(table({"id": "int", "v": "text", "w": "int"}, partition=("id",)))
    values = []
    for log in (SINGLE, newer, SINGLE):
        (record,) = encode(made, log, log.row(2, 0, True, id=1))
        values.append(json.loads(record.value or b"")["after"])
    assert values == [{"id": 1, "v": None}, {"id": 1, "v": None, "w": None}, {"id": 1, "v": None}]


ROUTER = {
    "transforms": "route",
    "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.route.regex": r"cases\.(.*)\.(.*)",
    "transforms.route.replacement": "$2-of-${1}",
}


def test_the_router_sees_every_kind_of_record() -> None:
    settings = ROUTER | {"transforms.route.replacement": "$2-of-$1", "cdc.range.deletes": "topic"}
    made = encoder(**settings)
    records = (
        encode(
            made,
            LOG,
            LOG.row(3, 0, True, p=1, a=1, b="x"),
        )
        + encode(made, LOG, *RANGE)
        + made.heartbeat()
    )
    assert [(record.topic, record.kind) for record in records] == [
        ("t-of-ks", "data"),
        ("t-of-ks", "tombstone"),
        ("range-deletes-of-ks.t", "range_delete"),
        ("__debezium-heartbeat.cases", "heartbeat"),
    ]
    plain = encode(encoder(), LOG, LOG.row(3, 0, True, p=1, a=1, b="x"))
    assert [(r.key, r.value) for r in records[:2]] == [(r.key, r.value) for r in plain]
    assert made.schema_record(LOG.description).topic == "cases.schemas"


@pytest.mark.parametrize(
    ("predicate", "negate", "expected"),
    [
        ({"type": "TopicNameMatches", "pattern": ".*ks.t"}, "false", ["routed", "routed"]),
        ({"type": "TopicNameMatches", "pattern": "ks.t"}, "false", ["cases.ks.t", "cases.ks.t"]),
        ({"type": "TopicNameMatches", "pattern": "ks.t"}, "true", ["routed", "routed"]),
        ({"type": "RecordIsTombstone"}, "false", ["cases.ks.t", "routed"]),
        ({"type": "HasHeaderKey", "name": "pk.p"}, "false", ["routed", "routed"]),
        ({"type": "HasHeaderKey", "name": "ck.p"}, "false", ["cases.ks.t", "cases.ks.t"]),
    ],
)
def test_predicates(predicate: dict[str, str], negate: str, expected: list[str]) -> None:
    properties = {
        "cdc.output.format": "advanced",
        "cdc.include.primary-key.placement": "kafka-key,kafka-headers",
        "transforms": "route",
        "transforms.route.type": "RegexRouter",
        "transforms.route.regex": ".*",
        "transforms.route.replacement": "routed",
        "transforms.route.predicate": "chosen",
        "transforms.route.negate": negate,
        "predicates": "chosen",
    }
    properties |= {f"predicates.chosen.{name}": value for name, value in predicate.items()}
    records = encode(encoder(**properties), LOG, LOG.row(3, 0, True, p=1, a=1, b="x"))
    assert [record.topic for record in records] == expected


def chain(*steps: dict[str, str]) -> dict[str, str]:
    """The properties of a chain of transforms."""
    named = {f"t{number}": step for number, step in enumerate(steps)}
    return {"transforms": ",".join(named)} | {
        f"transforms.{alias}.{option}": text for alias, step in named.items() for option, text in step.items()
    }


@pytest.mark.parametrize(
    ("steps", "key", "value"),
    [
        (({"type": "ExtractField$Key", "field": "p"},), b"3", None),
        (
            ({"type": "extract-new-state"}, {"type": "Cast$Value", "spec": "p:string"}),
            None,
            b'{"a":1,"b":"x","p":"3","v":"y"}',
        ),
        (
            (
                {"type": "org.apache.kafka.connect.transforms.ExtractField$Value", "field": "after"},
                {"type": "Flatten$Value", "delimiter": "_"},
                {"type": "ReplaceField$Value", "include": "p,v_value", "renames": "v_value:v"},
                {"type": "ValueToKey", "fields": "v"},
                {"type": "InsertField$Value", "topic.field": "topic", "partition.field": "partition"},
            ),
            b'{"v":"y"}',
            b'{"p":3,"v":"y","topic":"cases.ks.t","partition":null}',
        ),
        (
            (
                {"type": "ExtractField$Value", "field": "source.ts_ms", "field.syntax.version": "V2"},
                {"type": "TimestampConverter$Value", "target.type": "string", "format": "yyyy"},
            ),
            None,
            b'"2025"',
        ),
    ],
)
def test_transforms_of_connect_follow_each_other(
    steps: tuple[dict[str, str], ...], key: bytes | None, value: bytes | None
) -> None:
    (record,) = encode(encoder(**chain(*steps)), LOG, LOG.row(2, 0, True, p=3, a=1, b="x", v="y"))
    assert key is None or record.key == key
    assert value is None or record.value == value


@pytest.mark.parametrize(("compatibility", "at"), [("default", True), ("strict", False)])
def test_the_time_of_reading_is_the_records_time_unless_as_in_java(compatibility: str, at: bool) -> None:
    steps = chain({"type": "ExtractField$Value", "field": "op"}, {"type": "HoistField$Value", "field": "op"})
    steps |= {
        "transforms": "t0,t1,at",
        "transforms.at.type": "InsertField$Value",
        "transforms.at.timestamp.field": "at",
    }
    made = encoder(**steps, **{"scylla.compatibility": compatibility})
    (record,) = encode(made, LOG, LOG.row(2, 0, True, p=3, a=1, b="x"))
    now = NOW_NS // 1_000_000 if at else "null"
    assert record.value == b'{"op":"c","at":%s}' % str(now).encode()


@pytest.mark.parametrize(
    ("regex", "replacement", "topic", "expected"),
    [
        ("(.*)", "x-$1", "a.b", "x-a.b"),
        ("a|ab", "x", "ab", "xb"),
        ("(?<name>.*)-(.)", "${name}$2", "a-b", "ab"),
        ("(.)(.)", "$10", "ab", "a0"),
        ("(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)", "$10$1", "abcdefghij", "ja"),
        ("(.*)", r"\$1\\", "a", "$1\\"),
        ("b", "x", "ab", "ab"),
        ("a(x)?", "[$1]", "a", "[]"),
    ],
)
def test_routing_follows_java(regex: str, replacement: str, topic: str, expected: str) -> None:
    chain = build_transforms([TransformSpec("a", "RegexRouter", {"regex": regex, "replacement": replacement})])
    assert chain is not None
    assert chain.routes
    assert chain.routed(topic) == expected


def test_a_chain_runs_in_order() -> None:
    chain = build_transforms(
        [
            TransformSpec("a", "RegexRouter", {"regex": "x", "replacement": "y"}),
            TransformSpec("b", "RegexRouter", {"regex": "y", "replacement": "z"}),
        ]
    )
    assert chain is not None
    done = chain(DecodedRecord("x", None, None, None, None))
    assert done is not None
    assert done.topic == "z"
    assert build_transforms([]) is None


EXTRACT = {
    "transforms": "x",
    "transforms.x.type": "com.scylladb.cdc.debezium.connector.transforms.ScyllaExtractNewRecordState",
    "transforms.x.drop.tombstones": "false",
    "transforms.x.delete.handling.mode": "none",
}


@pytest.mark.parametrize(("compatibility", "expected"), [("default", [b'{"id":1,"v":null}']), ("strict", [])])
def test_strict_transforms_drop_what_javas_drop(compatibility: str, expected: list[bytes]) -> None:
    properties = {"cdc.output.format": "advanced", "scylla.compatibility": compatibility, **EXTRACT}
    made = encoder(**properties)
    records = encode(made, SINGLE, SINGLE.row(1, 0, True, id=1, v="x"))
    assert [record.value for record in records] == expected
    assert any("strict" in loss for loss in made.losses) is (compatibility == "strict")


@pytest.mark.parametrize("schemas", ["false", "true"])
def test_a_transform_changes_values_with_and_without_schemas(schemas: str) -> None:
    made = encoder(**EXTRACT, **{"value.converter.schemas.enable": schemas})
    data, tombstone = [
        *encode(made, SINGLE, SINGLE.row(2, 0, True, id=1, v="x")),
        *[r for r in encode(made, SINGLE, SINGLE.row(4, 0, True, id=1)) if r.kind == "tombstone"],
    ]
    document = json.loads(data.value or b"")
    assert (document["payload"] if schemas == "true" else document) == {"id": 1, "v": "x"}
    if schemas == "true":
        assert document["schema"]["name"] == "cases.ks.t.After"
        assert [(f["field"], f["type"]) for f in document["schema"]["fields"]] == [("id", "int32"), ("v", "string")]
    assert (tombstone.key, tombstone.value) == (b'{"id":1}', None)


def test_options_of_transforms_are_checked_by_their_owner() -> None:
    good = TransformSpec("x", "ScyllaExtractNewRecordState", {"delete.handling.mode": "rewrite"})
    assert check_transform(good, True) == []
    bad = TransformSpec("x", "ScyllaExtractNewRecordState", {"delete.handling.mod": "rewrite", "drop.tombstones": "ja"})
    assert sorted(problem.property for problem in check_transform(bad, True)) == [
        "delete.handling.mod",
        "drop.tombstones",
    ]


def test_what_would_fail_with_every_record_is_said_before_the_first() -> None:
    inserting = TransformSpec("x", "InsertField$Value", {"topic.field": "from", "offset.field": "at"})
    (found,) = check_transform(inserting, True)
    assert isinstance(found, Problem)
    assert found.property == "offset.field" and "they have no offset" in found.problem


def test_a_record_that_a_transform_cannot_take_is_poison() -> None:
    options = output_options(**{"cdc.output.format": "advanced"}, **EXTRACT).but(
        key_placement=frozenset(("payload-after",))
    )
    made = Encoder(options, clock=lambda: NOW_NS)
    with pytest.raises(PoisonRow, match="no image to take a row from"):
        encode(made, SINGLE, SINGLE.row(1, 0, True, id=1, v="x"))


CONVERTERS = "org.apache.kafka.connect.converters."


@pytest.mark.parametrize(
    ("side", "options", "converter", "stage"),
    [
        ("Key", {"type": "ExtractField$Key", "field": "id"}, "ShortConverter", "KEY_CONVERTER"),
        ("Value", {"type": "ExtractField$Value", "field": "op"}, "LongConverter", "VALUE_CONVERTER"),
        ("Key", {"type": "ValueToKey", "fields": "nothing"}, "", "TRANSFORMATION"),
    ],
)
def test_what_cannot_be_done_with_a_row_is_told_in_connects_words(
    side: str, options: dict[str, str], converter: str, stage: str
) -> None:
    properties = {"transforms": "x", **{f"transforms.x.{name}": value for name, value in options.items()}}
    if converter:
        properties[f"{side.lower()}.converter"] = CONVERTERS + converter
    made = encoder(**properties)
    for _ in range(2):
        with pytest.raises(PoisonRow) as caught:
            encode(made, SINGLE, SINGLE.row(1, 0, True, id=100000, v="x"))
        assert caught.value.stage == stage
        with pytest.raises(PoisonRow, match="column v") as caught:
            encode(made, SINGLE, SINGLE.row(1, 0, True, raw={"v": b"\xff"}, id=1))
        assert caught.value.stage == "TASK_POLL"


HEADER = {"transforms": "h", "transforms.h.type": "HeaderFrom$Value", "transforms.h.fields": "op"}


def test_of_a_delete_the_tombstone_alone_is_told_as_what_a_transform_failed_at() -> None:
    moved = {**HEADER, "transforms.h.headers": "op", "transforms.h.operation": "copy"}
    with pytest.raises(PoisonRecord, match="the tombstone cannot be made") as caught:
        encode(encoder(**moved), SINGLE, SINGLE.row(4, 0, True, id=1))
    assert caught.value.stage == "TRANSFORMATION"


def test_a_strict_tombstone_repeats_the_headers_of_its_delete() -> None:
    transform = EXTRACT | {"transforms.x.delete.handling.mode": "rewrite", "transforms.x.add.headers": "op,source.db"}
    deleted = SINGLE.row(4, 0, True, id=1)
    added = [("__op", b"d"), ("__source_db", b"ks")]
    data, tombstone = encode(encoder(**transform), SINGLE, deleted)
    assert (data.headers, tombstone.headers) == (added, added[:1])
    data, tombstone = encode(encoder(**transform, **{"scylla.compatibility": "strict"}), SINGLE, deleted)
    assert (data.headers, tombstone.headers) == (added, [*added, added[0]])


def test_fields_that_the_java_connector_leaves_unset_are_shown_as_null() -> None:
    shown = {"transforms.x.add.fields": "source.snapshot,op", "transforms.x.add.headers": "source.snapshot:s,op"}
    made = encoder(**EXTRACT | shown)
    inserted = SINGLE.row(2, 0, True, id=1, v="x")
    (record,) = encode(made, SINGLE, inserted)
    assert record.value == b'{"id":1,"v":"x","__source_snapshot":null,"__op":"c"}'
    assert record.headers == [("__s", None), ("__op", b"c")]
    (change,) = SINGLE.changes(inserted)
    assert made.encode_alike([change]) in (None, [[record]])


_INSERT = {"transforms.i.type": "InsertHeader", "transforms.i.header": "i", "transforms.i.value.literal": "1"}
_TOMBSTONES_ALONE = {
    "transforms.i.predicate": "p",
    "predicates": "p",
    "predicates.p.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
}


@pytest.mark.parametrize(
    ("more", "names"),
    [
        (_INSERT | {"transforms": "i"}, ["i"]),
        (_INSERT | {"transforms": "i,x"}, ["i", "__op"]),
        (_INSERT | {"transforms": "x,i"}, ["__op", "__source_db", "__op", "i"]),
        (_INSERT | _TOMBSTONES_ALONE | {"transforms": "i,x"}, ["__op", "__source_db", "i", "__op"]),
        ({"transforms.x.delete.handling.mode": "drop"}, ["__op", "__source_db", "__op"]),
        (_TOMBSTONES_ALONE | {"transforms.x.predicate": "p", "transforms.x.negate": "true"}, ["__op", "__source_db"]),
    ],
)
def test_a_strict_tombstone_repeats_what_was_added_to_the_record_that_the_connector_made(
    more: dict[str, str], names: list[str]
) -> None:
    """As Java's transforms: Debezium's adds to the headers that it finds, others to a copy of them."""
    rewrite = {"transforms.x.delete.handling.mode": "rewrite", "transforms.x.add.headers": "op,source.db"}
    rewrite["scylla.compatibility"] = "strict"
    records = encode(encoder(**EXTRACT | rewrite | more), SINGLE, SINGLE.row(4, 0, True, id=1))
    assert [name for name, _ in records[-1].headers] == names
