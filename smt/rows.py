"""A chain of transforms over records in the form in which Kafka and Spark have them: texts and bytes.

In: the properties of a chain, then records as plain columns. Out: the same columns, None for a dropped record. It can
be pickled: the process that works builds the chain from the properties, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from smt.chain import build_chain
from smt.connect.simple_text import simple_text
from smt.errors import SmtRecordError
from smt.json_text import JsonTexts, Part, header_value, no_json
from smt.record import Place, Record, Schema
from smt.transform import Transform

#: Name and bytes, in the order of the record.
RawHeaders = list[tuple[str, bytes | None]]
#: Topic, key, value, headers.
Row = tuple[str, str | None, str | None, RawHeaders]


class RowTransform:
    """Calls are pure; ``SmtRecordError`` names the record by topic, partition and offset."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._lines = tuple(sorted(properties.items()))
        # What is wrong with the properties is said here, not by the first record.
        _built(self._lines)

    def __call__(
        self,
        topic: str,
        key: str | bytes | None,
        value: str | bytes | None,
        headers: Iterable[tuple[str, bytes | None]] | None = None,
        place: Place | None = None,
    ) -> Row | None:
        chain, texts = _built(self._lines)
        try:
            key_part, value_part = _part("key", key, texts), _part("value", value, texts)
            given = [(name, None if data is None else bytes(data)) for name, data in headers or ()]
            decoded = [(name, header_value(data)) for name, data in given]
            record = Record(
                topic, key_part.payload, value_part.payload, decoded, key_part.schema, value_part.schema, place
            )
            done = chain.apply(record)
            if done is None:
                return None
            # A header that nothing touched keeps its bytes.
            kept = {id(header): raw for header, raw in zip(decoded, given, strict=True)}
            return (
                done.topic,
                _text(texts, done.key_schema, done.key, key_part.wrapped),
                _text(texts, done.value_schema, done.value, value_part.wrapped),
                [kept.get(id(header)) or _header(header) for header in done.headers],
            )
        except SmtRecordError as error:
            known = place or Place()
            raise SmtRecordError(f"{topic}[{known.partition}]@{known.offset}: {error}") from None


@lru_cache(maxsize=16)
def _built(lines: tuple[tuple[str, str], ...]) -> tuple[Transform, JsonTexts]:
    return build_chain(dict(lines)), JsonTexts()


def _part(what: str, data: str | bytes | None, texts: JsonTexts) -> Part:
    if data is None:
        return Part(None, None, False)
    text = data if isinstance(data, str) else bytes(data)
    try:
        return texts.part(text)
    except (ValueError, RecursionError) as error:
        raise SmtRecordError(f"its {what} is {no_json(text, error)}") from None


def _text(texts: JsonTexts, schema: Schema | None, payload: Any, wrapped: bool) -> str | None:
    if schema is None and payload is None:
        return None
    text = texts.text(schema, payload, wrapped)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SmtRecordError("it holds half of a \\u pair, which is no text") from None
    return text


def _header(header: tuple[str, Any]) -> tuple[str, bytes | None]:
    text = simple_text(getattr(header, "schema", None), header[1])
    return header[0], None if text is None else text.encode("utf-8", "replace")
