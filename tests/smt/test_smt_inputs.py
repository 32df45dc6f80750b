"""Records that are no change records: passed on, or refused by their place; and columns with names of added fields."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE

from connector.cli.transform import run_lines
from connector.errors import CdcError
from connector.java_numbers import Float32
from smt import Record, SmtOptionError, SmtRecordError, build_transform
from smt.avro_schema import connect_schema
from smt.json_text import json_text, json_value
from smt.kafka import AvroDecoder, DecodeError, FlatteningConsumer, decode_json

STRING = {"type": "string", "optional": True}
SOURCE = {"ts_us": 1}


def struct(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "struct", "name": name, "fields": [{**each, "field": field} for field, each in fields.items()]}


@pytest.mark.parametrize("mode", ["rewrite", "drop"])
def test_what_is_no_envelope_is_passed_on_whatever_its_fields_are(mode: str) -> None:
    transform = build_transform(
        "extract-new-state", {"delete.tombstone.handling.mode": mode, "untouched.fields": "null"}
    )
    for schema in (struct("a.Value", after=STRING), struct("a.Value", before=STRING, after=struct("b", x=STRING))):
        record = Record("t", None, {"after": "x", "before": "y"}, [], None, schema)
        assert transform(record) is record
    bare = Record("t", None, {"op": "c", "source": SOURCE, "before": None, "after": "text"})
    assert transform(bare) is bare


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (struct("a.Envelope", after=STRING, op=STRING), {"op": "c", "after": "text"}),
        (struct("a.Envelope", after=struct("r", x=STRING)), {"op": "c", "after": "text"}),
        (struct("a.Envelope", after=struct("r", x=struct("x.Cell", value=STRING))), {"op": "c", "after": {"x": 5}}),
        ({"name": "a.Envelope", "fields": 5}, {"op": "c", "after": {}}),
        ({"name": "a.Envelope", "fields": [{}]}, {"op": "c", "after": {}}),
    ],
)
@pytest.mark.parametrize("type_name", ["extract-new-state", "ScyllaFlattenColumns"])
def test_what_contradicts_its_schema_is_an_error_of_the_record(type_name: str, schema: Any, value: Any) -> None:
    options = {"untouched.fields": "null"} if type_name == "extract-new-state" else {}
    transform = build_transform(type_name, options)
    try:
        transform(Record("t", {"k": 1}, value, [], None, schema))
    except SmtRecordError as error:
        assert "is not what its schema says" in str(error)


@pytest.mark.parametrize("name", ["__deleted", "__op"])
@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("op", ["c", "d"])
def test_columns_with_the_names_of_added_fields_are_refused(name: str, typed: bool, op: str) -> None:
    options = {"delete.tombstone.handling.mode": "rewrite", "add.fields": "op", "untouched.fields": "null"}
    row = {"id": 1, name: "mine"}
    value = {"op": op, "source": SOURCE, "before": row if op == "d" else None, "after": row if op == "c" else None}
    image = struct("r", id=STRING, **{name: STRING})
    schema = struct("a.Envelope", before=image, after=image, op=STRING, source=struct("s")) if typed else None
    with pytest.raises(SmtRecordError, match=f"there is a column {name}"):
        build_transform("extract-new-state", options)(Record("t", None, value, [], None, schema))


def test_a_wrong_value_of_an_option_is_shown() -> None:
    with pytest.raises(SmtOptionError, match=r"delete.tombstone.handling.mode = 'vanish'"):
        build_transform("extract-new-state", {"delete.tombstone.handling.mode": "vanish"})


SELF = {"type": "record", "name": "a.R", "fields": [{"name": "r", "type": ["null", "a.R"]}]}


def test_schemas_that_hold_themselves() -> None:
    with pytest.raises(ValueError, match=r"a\.R holds itself"):
        connect_schema(SELF)
    with pytest.raises(DecodeError, match="schema 7 of the registry"):
        AvroDecoder(lambda number: json.dumps(SELF))(b"\0\0\0\0\7\0")


def test_named_types_are_converted_once() -> None:
    schema: Any = {"type": "record", "name": "a.R0", "fields": []}
    for level in range(1, 60):
        fields = [{"name": "x", "type": schema}, {"name": "y", "type": f"a.R{level - 1}"}]
        schema = {"type": "record", "name": f"a.R{level}", "fields": fields}
    assert connect_schema(schema)["name"] == "a.R59"


@pytest.mark.parametrize("data", [b"[" * 100_000, b"\xff", b"{", b"9" * 5000])
def test_json_that_cannot_be_decoded(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_json(data)


class Message:
    """One record of a topic."""

    def __init__(self, value: bytes) -> None:
        self._value = value

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 17

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_NOT_AVAILABLE, -1

    def key(self) -> None:
        return None

    def value(self) -> bytes:
        return self._value

    def headers(self) -> list[tuple[str, bytes]]:
        return [("h", b"[" * 100_000)]


@pytest.mark.parametrize(
    "value",
    [
        b"[" * 100_000,
        b'{"op": "c", "source": {}, "before": null, "after": null}',
        b'{"schema": null, "payload": {"op": "c", "source": {}, "before": null, "after": null}}',
    ],
)
def test_a_consumer_names_topic_partition_and_offset(value: bytes) -> None:
    consumer: Any = FlatteningConsumer(None, build_transform("extract-new-state"))  # type: ignore[arg-type]
    with pytest.raises((DecodeError, SmtRecordError), match=r"t\[3\]@17"):
        consumer.transform(Message(value))


AVRO = b"\0\0\0\0\x07\x02\x04"


@pytest.mark.parametrize(
    ("value", "how", "said"),
    [
        (b"{", "json", r"its value: not JSON: Expecting.*; `value` of FlatteningConsumer says how it is written"),
        (AVRO, "json", "its value: not JSON, but begins as Avro does, with a schema's id;"),
        (b"{}", AvroDecoder(lambda number: ""), "its value: not Avro with a schema's id in front"),
        (AVRO, AvroDecoder(lambda number: "{"), "its value: schema 7 of the registry is none that can be read"),
    ],
)
def test_a_consumer_says_what_is_not_written_as_it_was_told(value: bytes, how: Any, said: str) -> None:
    consumer: Any = FlatteningConsumer(None, build_transform("extract-new-state"), value=how)  # type: ignore[arg-type]
    with pytest.raises(DecodeError, match=rf"^t\[3\]@17: {said}"):
        consumer.transform(Message(value))


@pytest.mark.parametrize(
    "line", ["[" * 100_000, '{"value": "\\ud800"}', '{"value": "\udc80"}', '{"value": ' + "9" * 5000 + "}", "{", "5"]
)
def test_a_line_that_is_no_record_is_named(line: str) -> None:
    with pytest.raises(CdcError, match="line 2 of stdin"):
        run_lines(build_transform("extract-new-state"), io.StringIO("\n" + line + "\n"), io.StringIO())


def test_what_collections_hold_is_json_as_well() -> None:
    """As of Avro's lists of doubles and blobs."""
    found = json_value({"list": [b"x", float("nan"), (Float32(0.1), None)], "map": {"k": [float("-inf")]}})
    assert json_text(found) == '{"list":["eA==","NaN",[0.1,null]],"map":{"k":["-Infinity"]}}'
