"""Keys and values as JSON texts, with their schemas around them or without, and headers as bytes.

In: what JSON gave, or a header's bytes. Out: schema, payload and whether there was a wrapping; and the way back.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from typing import Any, NamedTuple, TypeGuard

from connector.java_numbers import Float32, java_double, java_float
from smt.record import Schema


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
