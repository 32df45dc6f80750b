"""Cuts CQL text into tokens.

In: a statement's text. Out: tokens with their kind and place; a character that cannot begin a token raises
`SyntaxException` with line and column. Keywords are ordinary identifiers here: the parser decides by place.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from embedded.scylla.errors import SyntaxException

_UNIT: Final = r"(?:[yY]|[mM][oO]|[wW]|[dD]|[hH]|[mM][sS]|[uU][sS]|[µμ][sS]|[nN][sS]|[mM]|[sS])"
_TOKENS: Final = re.compile(
    rf"""
      (?P<space>\s+ | --[^\r\n]* | //[^\r\n]* | /\*.*?\*/)
    | (?P<string>'(?:[^']|'')*' | \$\$.*?\$\$)
    | (?P<uuid>[0-9a-fA-F]{{8}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{12}}(?![0-9A-Za-z_]))
    | (?P<hex>0[xX][0-9a-fA-F]*(?![0-9A-Za-z_]))
    | (?P<duration>-?(?:\d+{_UNIT})+(?![0-9A-Za-z_])
        | -?P\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d
        | -?P(?=[\dT])(?:\d+[YMWD])*(?:T(?:\d+[HMS])+)?(?![0-9A-Za-z_]))
    | (?P<float>-?\d+(?:\.\d*(?:[eE][+-]?\d+)?|[eE][+-]?\d+)(?![0-9A-Za-z_]))
    | (?P<integer>-?\d+(?![0-9A-Za-z_]))
    | (?P<quoted>"(?:[^"]|"")+")
    | (?P<name>[A-Za-z][A-Za-z0-9_]*)
    | (?P<mark><=|>=|!=|\.\.|[-+*/%=<>(){{}}\[\],.;:?])
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """`kind` is one of string, uuid, hex, duration, float, integer, quoted, name, mark, end. `text` is unquoted, and
    in lower case for names."""

    kind: str
    text: str
    at: int
    raw: str


def place(text: str, at: int) -> str:
    """`line:column` of an offset, as ScyllaDB's messages give it."""
    line = text.count("\n", 0, at) + 1
    return f"{line}:{at - (text.rfind(chr(10), 0, at) + 1)}"


def tokens(text: str) -> list[Token]:
    """All tokens of the text, the last being the end."""
    found: list[Token] = []
    at, end = 0, len(text)
    match = _TOKENS.match
    while at < end:
        hit = match(text, at)
        if hit is None:
            if text[at] in "'\"":
                raise SyntaxException(f"line {place(text, at)} no viable alternative at character {text[at]!r}")
            # ScyllaDB's lexer reports the place behind the character.
            raise SyntaxException(f"line {place(text, at + 1)} : Syntax error")
        kind = hit.lastgroup or ""
        raw = hit.group()
        if kind == "name":
            found.append(Token(kind, raw.lower(), at, raw))
        elif kind == "string":
            value = raw[2:-2] if raw.startswith("$$") else raw[1:-1].replace("''", "'")
            found.append(Token(kind, value, at, raw))
        elif kind == "quoted":
            found.append(Token(kind, raw[1:-1].replace('""', '"'), at, raw))
        elif kind != "space":
            found.append(Token(kind, raw, at, raw))
        at = hit.end()
    found.append(Token("end", "<EOF>", end, "<EOF>"))
    return found
