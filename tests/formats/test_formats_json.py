"""JSON bytes as Jackson writes them (texts recorded from Jackson 2.18 on JDK 21), and the converter's envelope."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.config import ConverterConfig
from connector.formats.json_converter import JsonConverter, to_json
from connector.formats.schemas import schema, struct
from connector.java_numbers import Float32, WideDouble


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a\x01\x1f\x7f\u2028é", b'"a\\u0001\\u001F\x7f\xe2\x80\xa8\xc3\xa9"'),
        ("😀", b'"\\uD83D\\uDE00"'),
        ("\U00010000\U0010ffff", b'"\\uD800\\uDC00\\uDBFF\\uDFFF"'),
        ('"\\/\n\t\b\f\r\x0b', b'"\\"\\\\/\\n\\t\\b\\f\\r\\u000B"'),
        ("<>&'\ufeff\uffff", b'"<>&\'\xef\xbb\xbf\xef\xbf\xbf"'),
        ("\\u001f", b'"\\\\u001f"'),
        ("\x1a\x1b\\\x1c", b'"\\u001A\\u001B\\\\\\u001C"'),
        (1.0, b"1.0"),
        (-0.0, b"-0.0"),
        (123456.789, b"123456.789"),
        (WideDouble(1e30), b"1.0E30"),
        (WideDouble(5e-324), b"4.9E-324"),
        (WideDouble("nan"), b'"NaN"'),
        (WideDouble("-inf"), b'"-Infinity"'),
        (Float32(2.7182800769805908), b"2.71828"),
        (Float32("inf"), b'"Infinity"'),
        (-(2**63), b"-9223372036854775808"),
        (b"", b'""'),
        (b"\xca\xfe\xba\xbe", b'"yv66vg=="'),
        ({"a": None, "b": [True, {}]}, b'{"a":null,"b":[true,{}]}'),
    ],
)
def test_bytes(value: Any, expected: bytes) -> None:
    assert to_json(value) == expected
    assert to_json({"x": [value]}) == b'{"x":[' + expected + b"]}"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_texts_read_back_and_are_escaped_as_jackson_does(text: str) -> None:
    raw = to_json(text)
    assert json.loads(raw) == text
    assert all(byte < 0xF0 for byte in raw)
    expected = []
    short = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
    for character in text:
        units = character.encode("utf-16-be")
        if len(units) == 4:
            expected.append("".join(f"\\u{units[at]:02X}{units[at + 1]:02X}" for at in (0, 2)))
        elif character in short:
            expected.append(short[character])
        else:
            expected.append(f"\\u{ord(character):04X}" if character < " " else character)
    assert raw.decode() == f'"{"".join(expected)}"'


@given(st.binary())
def test_blobs_are_base64(value: bytes) -> None:
    assert json.loads(to_json(value)) == b64encode(value).decode()


def test_what_is_no_value_of_a_record_is_refused() -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        to_json({"a": object()})


SCHEMA = struct("a.Key", [("id", schema("int32"))], optional=False)


def test_without_schemas() -> None:
    converter = JsonConverter(ConverterConfig("json", schemas_enable=False))
    assert converter.serializer("t", SCHEMA)({"id": 1}) == b'{"id":1}'
    assert converter.serializer("t", None)(None) is None
    assert converter.serializer("t", None)({"id": 1}) == b'{"id":1}'


def test_with_schemas() -> None:
    converter = JsonConverter(ConverterConfig("json"))
    assert converter.serializer("t", SCHEMA)({"id": 1}) == (
        b'{"schema":{"type":"struct","fields":[{"type":"int32","optional":true,"field":"id"}],"optional":false,'
        b'"name":"a.Key"},"payload":{"id":1}}'
    )
    assert converter.serializer("t", None)(None) is None
    assert converter.serializer("t", None)({"id": 1}) == b'{"schema":null,"payload":{"id":1}}'


def test_the_default_of_the_snapshot_field_can_be_switched_off() -> None:
    envelope = struct("a.Envelope", [("source", struct("s", [("snapshot", schema("string", default="false"))]))])
    value = {"source": {"snapshot": "false"}}
    keeping = JsonConverter(ConverterConfig("json", schemas_enable=False, replace_null_with_default=False))
    assert keeping.serializer("t", envelope)(value) == b'{"source":{"snapshot":null}}'
    of_a_snapshot = keeping.serializer("t", envelope)({"source": {"snapshot": "true"}})
    assert of_a_snapshot == b'{"source":{"snapshot":"true"}}'
    assert keeping.serializer("t", SCHEMA)({"id": 1}) == b'{"id":1}'
    # Wherever transforms have put it.
    moved = struct("a.Row", [("o", struct("a.O", [("__source", envelope["fields"][0])])), ("n", schema("int32"))])
    assert keeping.serializer("t", moved)({"o": {"__source": {"snapshot": "false"}}, "n": 1}) == (
        b'{"o":{"__source":{"snapshot":null}},"n":1}'
    )
    assert keeping.serializer("t", moved)({"o": None, "n": 1}) == b'{"o":null,"n":1}'
    # A user's own column of that name.
    row = struct("a.Row", [("source", struct("a.UDT_u", [("x", schema("int32"))]))])
    assert keeping.serializer("t", row)({"source": {"x": 1}}) == b'{"source":{"x":1}}'
    replacing = JsonConverter(ConverterConfig("json", schemas_enable=False))
    assert replacing.serializer("t", envelope)(value) == b'{"source":{"snapshot":"false"}}'
