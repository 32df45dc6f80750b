"""Connectors in scripts that post them to Kafka Connect: the JSON in a line of `curl`, or in what `<<EOF` begins.

In: the text of a script. Out: the configurations in it; variables that it does not set itself are references. And the
files that it posts instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from connector.config.forms.shell_words import expanded
from connector.config.forms.wrapped import Wrapped
from connector.config.substitution import Variables, substituted

_BEGIN = re.compile(r"\{\s*\\?\"")
_OF_URL = re.compile(r"/connectors/([^/\s\"'?]+)/config\b")
_ASSIGNED = re.compile(
    r"(?:^|[;&|])[ \t]*(?:(?:export|readonly|local|declare)[ \t]+(?:-\w+[ \t]+)*)?([A-Za-z_]\w*)="
    r"((?:'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|[^\s;&|'\"\\])*)",
    re.MULTILINE,
)
#: What only running it tells: an answer of another program, or an argument.
_TOLD_BY_RUNNING = re.compile(r"\$\(|`|\$\{?[0-9@*#?!]|##|%%")
_POSTED = re.compile(r"(?:-d|--data(?:-raw|-binary|-ascii)?|--json|--upload-file|-T)[ =]*[\"']?@?([\w./~\-]+\.json)\b")
#: In single quotes: what leaves them for a variable, or for a quote.
_LEAVES = re.compile(r"'\"?\$(?:\{(\w+)\}|(\w+))\"?'")
_HEREDOC = re.compile(r"<<-?[ \t]*(['\"\\]?)\w+[^\n]*\n\s*\Z")
_QUOTE = re.compile(r"(?<!\\)\"")
_ESCAPE = re.compile(r"\\([\"\\$`])")
#: More beginnings of JSON than any script has: each may have to be read to the end.
_MOST_TRIED = 2_000
#: Stands for a dollar that is none of the shell's.
_DOLLAR = "\ue000"


def script_variables(text: str, environ: Mapping[str, str]) -> Variables:
    """Those that it sets by itself, before those that it is given."""
    assigned: dict[str, str] = {}
    for match in _ASSIGNED.finditer(text):
        if not _TOLD_BY_RUNNING.search(match[2]):
            known = Variables({name: each for name, each in environ.items() if name not in assigned}, dict(assigned))
            assigned[match[1]] = expanded(match[2], known)
    return Variables({name: each for name, each in environ.items() if name not in assigned}, assigned)


def posted_connectors(text: str, variables: Variables) -> list[Wrapped]:
    """What has a `connector.class`, in order. A `PUT` has the name in its address alone."""
    found: list[Wrapped] = []
    text = _LEAVES.sub(lambda match: json.dumps(variables.text(match[1] or match[2]))[1:-1], text)
    text, before = text.replace(r"'\''", "'"), 0
    for start, end, value in _objects(text, variables):
        config = value.get("config", value)
        if isinstance(config, Mapping) and "connector.class" in config:
            of_url = [*_OF_URL.findall(text, before, start), *_OF_URL.findall(text, end, end + 300)]
            if "name" not in value and "name" not in config and of_url:
                value = {"name": expanded(of_url[0], variables), "config": config}
            found.append(Wrapped(value, str(value.get("name", config.get("name", "")))))
        before = end
    return found


def posted_files(text: str) -> list[str]:
    """The files that a script posts."""
    return list(dict.fromkeys(_POSTED.findall(text)))


def _objects(text: str, variables: Variables) -> Iterator[tuple[int, int, dict[str, Any]]]:
    at, unescaped = 0, text.replace("\\$", f"{_DOLLAR} ")
    for _ in range(_MOST_TRIED):
        begin = _BEGIN.search(text, at)
        if begin is None:
            return
        start, before = begin.start(), text[max(0, begin.start() - 200) : begin.start()]
        quoted = before.rstrip().endswith('"') and begin.group().endswith('\\"')
        heredoc = _HEREDOC.search(before)
        expanded = quoted or (heredoc is not None and not heredoc[1])
        try:
            value, end = _in_quotes(text, start) if quoted else _decoded(unescaped if expanded else text, start)
        except (ValueError, RecursionError):
            at = start + 1
            continue
        yield start, end, _with_variables(value, variables) if expanded else value
        at = max(end, start + 1)


def _decoded(text: str, start: int) -> tuple[dict[str, Any], int]:
    value, end = json.JSONDecoder().raw_decode(text, start)
    return value, end


def _in_quotes(text: str, start: int) -> tuple[dict[str, Any], int]:
    """What stands in double quotes of a shell."""
    closing = _QUOTE.search(text, start)
    end = len(text) if closing is None else closing.start()
    inner = _ESCAPE.sub(lambda match: _DOLLAR if match[1] == "$" else match[1], text[start:end])
    return json.loads(inner), end


def _with_variables(value: Any, variables: Variables) -> Any:
    if isinstance(value, dict):
        return {name: _with_variables(member, variables) for name, member in value.items()}
    if not isinstance(value, str):
        return value
    try:
        expanded = substituted(value, variables)
    except ValueError:
        expanded = value
    return expanded.replace(f"{_DOLLAR} ", "$").replace(_DOLLAR, "$")
