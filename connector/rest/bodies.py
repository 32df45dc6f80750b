"""What comes in as JSON and goes out as JSON, with the refusals that Connect has for what it cannot read or write.

In: requests. Out: bodies, answers; ``Refused`` with 415 or 500 (Connect's answer to a body that is no JSON).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from connector.config import no_json
from connector.http import JSON, Answer, Refused, Request
from connector.rest.media_types import says_json
from connector.secrets import scrubbed


class _WrittenInt(int):
    """A number that is a text as it was written: 1.50 is no 1.5, and -0 no 0."""

    written: str


class _WrittenFloat(float):
    written: str


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """As Connect writes it: without blanks, in UTF-8."""
    text = json.dumps(scrubbed(value), separators=(",", ":"), ensure_ascii=False)
    return Answer(status, JSON, text.encode(errors="replace"), headers or {})


def nothing(status: int) -> Answer:
    """It is done, or will be."""
    return Answer(status, "", b"")


def properties(given: Any) -> dict[str, str | None]:
    """Names of properties and their texts. What is no text becomes one, as Connect's reader does it."""
    if not isinstance(given, dict):
        raise Refused(500, "The configuration must be a JSON object")
    if set(given) <= {"name", "config"} and isinstance(given.get("config"), dict):
        raise Refused(500, "The body must be the properties alone, without name and config around them")
    return {name: property_text(name, value) for name, value in given.items()}


def texts(given: Mapping[str, str | None]) -> dict[str, str]:
    """Of properties: those that have one."""
    return {name: text for name, text in given.items() if text is not None}


def property_text(name: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        raise Refused(500, f"The value of {name} must be a text, a number or a boolean")
    return value.written if isinstance(value, _WrittenInt | _WrittenFloat) else json.dumps(value)


def refuse_other_than_json(request: Request) -> None:
    """Wildcards are other things, too."""
    given = header(request, "content-type")
    if given is not None and not says_json(given):
        raise Refused(415, "HTTP 415 Unsupported Media Type")


def json_object(request: Request) -> dict[str, Any]:
    found = _json(request)
    if not isinstance(found, dict):
        raise Refused(500, "The request's body must be a JSON object")
    return found


def json_array_or_null(request: Request) -> list[Any] | None:
    """Of whatever type it says it is."""
    found = _read(request)
    if not isinstance(found, list | None):
        raise Refused(500, "The request's body must be a JSON array")
    return found


def _json(request: Request) -> Any:
    if request.body:
        if header(request, "content-type") is None:
            raise Refused(415, "HTTP 415 Unsupported Media Type")
        refuse_other_than_json(request)
    return _read(request)


def _read(request: Request) -> Any:
    if not request.body:
        raise Refused(500, "The request has no body; JSON is wanted")
    try:
        found = json.loads(request.body, parse_constant=_no_constant, parse_int=_int, parse_float=_float)
        if b"\\u" in request.body:
            # A lone surrogate can be in JSON, and nowhere else.
            json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise Refused(500, f"The request's body is no JSON: {_without_content(error)}") from None
    return found


def _without_content(error: Exception) -> str:
    """Where it is wrong, without what stands there: it may be a password."""
    if isinstance(error, json.JSONDecodeError):
        found = no_json(error, of_a_file=False)
        return found.at_its_line() + (f" ({found.hint})" if found.hint else "")
    return "it is not in UTF-8, or nested too deep"


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no value of JSON's")


def _int(text: str) -> int:
    number = _WrittenInt(text)
    number.written = text
    return number


def _float(text: str) -> float:
    number = _WrittenFloat(text)
    number.written = text
    return number


def header(request: Request, wanted: str) -> str | None:
    return next((value.strip() for name, value in request.headers.items() if name.lower() == wanted), None)
