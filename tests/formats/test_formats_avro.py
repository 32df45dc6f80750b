"""Avro: schemas as AvroData makes them, bytes that an independent reader (fastavro) reads back."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings

from connector.config import ConverterConfig, OutputConfig
from connector.errors import FatalDeliveryError, PoisonRow
from connector.formats.avro_converter import AvroConverter
from connector.formats.avro_names import AvroNames
from connector.formats.avro_schema import avro_schema
from connector.formats.encoder import Encoder
from connector.formats.heartbeat import KEY_SCHEMA
from connector.formats.record import Record
from connector.formats.schema_checks import refused_schemas
from connector.formats.schemas import STRING, schema, schema_of, source_schema, struct
from connector.values.binary import encode
from connector.values.rendering import renderer
from connector.values.types import CqlType, UserType, native, parse_type
from tests.formats.golden import NOW_NS
from tests.formats.options import output_options
from tests.formats.rows import Log, log_columns, table
from tests.values.strategies import typed_values

AVRO = {
    "key.converter": "io.confluent.connect.avro.AvroConverter",
    "key.converter.schema.registry.url": "http://127.0.0.1:1",
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "value.converter.schema.registry.url": "http://127.0.0.1:1",
}


class Ids:
    """A registry in memory."""

    def __init__(self) -> None:
        self.schemas: dict[int, str] = {}
        self.subjects: dict[int, str] = {}

    def id_for(self, subject: str, schema_json: str) -> int:
        number = len(self.schemas) + 300
        self.schemas[number] = schema_json
        self.subjects[number] = subject
        return number

    def read(self, raw: bytes | None) -> Any:
        """What a consumer reads; dates and times as numbers."""
        assert raw is not None
        assert raw[0] == 0
        text = self.schemas[int.from_bytes(raw[1:5], "big")]
        return read(json.loads(text), raw[5:])


def read(avro: Any, raw: bytes) -> Any:
    stream = io.BytesIO(raw)
    value = fastavro.schemaless_reader(stream, fastavro.parse_schema(_plain(avro)), None)
    assert stream.read() == b""
    return value


def _plain(avro: Any) -> Any:
    if isinstance(avro, dict):
        return {name: _plain(part) for name, part in avro.items() if name != "logicalType"}
    return [_plain(part) for part in avro] if isinstance(avro, list) else avro


def avro_options(**properties: str) -> OutputConfig:
    return output_options(**AVRO, **properties)


U = UserType("ks", "u", (("a", native("int")), ("b", native("text"))))
LOG = Log(
    table(
        {
            "pk": "int",
            "ck": "date",
            "b": "blob",
            "f": "float",
            "m": "map<int, frozen<u>>",
            "t": "tinyint",
            "ts": "timestamp",
        },
        clustering=("ck",),
        types={"u": U},
    )
)


def encoded(ids: Ids, log: Log, *rows: Any, **properties: str) -> list[Record]:
    encoder = Encoder(avro_options(**properties), ids, ids, clock=lambda: NOW_NS)
    return [record for change in log.changes(*rows) for record in encoder.encode(change)]


def test_legacy_records() -> None:
    ids = Ids()
    data, tombstone = encoded(ids, LOG, LOG.row(3, 0, True, pk=1, ck=19884))
    assert ids.read(data.key) == {"ck": 19884, "pk": 1}
    value = ids.read(data.value)
    assert value["op"] == "d"
    assert value["before"] == {"b": None, "ck": 19884, "f": None, "pk": 1, "t": None, "ts": None}
    assert value["source"]["snapshot"] == "false"
    assert (tombstone.key, tombstone.value) == (data.key, None)
    assert sorted(ids.subjects.values()) == ["cases.ks.t-key", "cases.ks.t-value"]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"cdc.output.format": "advanced", "cdc.include.before": "full", "cdc.include.metadata": "true"},
        {"transforms": "f", "transforms.f.type": "ScyllaFlattenColumns"},
        # The block alone is the value.
        {"transforms": "s", "transforms.s.type": "ExtractField$Value", "transforms.s.field": "source"},
    ],
)
def test_nulls_in_fields_with_a_default_stay_null_if_they_are_to(given: dict[str, str]) -> None:
    def snapshots(**properties: str) -> list[Any]:
        """What stands in `source.snapshot` of a change, and of a row of a snapshot."""
        ids = Ids()
        made = Encoder(avro_options(**given, **properties), ids, ids, clock=lambda: NOW_NS)
        changes = [LOG.changes(LOG.row(operation, 0, True, pk=1, ck=1)) for operation in (b"\2", b"\x7f")]
        values = [ids.read(made.encode(change)[0].value) for (change,) in changes]
        return [value.get("source", value)["snapshot"] for value in values]

    assert snapshots() == ["false", "true"]
    assert snapshots(**{"value.converter.ignore.default.for.nullables": "false"}) == ["false", "true"]
    assert snapshots(**{"value.converter.ignore.default.for.nullables": "true"}) == [None, "true"]
    # Keys have no field with a default.
    assert snapshots(**{"key.converter.ignore.default.for.nullables": "true"}) == ["false", "true"]


def test_the_schema_is_the_same_with_and_without_its_default() -> None:
    schemas = []
    for text in ("false", "true"):
        ids = Ids()
        encoded(ids, LOG, LOG.row(2, 0, True, pk=1, ck=1), **{"value.converter.ignore.default.for.nullables": text})
        schemas.append(ids.schemas)
    assert schemas[0] == schemas[1]


def test_a_subject_is_asked_for_once_and_only_when_it_is_needed() -> None:
    ids = Ids()
    encoder = Encoder(avro_options(), ids, ids, clock=lambda: NOW_NS)
    assert ids.schemas == {}
    for at in range(3):
        (change,) = LOG.changes(LOG.row(2, 0, True, pk=at, ck=1))
        encoder.encode(change)
    assert len(ids.schemas) == 2


def test_deltas_and_advanced_images() -> None:
    ids = Ids()
    row = LOG.row(1, 0, True, pk=1, ck=2, b=b"\xca", f=0.1, m=[(1, (5, None))], t=-3, ts=7)
    (record,) = encoded(ids, LOG, row, **{"cdc.include.collections": "delta", "cdc.include.metadata": "true"})
    after = ids.read(record.value)["after"]
    assert after["m"] == {"value": {"mode": "modify", "elements": [{"key": 1, "value": {"a": 5, "b": None}}]}}
    assert (after["b"], after["t"], after["ts"]) == ({"value": b"\xca"}, {"value": -3}, {"value": 7})
    assert after["f"]["value"] == pytest.approx(0.1)
    images = [LOG.row(0, 0, pk=1, ck=2, t=1), LOG.row(1, 1, pk=1, ck=2, t=2)]
    images.append(LOG.row(9, 2, True, pk=1, ck=2, t=2, m=[(1, (5, "x")), (2, (None, None))]))
    settings_ = {"cdc.output.format": "advanced", "cdc.include.before": "full", "cdc.include.after": "full"}
    settings_["cdc.include.primary-key.placement"] = "kafka-key,payload-after,payload-before,payload-key"
    (record,) = encoded(ids, LOG, *images, **settings_)
    value = ids.read(record.value)
    assert value["key"] == {"ck": 2, "pk": 1}
    assert value["before"]["t"] == 1
    assert value["after"]["m"] == [{"key": 1, "value": {"a": 5, "b": "x"}}, {"key": 2, "value": None}]


PLAIN = {"pk": "int", "ck": "int", "v": "text"}
WIDER_U = UserType("ks", "u", (*U.fields, ("c", native("bigint"))))
RENAMED_U = UserType("ks", "u", (("a", native("int")), ("name", native("text"))))
IMAGES = {"cdc.output.format": "advanced", "cdc.include.before": "full", "cdc.include.after": "full"}


@pytest.mark.parametrize("properties", [{"cdc.include.collections": "delta"}, IMAGES], ids=["deltas", "images"])
@pytest.mark.parametrize(
    ("before", "after", "type_", "altered"),
    [
        (PLAIN, PLAIN | {"w": "int"}, U, U),
        (PLAIN, PLAIN | {"m": "map<text, int>", "l": "list<frozen<u>>", "x": "u", "y": "frozen<u>"}, U, U),
        (PLAIN, {"pk": "int", "row": "int", "v": "text"}, U, U),
        *((PLAIN | {"x": kind}, PLAIN | {"x": kind}, U, WIDER_U) for kind in ("u", "frozen<u>", "map<int, frozen<u>>")),
        (PLAIN | {"x": "u"}, PLAIN | {"x": "u"}, U, RENAMED_U),
        (PLAIN | {"w": "smallint", "z": "blob"}, PLAIN | {"w": "int", "z": "text"}, U, U),
    ],
)
def test_records_of_a_table_before_and_after_an_alter_are_read_by_the_schemas_of_either(
    before: dict[str, str], after: dict[str, str], type_: UserType, altered: UserType, properties: dict[str, str]
) -> None:
    """So a registry takes them, whatever compatibility it is to watch over."""
    made = []
    for columns, kind in ((before, type_), (after, altered)):
        clustering = "ck" if "ck" in columns else "row"
        log, ids = Log(table(columns, clustering=(clustering,), types={"u": kind})), Ids()
        keys = {"pk": 1, clustering: 2}
        insert = log.row(2, 0, properties is not IMAGES, **keys, v="text")
        images = [log.row(9, 1, True, **keys, v="text")] if properties is IMAGES else []
        (record,) = encoded(ids, log, insert, *images, **properties)
        for raw in (record.key, record.value):
            assert raw is not None
            schema_ = _plain(json.loads(ids.schemas[int.from_bytes(raw[1:5], "big")]))
            made.append((fastavro.parse_schema(schema_), raw[5:]))
    old_key, old_value, new_key, new_value = made
    for (writer, raw), (reader, _) in ((old_key, new_key), (new_key, old_key)):
        assert fastavro.schemaless_reader(io.BytesIO(raw), writer, reader)["pk"] == 1
    for (writer, raw), (reader, _) in ((old_value, new_value), (new_value, old_value)):
        value = fastavro.schemaless_reader(io.BytesIO(raw), writer, reader)["after"]["v"]
        assert value == ("text" if properties is IMAGES else {"value": "text"})


def test_range_deletes_and_heartbeats() -> None:
    ids = Ids()
    properties = {"cdc.range.deletes": "topic"}
    (record,) = encoded(ids, LOG, LOG.row(5, 0, pk=1, ck=2), LOG.row(7, 1, True, pk=1), **properties)
    value = ids.read(record.value)
    assert ids.read(record.key) == value["partition"] == {"pk": 1}
    assert value["start"] == {"values": {"ck": 2}, "length": 1, "inclusive": True}
    assert value["end"] == {"values": {"ck": None}, "length": 0, "inclusive": True}
    (beat,) = Encoder(avro_options(), ids, ids, clock=lambda: NOW_NS).heartbeat()
    assert (ids.read(beat.key), ids.read(beat.value)) == ({"serverName": "cases"}, {"ts_ms": NOW_NS // 10**6})


@settings(max_examples=120, deadline=None)
@given(typed_values)
def test_every_type_is_read_back(typed: tuple[CqlType, Any]) -> None:
    type_, value = typed
    rendered = renderer(type_)(encode(type_, value))
    connect = struct("a.Row", [("v", schema_of(type_, "a"))], optional=False)
    ids = Ids()
    raw = AvroConverter(ConverterConfig("avro"), "value", ids).serializer("t", connect)({"v": rendered})
    assert repr(ids.read(raw)["v"]) == repr(rendered)


def test_names_and_properties_are_avro_datas() -> None:
    assert avro_schema(KEY_SCHEMA) == {
        "type": "record",
        "name": "ServerNameKey",
        "namespace": "io.debezium.connector.common",
        "fields": [{"name": "serverName", "type": "string"}],
        "connect.version": 1,
        "connect.name": "io.debezium.connector.common.ServerNameKey",
    }
    source = avro_schema(source_schema(False))
    assert (source["namespace"], source["name"]) == ("com.scylladb.cdc.debezium", "connector")
    fields = {field["name"]: field for field in source["fields"]}
    assert fields["ts_us"] == {"name": "ts_us", "type": ["null", "long"], "default": None}
    assert fields["snapshot"] == {
        "name": "snapshot",
        "type": [
            {
                "type": "string",
                "connect.version": 1,
                "connect.parameters": {"allowed": "true,last,false,incremental"},
                "connect.default": "false",
                "connect.name": "io.debezium.data.Enum",
            },
            "null",
        ],
        "default": "false",
    }
    assert avro_schema(schema_of(native("date"), "b")) == [
        "null",
        {
            "type": "int",
            "connect.version": 1,
            "connect.name": "org.apache.kafka.connect.data.Date",
            "logicalType": "date",
        },
    ]
    assert avro_schema(schema("int8", False)) == {"type": "int", "connect.type": "int8"}


def test_a_named_type_that_comes_again_is_only_named() -> None:
    ids = Ids()
    encoded(ids, LOG, LOG.row(2, 0, True, pk=1, ck=1))
    envelope = json.loads(ids.schemas[next(n for n, s in ids.subjects.items() if s.endswith("-value"))])
    before, after = (field["type"][1] for field in envelope["fields"][1:3])
    assert (envelope["namespace"], before["name"], after["name"]) == ("cases.ks.t", "Before", "After")
    # Their namespace is the one around them, and goes without saying.
    assert "namespace" not in before and envelope["fields"][0]["type"]["namespace"] == "com.scylladb.cdc.debezium"
    assert before["fields"][0]["type"] == [
        "null",
        {
            "type": "record",
            "name": "Cell",
            "namespace": "cases.ks.t.b",
            "fields": [{"name": "value", "type": ["null", "bytes"], "default": None}],
            "connect.name": "cases.ks.t.b.Cell",
        },
    ]
    assert after["fields"][0]["type"] == ["null", "cases.ks.t.b.Cell"]


@pytest.mark.parametrize(
    ("properties", "images"),
    [
        ({"cdc.include.collections": "delta"}, ["after"]),
        (
            {
                "cdc.output.format": "advanced",
                "cdc.include.after": "full",
                "cdc.include.primary-key.placement": "kafka-key,payload-after,payload-key",
            },
            ["after", "key"],
        ),
    ],
)
def test_every_reader_finds_the_types_inside_a_key(properties: dict[str, str], images: list[str]) -> None:
    """Java looks for a bare name without a namespace, too; others only in the namespace around it."""
    kind = UserType("ks", "u", (("a", native("int")), ("b", parse_type("tuple<int, text>"))))
    columns = {"pk": "frozen<u>", "ck": "frozen<map<int, frozen<u>>>", "v": "frozen<u>", "key": "int"}
    log = Log(table(columns, clustering=("ck",), types={"u": kind}))
    row: dict[str, Any] = {"pk": (1, (2, "x")), "ck": [(3, (4, (5, "y")))], "v": (6, (7, "z")), "key": 8}
    ids = Ids()
    rows = log.row(2, 0, **row), log.row(9, 1, True, **row)
    record = encoded(ids, log, *rows, **properties)[0]
    shown = {
        "pk": {"a": 1, "b": {"field_0": 2, "field_1": "x"}},
        "ck": [{"key": 3, "value": {"a": 4, "b": {"field_0": 5, "field_1": "y"}}}],
    }
    value = ids.read(record.value)
    assert ids.read(record.key) == shown
    assert [{name: value[image][name] for name in shown} for image in images] == [shown] * len(images)
    v = value["after"]["v"]
    assert v.get("value", v) == {"a": 6, "b": {"field_0": 7, "field_1": "z"}}
    # To Connect they have the names that they had.
    schemas = {subject.rpartition("-")[2]: ids.schemas[number] for number, subject in ids.subjects.items()}
    assert '"connect.name":"UDT_u"' in schemas["key"] and '"connect.name":"UDT_u"' in schemas["value"]


def test_a_type_that_a_key_holds_once_has_no_namespace() -> None:
    """As ever: another schema is another number, and another number in keys leads to other partitions."""
    ids = Ids()
    log = Log(table({"pk": "frozen<tuple<int, text>>"}))
    encoded(ids, log, log.row(2, 0, True, pk=(1, "x")), **{"cdc.include.collections": "delta"})
    key = json.loads(next(ids.schemas[number] for number, subject in ids.subjects.items() if subject.endswith("-key")))
    assert key["fields"][0]["type"][1]["namespace"] == ""


def test_without_connects_own_properties() -> None:
    assert avro_schema(schema_of(native("date"), "b"), connect_meta_data=False) == [
        "null",
        {"type": "int", "logicalType": "date"},
    ]


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [("topic", "t-value"), ("record", "a.Row"), ("topic-record", "t-a.Row")],
)
def test_subjects(strategy: Any, subject: str) -> None:
    ids = Ids()
    converter = AvroConverter(ConverterConfig("avro", subject_strategy=strategy), "value", ids)
    converter.serializer("t", struct("a.Row", [("v", schema("int32"))], optional=False))({"v": 1})
    assert list(ids.subjects.values()) == [subject]


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [("topic", "t-key"), ("record", "io.confluent.connect.avro.ConnectDefault"), ("topic-record", "t-io.")],
)
def test_subjects_of_structs_without_a_name(strategy: Any, subject: str) -> None:
    ids = Ids()
    converter = AvroConverter(ConverterConfig("avro", subject_strategy=strategy), "key", ids)
    converter.serializer("t", struct(None, [("v", schema("int32"))], optional=False))({"v": 1})
    (found,) = ids.subjects.values()
    assert found.startswith(subject)
    if strategy != "topic":
        with pytest.raises(ValueError, match=r"the key is of the type int32, and key\.subject\.name\.strategy"):
            converter.serializer("t", schema("int32"))


def test_structs_without_a_name_are_numbered() -> None:
    inner = struct(None, [("a", schema("int32"))], optional=False)
    other = struct(None, [("b", schema("int32"))])
    made = avro_schema(struct(None, [("x", inner), ("y", other), ("z", inner)], optional=False))
    x, y, z = (field["type"] for field in made["fields"])
    assert (made["name"], x["name"], y[1]["name"], z) == (
        "ConnectDefault",
        "ConnectDefault2",
        "ConnectDefault3",
        "ConnectDefault2",
    )


def test_null_is_null_bytes_whatever_its_schema_is() -> None:
    """A delete of which a transform has taken `after` is a tombstone, as with Java's converter."""
    ids = Ids()
    after = {
        "transforms": "after",
        "transforms.after.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
        "transforms.after.field": "after",
    }
    insert, delete = LOG.row(2, 0, pk=1, ck=1, f=0.5), LOG.row(3, 1, True, pk=1, ck=1)
    records = encoded(ids, LOG, insert, delete, **after)
    assert [record.kind for record in records] == ["data", "data", "tombstone"]
    assert ids.read(records[0].value)["f"] == {"value": 0.5}
    assert records[1].value is None


def test_times_of_the_day_are_avros() -> None:
    ids = Ids()
    converted = {
        "transforms": "row,time",
        "transforms.row.type": "ScyllaExtractNewRecordState",
        "transforms.time.type": "org.apache.kafka.connect.transforms.TimestampConverter$Value",
        "transforms.time.field": "ts",
        "transforms.time.target.type": "Time",
    }
    (record,) = encoded(ids, LOG, LOG.row(2, 0, True, pk=1, ck=1, ts=86_400_007), **converted)
    assert ids.read(record.value)["ts"] == 7
    (field,) = (it for it in json.loads(ids.schemas[301])["fields"] if it["name"] == "ts")
    assert field["type"][1] == {
        "type": "int",
        "connect.version": 1,
        "connect.name": "org.apache.kafka.connect.data.Time",
        "logicalType": "time-millis",
    }


def test_names_that_avro_does_not_allow_are_told_plainly() -> None:
    log = Log(table({"pk": "int", "a b": "int"}))
    with pytest.raises(PoisonRow, match=r"Avro does not allow the name 'a b'.*JSON converter") as caught:
        encoded(Ids(), log, log.row(2, 0, True, pk=1))
    assert caught.value.stage == "VALUE_CONVERTER"
    log = Log(table({"p k": "int", "a": "int"}, partition=("p k",)))
    with pytest.raises(PoisonRow, match=r"Avro does not allow the name 'p k'") as caught:
        encoded(Ids(), log, log.row(2, 0, True, **{"p k": 1}))
    assert caught.value.stage == "KEY_CONVERTER"


def test_what_the_registry_refuses_stays_what_it_is() -> None:
    class Refusing:
        def id_for(self, subject: str, schema_json: str) -> int:
            raise FatalDeliveryError(f"{subject}: incompatible")

    encoder = Encoder(avro_options(), Refusing(), Refusing())
    (change,) = LOG.changes(LOG.row(2, 0, True, pk=1, ck=1))
    with pytest.raises(FatalDeliveryError, match=r"cases\.ks\.t-key: incompatible"):
        encoder.encode(change)


def test_names_that_avro_does_not_allow_are_scrubbed_as_by_javas_converter() -> None:
    columns = ("b-c", "1st", "größe", "a b~", "%", "-1")
    named = struct("eu.3pl.ks.t-1.Key", [(name, STRING) for name in columns])
    with pytest.raises(ValueError, match=r"scrub\.invalid\.names=true"):
        avro_schema(named)
    _, record = avro_schema(named, names=AvroNames(scrub=True))
    assert (record["namespace"], record["name"]) == ("eu.x3pl.ks.t_1", "Key")
    assert [field["name"] for field in record["fields"]] == ["b_c", "x1st", "gr_C3_B6_C3_9Fe", "a_b_7E", "_25", "_1"]
    # Connect consumers get the original name of the struct back.
    assert record["connect.name"] == "eu.3pl.ks.t-1.Key"
    assert avro_schema(named | {"name": "a.b"}, names=AvroNames(scrub=True))[1]["namespace"] == "a"


@pytest.mark.parametrize(
    ("mode", "names"),
    [("avro", ["b_c", "_1st", "gr__e", "a_b"]), ("avro_unicode", ["b_u002dc", "_u0031st", "gr_u00f6_u00dfe", "a_b"])],
)
def test_names_that_avro_does_not_allow_are_adjusted_as_by_debezium_and_others_are_kept(mode: Any, names: Any) -> None:
    named = struct("eu.3pl.k_s.t-1.Key", [("b-c", STRING), ("1st", STRING), ("größe", STRING), ("a_b", STRING)])
    _, record = avro_schema(named, names=AvroNames(fields=mode, schemas=mode))
    assert [field["name"] for field in record["fields"]] == names
    full = {"avro": "eu._3pl.k_s.t_1.Key", "avro_unicode": "eu._u0033pl.k_s.t_u002d1.Key"}[mode]
    assert f"{record['namespace']}.{record['name']}" == full
    assert record["connect.name"] == full


def test_records_of_columns_with_adjusted_names_are_read_back() -> None:
    ids, log = Ids(), Log(table({"p-k": "int", "b-c": "int"}, partition=("p-k",)))
    modes = {"field.name.adjustment.mode": "avro", "schema.name.adjustment.mode": "avro"}
    options = avro_options(**modes, **{"key.converter.key.subject.name.strategy": "RecordNameStrategy"})
    encoder = Encoder(options, ids, ids, clock=lambda: NOW_NS)
    (change,) = log.changes(log.row(2, 0, True, **{"p-k": 1, "b-c": 2}))
    (record,) = encoder.encode(change)
    assert ids.read(record.key) == {"p_k": 1}
    assert ids.read(record.value)["after"] == {"b_c": {"value": 2}, "p_k": 1}
    assert "cases.ks.t.Key" in ids.subjects.values()


def test_two_columns_that_would_get_one_name_are_refused() -> None:
    named = struct("a.b", [("b-c", STRING), ("b_c", STRING)])
    with pytest.raises(ValueError, match="'b-c' and 'b_c' would both be called 'b_c'"):
        avro_schema(named, names=AvroNames(fields="avro"))


def test_all_names_that_avro_will_refuse_are_found_before_there_is_a_record() -> None:
    log = Log(table({"p-k": "int", "b-c": "int", "v": "int"}, partition=("p-k",)))
    found = refused_schemas(log.description, log_columns(log.description), avro_options())
    assert [side for side, _ in found] == ["key", "value"]
    assert "the name 'p-k':" in found[0][1] and "the names 'b-c', 'p-k':" in found[1][1]
    for remedy in (
        {"key.converter.scrub.invalid.names": "true", "value.converter.scrub.invalid.names": "true"},
        {"field.name.adjustment.mode": "avro", "schema.name.adjustment.mode": "avro_unicode"},
        {"transforms": "x", "transforms.x.type": "ExtractField$Key", "transforms.x.field": "p-k"},
    ):
        assert refused_schemas(log.description, log_columns(log.description), avro_options(**remedy)) == []
    strict = {"field.name.adjustment.mode": "avro", "scylla.compatibility": "strict"}
    assert len(refused_schemas(log.description, log_columns(log.description), avro_options(**strict))) == 2
    plain = {"transforms": "x", "transforms.x.type": "extract-new-state"}
    for fine in ({}, plain, plain | {"key.converter": "avro", "key.converter.schema.registry.url": "http://r:1"}):
        assert refused_schemas(log.description, log_columns(log.description), output_options(**fine)) == []
