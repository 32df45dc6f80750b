"""The converters of single values write what Java's classes wrote, and refuse what they refused."""

from __future__ import annotations

from typing import Any

import pytest

from connector.config import load
from connector.config.converters import build_converter, converter_kind, options_of
from connector.errors import ConfigurationError
from connector.formats.converters import header_converter, side_converter
from connector.formats.encoder import Encoder
from smt import Header
from tests.formats.golden import NOW_NS
from tests.formats.options import BASE, JSON, WORKER, output_options
from tests.formats.rows import Log, table
from tests.smt.connect.recorded import decoded, read

LOG = Log(table({"p": "bigint", "v": "text"}, ("p",), ()))
EXTRACT = {"transforms": "k", "transforms.k.type": "ExtractField$Key", "transforms.k.field": "p"}
KAFKA = "org.apache.kafka.connect"


@pytest.mark.parametrize("number", range(len(read("converters"))))
def test_bytes_are_javas(number: int) -> None:
    case, java = read("converters")[number]
    kind = converter_kind(case["converter"])
    values = {one.name: one.default for one in options_of(kind).values()}
    values |= {name: options_of(kind)[name].kind.parse(text) for name, text in case["options"].items()}
    config = build_converter(kind, "value", values)
    for given, expected in zip(case["values"], java, strict=True):
        schema, value = (None, None) if given is None else (given["schema"], decoded(given["schema"], given["payload"]))
        if schema is None and isinstance(value, dict | list):
            continue  # in the order of Java's HashMap
        if isinstance(expected, str) and b"[B@" in bytes.fromhex(expected):
            continue  # the address of an array, another one at each run
        try:
            if case["header"]:
                found = header_converter(config)(Header("h", value, schema))
            else:
                found = side_converter(config, "value", None).serializer("t", schema)(value)
        except TypeError as error:
            assert "error" in (expected or {}), (given, str(error), expected)
        else:
            assert (None if found is None else found.hex()) == expected, (given, found)


@pytest.mark.parametrize(
    ("converter", "key"), [("StringConverter", b"3"), (f"{KAFKA}.converters.LongConverter", b"\0\0\0\0\0\0\0\3")]
)
def test_keys_that_are_extracted_are_written_by_converters_of_single_values(converter: str, key: bytes) -> None:
    options = output_options(**EXTRACT, **{"key.converter": converter, "key.converter.schemas.enable": "false"})
    (change,) = LOG.changes(LOG.row(2, 0, True, p=3, v="x"))
    assert Encoder(options, clock=lambda: NOW_NS).encode(change)[0].key == key


def test_texts_of_structs_have_no_defaults_of_what_is_not_set() -> None:
    transforms = (
        {},
        {"transforms": "k", "transforms.k.type": "ExtractField$Value", "transforms.k.field": "source"},
        {"transforms": "k", "transforms.k.type": "HoistField$Value", "transforms.k.field": "o"},
        {"transforms": "k", "transforms.k.type": "ScyllaExtractNewRecordState", "transforms.k.add.fields": "source"},
    )
    (change,) = LOG.changes(LOG.row(2, 0, True, p=3, v="x"))
    for options in transforms:
        encoder = Encoder(output_options(**options, **{"value.converter": "StringConverter"}), clock=lambda: NOW_NS)
        value = encoder.encode(change)[0].value
        assert value is not None and b",db=" in value and b"snapshot" not in value


@pytest.mark.parametrize(
    ("compatibility", "text"),
    [("strict", b"Struct{p=Sat Jan 01 00:00:00 UTC 1}"), ("default", b"Struct{p=Mon Jan 03 00:00:00 UTC 1}")],
)
def test_dates_before_the_cutover_are_texts_of_their_days(compatibility: str, text: bytes) -> None:
    log = Log(table({"p": "date", "v": "text"}, ("p",), ()))
    (change,) = log.changes(log.row(2, 0, True, p=-719162, v="x"))
    options = output_options(**{"key.converter": "StringConverter", "scylla.compatibility": compatibility})
    assert Encoder(options, clock=lambda: NOW_NS).encode(change)[0].key == text


def refused(**properties: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(BASE | JSON | properties, WORKER | JSON, {})
    return [str(problem) for problem in caught.value.problems]


def test_structs_are_no_single_values() -> None:
    (text,) = refused(**{"key.converter": "LongConverter"})
    assert "ExtractField$Key" in text
    loaded = load(BASE | JSON | {"key.converter": "StringConverter"}, WORKER | JSON, {})
    assert any("toString()" in notice for notice in loaded.notices)


@pytest.mark.parametrize(
    ("converter", "expected"),
    [
        ({}, b"true"),
        ({"header.converter": "StringConverter"}, b"true"),
        ({"header.converter": f"{KAFKA}.json.JsonConverter", "header.converter.schemas.enable": "false"}, b"true"),
        (
            {"header.converter": "JsonConverter"},
            b'{"schema":{"type":"boolean","optional":false},"payload":true}',
        ),
        ({"header.converter": "BooleanConverter"}, b"\1"),
    ],
)
def test_headers_have_converters_of_their_own(converter: dict[str, str], expected: bytes) -> None:
    insert: dict[str, Any] = {
        "transforms": "h",
        "transforms.h.type": "InsertHeader",
        "transforms.h.header": "flag",
        "transforms.h.value.literal": "true",
    }
    (change,) = LOG.changes(LOG.row(2, 0, True, p=3, v="x"))
    (record,) = Encoder(output_options(**insert, **converter), clock=lambda: NOW_NS).encode(change)
    assert record.headers == [("flag", expected)]
