"""The consumer wrapper on a real broker: JSON and Avro in, rows out."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any, cast

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from fastavro import parse_schema, schemaless_writer

from smt import Record, build_transform
from smt.avro_schema import connect_schema
from smt.kafka import AvroDecoder, DecodeError, FlatteningConsumer, decode_json
from tests.smt.records import DELETE, INSERT, JAVA, KEY, LEGACY, envelope

DECIMAL = "org.apache.kafka.connect.data.Decimal"
ROW: dict[str, Any] = {
    "type": "record",
    "name": "Before",
    "namespace": "shop.ks.t",
    "fields": [
        {"name": "ck", "type": ["null", "int"], "default": None},
        {"name": "pk", "type": ["null", "int"], "default": None},
        {
            "name": "v",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Cell",
                    "namespace": "shop.ks.t.v",
                    "fields": [{"name": "value", "type": ["null", "string"], "default": None}],
                    "connect.name": "shop.ks.t.v.Cell",
                },
            ],
            "default": None,
        },
    ],
    "connect.name": "shop.ks.t.Before",
}
ENVELOPE: dict[str, Any] = {
    "type": "record",
    "name": "Envelope",
    "namespace": "shop.ks.t",
    "fields": [
        {"name": "source", "type": {"type": "record", "name": "Source", "fields": [{"name": "ts_us", "type": "long"}]}},
        {"name": "before", "type": ["null", ROW], "default": None},
        {
            "name": "after",
            "type": [
                "null",
                {
                    **ROW,
                    "name": "After",
                    "connect.name": "shop.ks.t.After",
                    "fields": [
                        *ROW["fields"][:2],
                        {"name": "v", "type": ["null", "shop.ks.t.v.Cell"], "default": None},
                    ],
                },
            ],
            "default": None,
        },
        {"name": "op", "type": ["null", "string"], "default": None},
    ],
    "connect.name": "shop.ks.t.Envelope",
}
KEY_AVRO = {"type": "record", "name": "Key", "namespace": "shop.ks.t", "fields": ROW["fields"][:2]}
SCHEMAS = {1: json.dumps(KEY_AVRO), 2: json.dumps(ENVELOPE)}


def avro(number: int, value: Any) -> bytes:
    out = io.BytesIO()
    out.write(b"\0" + number.to_bytes(4, "big"))
    schemaless_writer(out, parse_schema(json.loads(SCHEMAS[number])), value)
    return out.getvalue()


def avro_envelope(op: str, before: Any, after: Any) -> bytes:
    return avro(2, {"source": {"ts_us": 7}, "before": before, "after": after, "op": op})


class Read:
    """A message, as far as it is looked at."""

    def __init__(self, timestamp: tuple[int, int], value: bytes, offset: int = 41) -> None:
        self.timestamp = lambda: timestamp
        self.value = lambda: value
        self.offset = lambda: offset

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 3

    def key(self) -> None:
        return None

    headers = error = key

    def __len__(self) -> int:  # of its value, as a message of confluent_kafka has: it may be false
        return 0


def test_transforms_know_where_and_when_a_record_stands() -> None:
    options = {f"{name}.field": name for name in ("topic", "partition", "offset", "timestamp")}
    consumer = FlatteningConsumer(cast(Consumer, None), build_transform("InsertField$Value", options))
    timed, untimed = Read((TIMESTAMP_CREATE_TIME, 1700000000123), b'{"v":1}'), Read((0, -1), b'{"v":1}')
    found = consumer.transform(cast(Message, timed))
    assert found is not None
    assert found.value == {"v": 1, "topic": "t", "partition": 3, "offset": 41, "timestamp": 1700000000123}
    found = consumer.transform(cast(Message, untimed))
    assert found is not None and "timestamp" not in found.value


class Polled:
    """Values that a consumer is given, one by one, and then nothing."""

    def __init__(self, *values: bytes) -> None:
        self.all = [cast(Message, Read((0, -1), value, at)) for at, value in enumerate(values)]
        self.next = 0

    def poll(self, timeout: float) -> Message | None:
        self.next += 1
        return self.all[self.next - 1] if self.next <= len(self.all) else None

    def seek(self, place: TopicPartition) -> None:
        self.next = place.offset


def test_a_registry_that_is_away_costs_no_record() -> None:
    away = [OSError("registry is away")]

    def schema_text(number: int) -> str:
        if away:
            raise away.pop()
        return '{"type": "record", "name": "Row", "fields": [{"name": "v", "type": "int"}]}'

    consumer = cast(Consumer, Polled(b"\0\0\0\0\7\x02", b"\0\0\0\0\7\x04"))
    flat = FlatteningConsumer(consumer, build_transform("ScyllaFlattenColumns"), value=AvroDecoder(schema_text))
    with pytest.raises(OSError, match="registry is away"):
        next(flat.records())
    assert [record.value for record, _ in flat.records(idle_seconds=0)] == [{"v": 1}, {"v": 2}]


def test_what_no_registry_knows_can_be_sought_past() -> None:
    """Nor is it kept by whoever does not poll meanwhile, and is no member of its group then."""

    def schema_text(number: int) -> str:
        raise OSError("404")

    consumer = cast(Consumer, Polled(b"\0\0\0\0\7\x02", b"\0\0\0\0\7\x04"))
    flat = FlatteningConsumer(consumer, build_transform("ScyllaFlattenColumns"), value=AvroDecoder(schema_text))
    for _ in range(2):
        with pytest.raises(OSError, match="404"):
            next(flat.records())
    consumer.seek(TopicPartition("t", 3, 2))
    assert list(flat.records(idle_seconds=0)) == []


def test_a_bad_record_can_be_passed_over() -> None:
    flat = FlatteningConsumer(cast(Consumer, Polled(b"{", b'{"v":2}')), build_transform("ScyllaFlattenColumns"))
    with pytest.raises(DecodeError, match="not JSON"):
        next(flat.records())
    assert [record.value for record, _ in flat.records(idle_seconds=0)] == [{"v": 2}]


def test_dates_and_times_of_avro_are_the_numbers_that_transforms_know() -> None:
    far = 400_000_000_000_000  # behind the end of Python's calendar
    times = {"ts": ("long", "timestamp-millis", "Timestamp"), "d": ("int", "date", "Date")}
    fields = [
        {
            "name": name,
            "type": {"type": type_, "connect.name": f"org.apache.kafka.connect.data.{connect}", "logicalType": logical},
        }
        for name, (type_, logical, connect) in times.items()
    ]
    text = json.dumps({"type": "record", "name": "Row", "fields": fields})
    out = io.BytesIO(b"\0\0\0\0\7")
    out.seek(5)
    schemaless_writer(out, parse_schema(json.loads(text.replace("logicalType", "x"))), {"ts": far, "d": 19_000})
    schema, value = AvroDecoder(lambda number: text)(out.getvalue())
    assert value == {"ts": far, "d": 19_000}
    record = Record("t", None, value, value_schema=schema)
    to_text = build_transform("TimestampConverter$Value", {"field": "ts", "target.type": "string", "format": "yyyy"})
    cast_text = build_transform("Cast$Value", {"spec": "d:string"})
    made = to_text(record), cast_text(record)
    assert [one and one.value for one in made] == [{"ts": "14645", "d": 19_000}, {"ts": far, "d": "2022-01-08"}]


@pytest.mark.kafka
def test_rows_of_json_and_avro_topics(kafka: Any, unique: Callable[[str], str]) -> None:
    json_topic, avro_topic = unique("json"), unique("avro")
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    made = admin.create_topics([NewTopic(topic, 1, 1) for topic in (json_topic, avro_topic)])
    for topic in (json_topic, avro_topic):
        made[topic].result(90)
    key = json.dumps({"schema": None, "payload": KEY}).encode()
    for one in (INSERT, DELETE):
        payload = json.dumps({"schema": LEGACY, "payload": envelope(*one)}).encode()
        producer.produce(json_topic, payload, key, headers=[("h", b"x"), ("gone", b"[w]")])
    producer.produce(json_topic, None, key)
    row = {"ck": 2, "pk": 1, "v": {"value": "3"}}
    producer.produce(avro_topic, avro_envelope("c", None, row), avro(1, KEY))
    producer.produce(avro_topic, avro_envelope("d", {**row, "v": None}, None), avro(1, KEY))
    producer.produce(avro_topic, None, avro(1, KEY))
    assert producer.flush(90) == 0

    options = {"delete.handling.mode": "rewrite", "drop.tombstones": "false", "drop.fields.header.name": "gone"}
    found = read(kafka, json_topic, FlatteningConsumer, options, {})
    assert [one.value for one in found] == [
        {"ck": 2, "pk": 1, "v": "3", "__deleted": "false"},
        {"ck": 2, "pk": 1, "v": None, "__deleted": "true"},
        None,
    ]
    assert found[0].key == KEY and found[0].headers == [("h", "x"), ("gone", ["w"])]
    decoder = AvroDecoder(SCHEMAS.__getitem__)
    found = read(
        kafka, avro_topic, FlatteningConsumer, {"drop.tombstones": "false"}, {"key": decoder, "value": decoder}
    )
    assert [(one.key, one.value) for one in found] == [(KEY, {"ck": 2, "pk": 1, "v": "3"}), (KEY, None)]
    assert found[0].value_schema is not None and found[0].value_schema["name"] == "shop.ks.t.After"


def read(kafka: Any, topic: str, wrapper: Any, options: dict[str, str], more: dict[str, Any]) -> list[Any]:
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    found = []
    # The last record of each topic is a tombstone that is kept. The first group of a broker may take long to form.
    for record, _ in wrapper(consumer, build_transform(JAVA, options), **more).records(idle_seconds=300):
        found.append(record)
        if record.value is None:
            break
    consumer.close()
    return found


def test_avro_schemas_become_connect_schemas() -> None:
    schema = connect_schema(ENVELOPE)
    assert schema["name"] == "shop.ks.t.Envelope"
    after = next(field for field in schema["fields"] if field["field"] == "after")
    assert after["name"] == "shop.ks.t.After" and after["optional"] is True
    assert after["fields"][2]["name"] == "shop.ks.t.v.Cell"


@pytest.mark.parametrize(
    ("avro", "connect"),
    [
        (
            {"connect.name": DECIMAL, "connect.version": 1, "connect.parameters": {"scale": "2"}, "scale": 2},
            {"name": DECIMAL, "version": 1, "parameters": {"scale": "2"}},
        ),
        ({"logicalType": "decimal", "scale": 2}, {"name": DECIMAL, "parameters": {"scale": "2"}}),
        ({"logicalType": "uuid"}, {}),
    ],
)
def test_what_bytes_of_avro_mean_is_known(avro: dict[str, Any], connect: dict[str, Any]) -> None:
    schema = connect_schema(
        {"type": "record", "name": "Row", "fields": [{"name": "n", "type": {"type": "bytes", **avro}}]}
    )
    assert schema["fields"] == [{"type": "bytes", "optional": False, **connect, "field": "n"}]
    done = build_transform("Cast$Value", {"spec": "n:string"})(Record("t", None, {"n": b"09"}, value_schema=schema))
    assert done is not None and done.value == {"n": "123.45" if connect else "MDk="}


@pytest.mark.parametrize("data", [b"", b"{", b"\x00\x00\x00\x00\x02", b"\x01abcd", b"\x00\x00\x00\x00\x02\x05"])
def test_what_is_not_avro(data: bytes) -> None:
    with pytest.raises(DecodeError):
        AvroDecoder(SCHEMAS.__getitem__)(data)


def test_what_is_not_json() -> None:
    for data in (b"{", b"\xff", b""):
        with pytest.raises(DecodeError):
            decode_json(data)
    assert decode_json(b'{"schema":null,"payload":5}') == (None, 5)


def test_columns_may_be_called_as_json_calls_what_it_wraps() -> None:
    assert decode_json(b'{"payload":"p","schema":"s"}') == (None, {"payload": "p", "schema": "s"})
