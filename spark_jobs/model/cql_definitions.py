"""Table definitions from CQL files, for records whose connector writes no schemas topic.

In: text with CREATE TYPE and CREATE TABLE statements, as ``DESCRIBE`` prints them. Out: ``TableDefinition``s. Other
statements are passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from connector.config import Invalid
from connector.errors import ConfigurationError, Problem
from connector.values import NativeType
from spark_jobs.model.definitions import TableDefinition, parse_definition

_KEYS_ONLY = re.compile(r"'delta'\s*:\s*'keys'", re.IGNORECASE)
_NAMES_AND_NOISE = re.compile(
    rf"""(?P<kept>"(?:[^"]|"")*"|{_KEYS_ONLY.pattern})|'(?:[^']|'')*'|--[^\n]*|//[^\n]*|/\*.*?\*/""",
    re.DOTALL | re.IGNORECASE,
)
"""What may hold anything: quoted names are kept, strings and comments are not needed, but of what a log lacks."""
_CREATE = re.compile(r"\s*CREATE\s+(TYPE|TABLE|COLUMNFAMILY)\s+(?:IF\s+NOT\s+EXISTS\s+)?", re.IGNORECASE)
_NAME = re.compile(r'\s*("(?:[^"]|"")*"|[A-Za-z0-9_]+)\s*')
_ORDER = re.compile(r"CLUSTERING\s+ORDER\s+BY\s*\(", re.IGNORECASE)


def read_definitions(paths: Iterable[str], output: dict[str, Any]) -> dict[str, TableDefinition]:
    """The tables of all files by ``keyspace.table``; ``ConfigurationError`` says what cannot be read."""
    types: dict[str, dict[str, list[list[str]]]] = {}
    tables: dict[str, dict[str, Any]] = {}
    problems: list[Problem] = []
    for path in paths:
        for statement in _statements(Path(path).read_text(encoding="utf-8")):
            match = _CREATE.match(statement)
            if match is None:
                continue
            try:
                _take(match.group(1).upper(), statement[match.end() :], types, tables)
            except Invalid as invalid:
                problems.append(
                    Problem("table.definitions", invalid.problem, " ".join(statement.split())[:120], file=path)
                )
    if problems:
        raise ConfigurationError(problems)
    found: dict[str, TableDefinition] = {}
    for name, record in tables.items():
        record = {**record, "types": types.get(record["keyspace_name"], {}), "output": output}
        found[name] = parse_definition(json.dumps(record))
    return found


def carried(definition: TableDefinition) -> tuple[TableDefinition, list[str]]:
    """The table as the Java connector's legacy records carry it, and the columns that they leave out."""
    left_out = [
        column.name
        for column in definition.columns
        if column.kind in ("static", "regular") and not isinstance(column.type, NativeType)
    ]
    record = json.loads(definition.text)
    record["columns"] = [column for column in record["columns"] if column["name"] not in left_out]
    return parse_definition(json.dumps(record)), left_out


def _statements(text: str) -> list[str]:
    """Statements without comments, and without strings that tell nothing of records."""
    plain = _NAMES_AND_NOISE.sub(lambda found: found["kept"] or " ", text)
    return _cut(plain, [at for at, char, _ in _depths(plain) if char == ";"])


def _parts(text: str) -> list[str]:
    """Parts between commas that stand outside of parentheses and angle brackets."""
    return _cut(text, [at for at, char, depth in _depths(text) if char == "," and depth == 0])


def _cut(text: str, places: list[int]) -> list[str]:
    ends = zip([0, *(at + 1 for at in places)], [*places, len(text)], strict=True)
    return [part for start, end in ends if (part := text[start:end]).strip()]


def _depths(text: str) -> Iterator[tuple[int, str, int]]:
    """The characters outside of quoted names, each with the depth behind it."""
    depth, quoted = 0, False
    for at, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        elif not quoted:
            depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(char, 0)
            yield at, char, depth


def _take(what: str, rest: str, types: dict[str, Any], tables: dict[str, Any]) -> None:
    keyspace, rest = _name(rest)
    if not rest.startswith("."):
        raise Invalid("the name must be keyspace.name")
    name, rest = _name(rest[1:])
    body, rest = _parentheses(rest)
    if what == "TYPE":
        types.setdefault(keyspace, {})[name] = [[*_field(part)] for part in _parts(body)]
    else:
        tables[f"{keyspace}.{name}"] = _table(keyspace, name, body, rest)


def _table(keyspace: str, table: str, body: str, rest: str) -> dict[str, Any]:
    columns: dict[str, dict[str, Any]] = {}
    partition: list[str] = []
    clustering: list[str] = []
    for part in _parts(body):
        if re.match(r"\s*PRIMARY\s+KEY\s*\(", part, re.IGNORECASE):
            partition, clustering = _primary_key(part[part.index("(") :])
            continue
        name, spelled = _field(part)
        plain, found = re.subn(r"\s+PRIMARY\s+KEY\s*$", "", spelled, flags=re.IGNORECASE)
        if found:
            partition = [name]
        plain, static = re.subn(r"\s+STATIC\s*$", "", plain, flags=re.IGNORECASE)
        plain = re.sub(r"\s+TTL\s*$", "", plain, flags=re.IGNORECASE)
        columns[name] = {"name": name, "type": plain.strip(), "kind": "static" if static else "regular", "position": -1}
    if not partition or any(name not in columns for name in partition + clustering):
        raise Invalid("the primary key is missing or names columns that are not there")
    descending = _descending(rest)
    for kind, names in (("partition_key", partition), ("clustering", clustering)):
        for position, name in enumerate(names):
            order = "none" if kind == "partition_key" else "desc" if name in descending else "asc"
            columns[name].update(kind=kind, position=position, order=order)
    return {
        "keyspace_name": keyspace,
        "table_name": table,
        "table_id": None,
        "version": "cql",
        "columns": list(columns.values()),
        "dropped": [],
        "cdc": {"delta": "keys"} if _KEYS_ONLY.search(rest) else {},
    }


def _primary_key(text: str) -> tuple[list[str], list[str]]:
    inner, _ = _parentheses(text)
    parts = _parts(inner)
    if parts and parts[0].lstrip().startswith("("):
        first, _ = _parentheses(parts[0].lstrip())
        return [_name(name)[0] for name in _parts(first)], [_name(name)[0] for name in parts[1:]]
    return [_name(parts[0])[0]], [_name(name)[0] for name in parts[1:]]


def _descending(rest: str) -> set[str]:
    match = _ORDER.search(rest)
    if match is None:
        return set()
    inner, _ = _parentheses(rest[match.end() - 1 :])
    found = [_name(part) for part in _parts(inner)]
    return {name for name, order in found if order.strip().lower() == "desc"}


def _field(text: str) -> tuple[str, str]:
    name, spelled = _name(text)
    if not spelled.strip():
        raise Invalid(f"{name} has no type")
    return name, spelled.strip()


def _name(text: str) -> tuple[str, str]:
    match = _NAME.match(text)
    if match is None:
        raise Invalid(f"a name is missing before {text.strip()[:40]!r}")
    word = match.group(1)
    name = word[1:-1].replace('""', '"') if word.startswith('"') else word.lower()
    return name, text[match.end() :]


def _parentheses(text: str) -> tuple[str, str]:
    """What stands in the first parentheses, and what follows them."""
    start = -1
    for at, char, depth in _depths(text):
        if char == "(" and start < 0:
            start = at
        elif char == ")" and depth == 0 and start >= 0:
            return text[start + 1 : at], text[at + 1 :]
    raise Invalid("parentheses are not closed")
