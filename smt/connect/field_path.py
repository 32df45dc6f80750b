"""The path to a field: its name, or with ``field.syntax.version=V2`` names with dots between them.

In: a path as text. Out: its steps, and what they lead to in schemas, structs and maps.
"""

from __future__ import annotations

from typing import Any

from smt.connect.options import Option, one_of
from smt.connect.structs import field_named, read, require_map
from smt.errors import SmtRecordError
from smt.record import Schema


def _check_version(text: str) -> None:
    try:
        one_of("V1", "V2")(text.upper())
    except ValueError:
        raise ValueError("String must be one of (case insensitive): V1, V2") from None


SYNTAX = Option(
    "field.syntax.version",
    "text",
    "`V2` reads dots in names of fields as steps into nested structs; names that hold dots stand in backticks.",
    default="V1",
    check=_check_version,
)


def steps(path: str, version: str) -> tuple[str, ...]:
    """The names on the path; ``ValueError`` where a backtick is not closed."""
    if version.upper() == "V1":
        return (path,)
    found, at = [], 0
    while at < len(path):
        if path[at] != "`":
            dot = path.find(".", at)
            found.append(path[at:dot] if dot >= 0 else path[at:])
            at = dot + 1 if dot >= 0 else len(path)
            continue
        name, at = _quoted(path, at)
        found.append(name)
    if path.endswith("."):
        found.append("")
    return tuple(found)


def _quoted(path: str, opening: int) -> tuple[str, int]:
    """The name between the backtick at ``opening`` and the one that a dot or the end follows, and where to go on."""
    start = at = opening + 1
    name = ""
    while True:
        at = path.find("`", at)
        last = at == len(path) - 1
        if at < 0 or (last and path[at - 1] == "\\"):
            raise ValueError(
                f"Incomplete backtick pair in path: [{path}], consider adding a backslash before backtick at position "
                f"{opening} to escape it"
            )
        if last:
            return name + path[start:at], at + 1
        if path[at + 1] != ".":
            at += 1
        elif path[at - 1] == "\\":
            name += path[start : at - 1] + "`"
            at += 1
            start = at
        else:
            return name + path[start:at], at + 2


def schema_at(path: tuple[str, ...], schema: Schema) -> Schema | None:
    """The field that the path leads to."""
    found: Schema | None = schema
    for name in path:
        if found is None:
            return None
        if found.get("type") != "struct":
            raise SmtRecordError(f"cannot look up the field {name!r} in a {found.get('type')}")
        found = field_named(found, name)
    return found


def value_in_struct(path: tuple[str, ...], schema: Schema, value: dict[str, Any], with_default: bool) -> Any:
    """What stands at the path, None where something on the way is null."""
    for number, name in enumerate(path):
        field = field_named(schema, name)
        if field is None:
            return None
        last = number == len(path) - 1
        found = read(value, field, with_default or not last)
        if last or found is None:
            return found
        schema, value = field, found
    return None


def value_in_map(path: tuple[str, ...], value: Any) -> Any:
    for number, name in enumerate(path):
        if value is None:
            return None
        found = require_map(value, "ExtractField") if number else value
        value = found.get(name)
    return value
