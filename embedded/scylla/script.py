"""CQL scripts: many statements in one text, as cqlsh reads them from a file.

In: the text. Out: its statements one by one, without comments around them; a BATCH counts as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_PIECE: Final = re.compile(
    r"""
    (?P<comment>--[^\n]*|//[^\n]*|/\*.*?\*/)
    |(?P<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*"|\$\$.*?\$\$)
    |(?P<end>;)
    |(?P<word>\w+)
    |(?P<other>.)
    """,
    re.DOTALL | re.VERBOSE,
)


def statements(text: str) -> Iterator[str]:
    """Each statement, without its semicolon."""
    parts: list[str] = []
    words: list[str] = []
    for piece in _PIECE.finditer(text):
        kind = piece.lastgroup
        if kind == "comment":
            parts.append(" ")
            continue
        if kind == "word":
            words.append(piece.group().upper())
        elif kind == "end" and not _inside_batch(words):
            if (statement := "".join(parts).strip()) != "":
                yield statement
            parts, words = [], []
            continue
        parts.append(piece.group())
    if (rest := "".join(parts).strip()) != "":
        yield rest


def _inside_batch(words: list[str]) -> bool:
    """Between BEGIN [UNLOGGED|COUNTER|LOGGED] BATCH and APPLY BATCH semicolons separate, but do not end."""
    return words[:1] == ["BEGIN"] and words[-2:] != ["APPLY", "BATCH"]
