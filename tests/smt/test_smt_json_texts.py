"""JSON texts with schemas around them: read once each, and read right whatever stands in them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from smt.json_text import JsonTexts, Part, json_text, wrap

SCHEMA = {"type": "struct", "fields": [{"type": "int32", "optional": False, "field": "pk"}], "optional": False}


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


@pytest.mark.parametrize("as_bytes", [False, True], ids=["text", "bytes"])
def test_a_schema_is_read_once_and_is_one_object(as_bytes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str | bytes] = []
    loads = json.loads

    def noting(text: str | bytes) -> Any:
        read.append(text)
        return loads(text)

    monkeypatch.setattr(json, "loads", noting)
    texts = JsonTexts()
    seen = []
    for number in range(3):
        text = compact({"schema": SCHEMA, "payload": {"pk": number}})
        seen.append(texts.part(text.encode() if as_bytes else text))
    assert seen == [Part(SCHEMA, {"pk": number}, True) for number in range(3)]
    assert seen[1].schema is seen[0].schema is seen[2].schema
    assert read[-2:] == [b'{"pk":1}', b'{"pk":2}'] if as_bytes else ['{"pk":1}', '{"pk":2}']


@pytest.mark.parametrize(
    "text",
    [
        '{"schema":{"type":"int32"},"payload":5}',
        '{"schema":{"type":"int32"},"payload":null}',
        '{"schema":{"type":"int32"},"payload":5} ',
        '{"schema":{"type":"int32"},"payload":5,"payload":6}',
        '{"schema":{"type":"int32"},"payload":5,"more":6}',
        '{"schema":{"type":"int32"}, "payload": 5}',
        '{"schema":{"type":"int32","default":{"a":1,"payload":2}},"payload":5}',
        '{"payload":5,"schema":{"type":"int32"}}',
        '{"schema":null,"payload":{"schema":{"type":"int32"},"payload":5}}',
        '{"schema":7,"payload":5}',
        '[{"schema":{"type":"int32"},"payload":5}]',
        '{"schema":{"type":"string"},"payload":",\\"payload\\":1}"}',
    ],
)
def test_what_is_known_of_other_texts_changes_nothing(text: str) -> None:
    alone = JsonTexts().part(text)
    texts = JsonTexts()
    for known in ('{"schema":{"type":"int32"},"payload":5}', '{"schema":{"type":"string"},"payload":"x"}', text):
        texts.part(known)
    assert texts.part(text) == texts.part(text.encode()) == alone


@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize("payload", [None, 5, {"pk": 1, "b": b"x", "t": "\u00fc", "d": float("inf")}, [1.5]])
def test_texts_are_written_as_without_memory(payload: Any, wrapped: bool) -> None:
    texts = JsonTexts()
    for schema in (SCHEMA, None, SCHEMA, dict(SCHEMA)):
        assert texts.text(schema, payload, wrapped) == json_text(wrap(schema, payload, wrapped))


@pytest.mark.parametrize("behind", ["", "}", "5", "5}}", '5,"payload":}', "5} 6", "nan}"])
def test_what_is_no_json_stays_none_behind_a_known_schema(behind: str) -> None:
    texts = JsonTexts()
    texts.part('{"schema":{"type":"int32"},"payload":5}')
    with pytest.raises(ValueError, match=r"line 1 column"):
        texts.part('{"schema":{"type":"int32"},"payload":' + behind)
