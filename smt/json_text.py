"""Keys and values as JSON texts, with their schemas around them or without, and headers as bytes.

In: what JSON gave, or a header's bytes. Out: schema, payload and whether there was a wrapping; and the way back.
"""

from __future__ import annotations

import contextlib
import json
import math
from base64 import b64encode
from typing import Any, Final, NamedTuple, TypeGuard

from connector.java_numbers import Float32, java_double, java_float
from smt.record import Schema

#: A transform may make a schema for each record.
_WRITTEN_SCHEMAS: Final = 1000


class Part(NamedTuple):
    """A key or a value; ``wrapped``: it came as ``{"schema": …, "payload": …}``."""

    schema: Schema | None
    payload: Any
    wrapped: bool


def unwrap(part: Any, schemas: dict[str, Schema]) -> Part:
    """What a JSON value holds. Equal schemas become one object of ``schemas``: transforms keep plans for each."""
    if not is_wrapped(part):
        return Part(None, part, False)
    schema = part["schema"]
    if schema is None:
        return Part(None, part["payload"], True)
    return Part(schemas.setdefault(json.dumps(schema), schema), part["payload"], True)


class JsonTexts:
    """Reads and writes texts of keys or values. With a schema around it most of a text is that, and the same in all of
    a table: it is read and written once, and what stands before the payload is compared from then on."""

    def __init__(self) -> None:
        self._schemas: dict[str, Schema] = {}
        self._read: dict[str | bytes, Schema] = {}
        # By the identity of a schema, which is kept as long as it stands here.
        self._written: dict[int, tuple[Schema, str]] = {}

    def part(self, text: str | bytes) -> Part:
        """What a text holds; ``ValueError`` for one that is no JSON."""
        before, payload = _halves(text)
        schema = self._read.get(before)
        if schema is not None:
            with contextlib.suppress(ValueError):
                return Part(schema, json.loads(payload), True)
        part = unwrap(json.loads(text), self._schemas)
        if part.schema is not None and payload:
            self._learn(before, part.schema)
        return part

    def text(self, schema: Schema | None, payload: Any, was_wrapped: bool) -> str:
        """What ``json_text`` makes of what ``wrap`` makes of these."""
        if schema is None:
            return json_text(wrap(None, payload, was_wrapped))
        known = self._written.get(id(schema))
        if known is None:
            if len(self._written) >= _WRITTEN_SCHEMAS:
                self._written.clear()
            known = self._written[id(schema)] = (schema, json_text(schema))
        return f'{{"schema":{known[1]},"payload":{json_text(json_value(payload))}}}'

    def _learn(self, before: str | bytes, schema: Schema) -> None:
        # A schema may have the same word inside, and a text several payloads.
        with contextlib.suppress(ValueError):
            if json.loads(before + b"}" if isinstance(before, bytes) else before + "}") == {"schema": schema}:
                self._read[before] = schema


def _halves(text: str | bytes) -> tuple[str | bytes, str | bytes]:
    """What stands before the payload of ``{"schema":…,"payload":…}``, and the payload; nothing for another text."""
    if isinstance(text, bytes):
        before, _, payload = text.partition(b',"payload":')
        return (before, payload[:-1]) if payload.endswith(b"}") else (b"", b"")
    start, _, rest = text.partition(',"payload":')
    return (start, rest[:-1]) if rest.endswith("}") else ("", "")


def no_json(text: str | bytes, error: Exception) -> str:
    """What is said of a text that could not be read."""
    if isinstance(error, RecursionError):
        return "JSON that is nested too deeply"
    if text[:1] in (b"\0", "\0"):
        return "not JSON, but begins as Avro does, with a schema's id"
    return f"not JSON: {error}"


def is_wrapped(part: Any) -> TypeGuard[dict[str, Any]]:
    """Rather than a row whose columns have these names, as a table's key may."""
    if not isinstance(part, dict) or part.keys() != {"schema", "payload"}:
        return False
    return part["schema"] is None or isinstance(part["schema"], dict)


def wrap(schema: Schema | None, payload: Any, was_wrapped: bool) -> Any:
    """The JSON value of a key or value; one without a schema is wrapped if it was before."""
    payload = json_value(payload)
    if schema is None and (payload is None or not was_wrapped):
        return payload
    return {"schema": schema, "payload": payload}


def json_value(value: Any) -> Any:
    """A value as JSON can say it, in the way of Java's JsonConverter."""
    kind = type(value)
    if kind is dict:
        return {name: json_value(part) for name, part in value.items()}
    if kind is list or kind is tuple:
        return [json_value(part) for part in value]
    if kind is bytes:
        return b64encode(value).decode()
    if isinstance(value, float):
        if kind is Float32:
            # The number of double precision that has the digits of the one of single precision.
            value = float(java_float(value))
        return value if math.isfinite(value) else java_double(value)
    return value


def json_text(value: Any) -> str:
    """Without blanks, characters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def header_value(data: bytes | None) -> Any:
    """A header as Connect's SimpleHeaderConverter writes it: a list of names, or a text."""
    if data is None:
        return None
    text = data.decode("utf-8", "replace")
    if text.startswith("["):
        try:
            return json.loads(text)
        except (RecursionError, ValueError):
            return [item.strip().strip('"') for item in text.strip("[]").split(",") if item.strip()]
    return text
