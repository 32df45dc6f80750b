"""Fuzzers: each makes one input from a random generator and hands it to the room that must answer it.

In: a ``random.Random``. Out: nothing; what the room raises on purpose for bad input is caught, and everything else is a
foreign exception, a defect. The same seed makes the same inputs.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Message

from connector.cli.numbers import count, port, positive
from connector.config import RegistryConfig
from connector.config.tls.keystores import KeystoreError, read_certificates, read_identity
from connector.delivery.records import decode_offsets_entry, encode_offsets_key
from connector.delivery.slot_reader import SlotRecords
from connector.errors import CdcError
from connector.registry.client import SchemaRegistry
from connector.registry.timely_http import Answer
from connector.topology import check_entry
from connector.values import NATIVE_NAMES, RenderingRules, column_renderer, decoder, parse_type
from connector.values.big_numbers import whole_number
from embedded.scylla.errors import CqlError
from embedded.scylla.protocol.frame import OPCODE_NAMES
from embedded.scylla.protocol.primitives import Malformed
from embedded.scylla.protocol.requests import parse_request
from smt import Record, SmtError, build_transform
from smt.kafka import AvroDecoder, decode_json
from tests.config.files import CONNECTOR, STORES, WORKER, validate
from tests.config.test_config_junk import NAMES, VALUES, WORKER_NAMES
from tests.fuzz import bodies, kept, outside, records

Fuzzer = Callable[[random.Random], None]

_WORDS = ["op", "c", "u", "d", "after", "before", "source", "value", "name", "fields", "type", "struct"]
_WORDS += [
    "string",
    "null",
    "optional",
    "field",
    "a.Envelope",
    "a.b.Cell",
    "record",
    "array",
    "map",
    "items",
    "values",
    "int",
    "bytes",
]
_SCALARS: list[Any] = [None, True, 0, -1, 2**70, 1.5, float("inf"), float("nan"), "", "\x00", "\ud800", "²", "9" * 5000]


def _json(draw: random.Random, depth: int = 4) -> Any:
    """Any JSON value, with the words of our records in it."""
    kind = draw.randrange(8 if depth else 4)
    if kind < 2:
        return draw.choice(_WORDS)
    if kind < 4:
        return draw.choice(_SCALARS)
    if kind < 6:
        return [_json(draw, depth - 1) for _ in range(draw.randrange(4))]
    return {draw.choice(_WORDS): _json(draw, depth - 1) for _ in range(draw.randrange(6))}


def _damaged(draw: random.Random, content: bytes) -> bytes:
    """Some bytes changed, cut out or repeated."""
    made = bytearray(content)
    for _ in range(draw.randrange(1, 6)):
        at = draw.randrange(len(made) + 1)
        match draw.randrange(4):
            case 0 if at < len(made):
                made[at] = draw.randrange(256)
            case 1:
                del made[at : at + draw.randrange(1, 20)]
            case 2:
                made[at:at] = draw.randbytes(draw.randrange(1, 9))
            case _:
                made[at:at] = made[at : at + draw.randrange(1, 40)]
    return bytes(made)


def configurations(draw: random.Random) -> None:
    connector, worker = (dict(CONNECTOR) if draw.random() < 0.7 else {}), dict(WORKER)
    for document, names in ((connector, NAMES), (worker, WORKER_NAMES)):
        for name in draw.sample(names, draw.randrange(12)):
            document[name] = draw.choice(VALUES) if draw.random() < 0.7 else _json(draw, 2)
    for problem in validate(connector, worker, {"X": draw.choice(["x", "", "http://["])}):
        assert problem.problem and str(problem)


def offsets_records(draw: random.Random) -> None:
    key: dict[str, Any] = {"keyspace_name": "ks", "table_name": "t", "slot": 1, "slots": 2}
    if draw.random() < 0.5:
        key = {"keyspace_name": "ks", "table_name": "t", "stream_id": "00ff"}
    value: Any = {"read_to": 1, "stream_set": 1, "start": 1, "owner": "w"}
    if "stream_id" in key:
        value = {"read_to": 1, "after": "13814000-1dd2-11b2-8080-808080808080"}
    for members in (key, value):
        if draw.random() < 0.6:
            members[draw.choice([*members, "x"])] = _json(draw, 1)
    raw_key = encode_offsets_key("mine", {}) if draw.random() < 0.02 else json.dumps(["mine", key]).encode()
    raw_value = json.dumps(value).encode()
    entry = decode_offsets_entry(
        "mine",
        1,
        _damaged(draw, raw_key) if draw.random() < 0.3 else raw_key,
        _damaged(draw, raw_value) if draw.random() < 0.3 else raw_value,
        "positions",
        draw.randrange(100),
    )
    if entry is not None:
        assert entry.owner is None or entry.owner.encode()
        try:
            check_entry(entry)
        except CdcError:
            pass


@functools.cache
def _transforms() -> list[Any]:
    null = {"untouched.fields": "null", "add.fields": "op,source.ts_us", "route.by.field": "name"}
    rewrite = {**null, "delete.tombstone.handling.mode": "rewrite", "add.headers": "op", "drop.fields.header.name": "h"}
    return [build_transform("extract-new-state", options) for options in ({}, null, rewrite)] + [
        build_transform("ScyllaFlattenColumns")
    ]


def transformed_records(draw: random.Random) -> None:
    envelope = {name: _json(draw, 3) for name in ("op", "after", "before", "source") if draw.random() < 0.9}
    envelope["op"] = draw.choice(["c", "u", "d", "r", "t", _json(draw, 1)])
    schema: Any = None
    if draw.random() < 0.6:
        image = {"type": "struct", "name": "r", "fields": _json(draw, 3)}
        fields = [{**image, "field": "after"}, {"type": "struct", "field": "before"}, _json(draw, 1)]
        schema = {"type": "struct", "name": "a.Envelope", "fields": fields[: draw.randrange(4)]}
    record = Record("t", _json(draw, 1), envelope, [("h", _json(draw, 1))], None, schema)
    try:
        draw.choice(_transforms())(record)
    except SmtError:
        pass


def decoded_records(draw: random.Random) -> None:
    raw = json.dumps(_json(draw)).encode()
    schema = {"type": "record", "name": "a.R", "fields": [{"name": "x", "type": _json(draw, 2)}]}
    for decode, data in (
        (decode_json, _damaged(draw, raw)),
        (AvroDecoder(lambda number: json.dumps(schema)), b"\0\0\0\0\1" + draw.randbytes(draw.randrange(20))),
    ):
        try:
            decode(data)
        except SmtError:
            pass


@functools.cache
def _stores() -> tuple[Path, list[bytes]]:
    kept = tempfile.TemporaryDirectory(prefix="scylla-cdc-fuzz-")
    _KEPT.append(kept)
    return Path(kept.name) / "store", [path.read_bytes() for path in sorted(STORES.iterdir()) if path.is_file()]


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def key_stores(draw: random.Random) -> None:
    path, contents = _stores()
    path.write_bytes(_damaged(draw, draw.choice(contents)))
    password = draw.choice([None, "trustpass", "storepass", "keypass", "", "\ud800"])
    for read in (read_certificates, read_identity):
        try:
            read(str(path), password)
        except KeystoreError:
            pass


_SHAPES = ["{0}", "list<{0}>", "set<frozen<list<{0}>>>", "map<{0}, {1}>", "tuple<{0}, {1}>", "vector<{0}, 3>"]


@functools.cache
def _type(spelled: str) -> tuple[Any, Any, Any]:
    type_ = parse_type(spelled)
    return decoder(type_), column_renderer(type_), column_renderer(type_, RenderingRules(strict=True))


def log_values(draw: random.Random) -> None:
    names = sorted(NATIVE_NAMES)
    spelled = draw.choice(_SHAPES).format(draw.choice(names), draw.choice(names))
    raw = draw.randbytes(draw.randrange(40))
    if draw.random() < 0.7:
        cells = [draw.randbytes(draw.choice([0, 1, 4, 8, 16])) for _ in range(draw.randrange(4))]
        raw = len(cells).to_bytes(4, "big") + b"".join(len(cell).to_bytes(4, "big") + cell for cell in cells)
    for use in _type(spelled):
        try:
            use(raw)
        except (ArithmeticError, ValueError):
            pass


def cql_frames(draw: random.Random) -> None:
    text = draw.choice(["SELECT * FROM ks.t WHERE pk = ?", "BEGIN BATCH", ""]).encode()
    body = len(text).to_bytes(4, "big") + text + draw.randbytes(draw.randrange(40))
    opcode = draw.choice([*OPCODE_NAMES, draw.randrange(256)])
    try:
        parse_request(opcode, draw.choice((3, 4)), _damaged(draw, body), metadata_ids=draw.random() < 0.5)
    except (CqlError, Malformed):
        pass


def registry_answers(draw: random.Random) -> None:
    content = json.dumps({"id": _json(draw, 1), "schema": _json(draw, 2), "error_code": _json(draw, 1), "message": "m"})
    status = draw.choice([200, 200, 204, 301, 404, 409, 500, 999])
    answer = Answer(status, _damaged(draw, content.encode()), "http://b" if status == 301 else None)
    registry = SchemaRegistry(RegistryConfig(urls=("http://registry:8081",)), auto_register=draw.random() < 0.5)
    registry._exchange = lambda *_: answer  # type: ignore[method-assign]
    for ask in (lambda: registry.id_for("s", "{}"), lambda: registry.schema_of(1), registry.subjects):
        try:
            ask()
        except CdcError:
            pass


def offsets_topics(draw: random.Random) -> None:
    """The records of a slot, of ours, of others, and damaged: in bulk they say what they say one by one."""
    slot, expected = SlotRecords("mine", 0), dict[str, Any]()
    run = []
    for offset in range(draw.randrange(12)):
        key = json.dumps(
            [draw.choice(["mine", "other", "mi"]), {"x": draw.randrange(3)}],
            separators=draw.choice([(",", ":"), (", ", ": ")]),
        ).encode()
        key = _damaged(draw, key) if draw.random() < 0.2 else key
        value = draw.choice([None, b'{"owner":"w"}', json.dumps({"n": offset}).encode(), draw.randbytes(5)])
        run.append(Message(topic="positions", partition=0, offset=offset, key=key, value=value))
        entry = decode_offsets_entry("mine", 0, key, value, "positions", offset)
        if entry is not None:
            name = json.dumps(entry.key)
            expected.pop(name, None)
            if value is not None:
                expected[name] = entry
    at = draw.randrange(len(run) + 1)
    for part in (run[:at], run[at:]):
        assert not list(slot.take(part))
    assert {json.dumps(entry.key): entry for entry in slot.restored().entries} == expected


def command_line_numbers(draw: random.Random) -> None:
    text = "".join(draw.choices("0123456789²٣-+_ .e\x00\ud800", k=draw.choice([0, 1, 3, 6, 20, 5_000])))
    for read in (positive, count, port):
        try:
            assert 0 <= read(text) <= 10**18
        except argparse.ArgumentTypeError:
            pass


def huge_numbers(draw: random.Random) -> None:
    # The longest take milliseconds each: fewer of them.
    length = draw.choices([1, 40, 400, 2_049, 5_000, 20_000], weights=[30, 30, 30, 6, 3, 1])[0]
    digits = "".join(draw.choices("0123456789", k=length))
    value = whole_number(draw.choice(["", "-", "+"]) + digits)
    raw = value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)
    for spelled, data in (("varint", raw), ("decimal", draw.choice([b"\0\0\0\5", b"\x7f\xff\xff\xff"]) + raw)):
        for use in _type(spelled):
            try:
                use(data)
            except (ArithmeticError, ValueError):
                pass


FUZZERS: dict[str, Fuzzer] = {
    "registry-answers": registry_answers,
    "offsets-topics": offsets_topics,
    "command-line-numbers": command_line_numbers,
    "huge-numbers": huge_numbers,
    "configurations": configurations,
    "offsets-records": offsets_records,
    "transformed-records": transformed_records,
    "decoded-records": decoded_records,
    "key-stores": key_stores,
    "log-values": log_values,
    "cql-frames": cql_frames,
    **outside.FUZZERS,
    **records.FUZZERS,
    **kept.FUZZERS,
    **bodies.FUZZERS,
}


def fuzz(name: str, inputs: int, seed: int) -> list[str]:
    """Runs a fuzzer; the foreign exceptions, each with the number of the input that brings it back."""
    foreign = []
    for number in range(inputs):
        try:
            FUZZERS[name](random.Random(f"{seed}/{number}"))
        except Exception as error:
            foreign.append(f"{name}, seed {seed}, input {number}: {type(error).__name__}: {str(error)[:200]}")
    return foreign
