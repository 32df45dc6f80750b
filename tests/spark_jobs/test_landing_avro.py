"""Avro records with a Schema Registry land as JSON ones do."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession

from connector.errors import LandingError
from spark_jobs.decode.avro_records import Registry, knows_any
from spark_jobs.decode.records import decoded_avro
from spark_jobs.fold.fold import folded
from spark_jobs.fold.view import visible_rows
from spark_jobs.functions.serialised_columns import register_functions
from spark_jobs.model.definitions import parse_definition
from spark_jobs.model.patches import changes_patch
from spark_jobs.model.shape import shape
from tests.servers.small_http import http_server
from tests.spark_jobs.landing_feed import produce, schema_record
from tests.spark_jobs.landing_way import Way
from tests.spark_jobs.source_tables import ANY_FORMAT

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "planned_once")]

TABLE = "pk partition_key int; ck clustering int; d regular date; f regular double; b regular blob; t regular text"


def _cell(name: str, kind: Any) -> dict[str, Any]:
    value = {"name": "value", "type": ["null", kind], "default": None}
    cell = {"type": "record", "name": f"{name}.Cell", "fields": [value]}
    return {"name": name, "type": ["null", cell], "default": None}


def _record(name: str, fields: list[Any]) -> dict[str, Any]:
    return {"name": name, "type": ["null", {"type": "record", "name": name.title(), "fields": fields}], "default": None}


def _optional(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


DATE = {
    "type": "int",
    "logicalType": "date",
    "connect.version": 1,
    "connect.name": "org.apache.kafka.connect.data.Date",
}
KEYS = [_optional("pk", "int"), _optional("ck", "int")]
SOURCE = [_optional("ts_us", "long"), _optional("ttl", "int")]
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "source", "type": {"type": "record", "name": "Source", "fields": SOURCE}},
        _record("before", KEYS),
        _record("after", [*KEYS, _cell("d", DATE), _cell("f", "double"), _cell("b", "bytes"), _cell("t", "string")]),
        _optional("op", "string"),
    ],
}


class _Answers(BaseHTTPRequestHandler):
    known: tuple[str, ...] = ("7",)

    def do_GET(self) -> None:
        found = self.path.removeprefix("/schemas/ids/") in self.known
        self.send_response(200 if found else 404)
        self.end_headers()
        answer = {"schema": json.dumps(ENVELOPE)} if found else {"error_code": 40403, "message": "Schema not found"}
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def registry() -> Iterator[Registry]:
    with http_server(_Answers) as address:
        registry = Registry([f"{address}/"], {})
        registry.give_up([8])
        yield registry


def _framed(number: int, value: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, ENVELOPE, value)
    return b"\x00" + number.to_bytes(4, "big") + out.getvalue()


def test_avro_records_land_and_broken_ones_are_letters(spark: SparkSession, registry: Registry) -> None:
    layout = shape([parse_definition(schema_record("ks", "t", TABLE).decode())])
    register_functions(spark, layout)
    row = {"pk": 1, "ck": 2, "d": {"value": 19000}, "f": {"value": float("nan")}, "b": {"value": b"\x00\xff"}}
    values = [
        _framed(7, {"source": {"ts_us": 10}, "after": {**row, "t": {"value": "x"}}, "op": "c"}),
        _framed(7, {"source": {"ts_us": 11}, "after": {"pk": 1, "ck": 2, "t": {"value": None}}, "op": "u"}),
        _framed(8, {"source": {"ts_us": 12}, "after": {"pk": 1, "ck": 2}, "op": "u"}),
        b"\x00\x00\x00\x00\x07\x02",
        b"{}",
    ]
    rows = [(None, bytearray(value), "t", 0, at) for at, value in enumerate(values)]
    schema = "key binary, value binary, topic string, partition int, offset bigint"
    batch = spark.createDataFrame(rows, schema).selectExpr("*", "current_timestamp() AS timestamp")
    decoded = decoded_avro(batch, layout, 1, "t.range-deletes", registry)
    decoded.createOrReplaceTempView("avro_changes")
    reasons = {row["offset"]: row["reason"] for row in spark.table("avro_changes").collect()}
    assert [reasons[at] for at in range(5)] == [None, None, "UNKNOWN_SCHEMA", "BAD_OP", "CORRUPT"]
    assert knows_any(batch, registry) and not knows_any(batch.where("offset = 2"), registry)
    text = folded(layout, [changes_patch(layout, "SELECT * FROM avro_changes WHERE segment = 1")])
    shown = spark.sql(visible_rows(layout, text)).selectExpr("*", "unix_date(d) AS days").collect()
    assert len(shown) == 1
    assert (shown[0]["days"], repr(shown[0]["f"]), bytes(shown[0]["b"]), shown[0]["t"]) == (
        19000,
        "nan",
        b"\x00\xff",
        None,
    )


@pytest.mark.kafka
# py4j keeps a socket for every Python thread and leaves closing it to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
def test_letters_of_a_schema_that_no_registry_had_land_when_one_has_it(spark: SparkSession, way: Way) -> None:
    """One with a TTL, which nobody can tell of a letter that cannot be read, stayed beyond its end."""

    class Late(_Answers):
        known: tuple[str, ...] = ()

    way.schema(schema_record("ks", "t", TABLE, version="2"))
    record = {"source": {"ts_us": 10}, "after": {"pk": 1, "ck": 2, "t": {"value": "x"}}, "op": "c"}
    ended = {**record, "source": {"ts_us": 10, "ttl": 60}, "after": {"pk": 1, "ck": 3, "t": {"value": "y"}}}
    framed = [_framed(7, record), _framed(8, record), _framed(7, ended)]
    produce(way.servers, [(way.data, value) for value in framed])
    del way.config["value.converter.schemas.enable"]
    with http_server(Late) as address:
        way.config.update({"value.converter": "AvroConverter", "schema.registry.url": address, "sink": ANY_FORMAT})
        assert dict(way.land(spark, **{"retry.backoff.max.ms": 10}).of("ks.t").dead) == {"UNKNOWN_SCHEMA": 3}
        Late.known = ("7",)
        way.land(spark)
    assert [(row[0], row[-1]) for row in way.rows(spark)] == [(1, "x")]
    assert [row["reason"] for row in spark.table("ks.t__dead_letters").collect()] == ["UNKNOWN_SCHEMA"]


def test_a_registry_that_does_not_answer_is_named() -> None:
    with pytest.raises(LandingError, match="no Schema Registry answers"):
        Registry(["http://127.0.0.1:9"], {}).schema(1)
