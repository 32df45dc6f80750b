"""Words of a shell's line, as they stand and as they are handed on.

In: a line, and what is known of variables. Out: words, with their quotes or without.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from connector.config.substitution import Variables, substituted

_WORD = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|[^\s'\"\\]+|[\"'\\]", re.DOTALL)


def words_of(text: str) -> Iterator[str]:
    """Separated by blanks that are not quoted, quotes and all."""
    word, end = "", 0
    for match in _WORD.finditer(text):
        if match.start() != end and word:
            yield word
            word = ""
        word, end = word + match.group(), match.end()
    if word:
        yield word


def expanded(text: str, variables: Variables) -> str:
    """Without quotes, and with what stands for variables outside of single ones."""
    parts = []
    for match in _WORD.finditer(text):
        part = match.group()
        if len(part) > 1 and part[0] == "'":
            parts.append(part[1:-1])
        elif part[0] == "\\":
            parts.append(part[1:] or part)
        else:
            plain = part[1:-1] if len(part) > 1 and part[0] == '"' else part
            parts.append(_with_variables(plain, variables))
        parts.append(text[match.end() : match.end() + 1] if text[match.end() : match.end() + 1].isspace() else "")
    return "".join(parts).strip()


def _with_variables(text: str, variables: Variables) -> str:
    escaped = re.sub(r"\\\$", "$$$$", text)
    try:
        return re.sub(r"\\([\"\\])", r"\1", substituted(escaped, variables))
    except ValueError:
        return text
