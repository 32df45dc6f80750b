"""Words of a shell's line, as they stand and as they are handed on.

In: a line, and what is known of variables. Out: words, with their quotes or without; ``KnownByRunning`` where only the
shell tells what stands there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from connector.config.substitution import Variables, substituted

_WORD = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|[^\s'\"\\]+|[\"'\\]", re.DOTALL)
_ESCAPED = re.compile(r"(\\[\"\\$`])")
#: An answer of another program, an argument, the number of a process.
_KNOWN_BY_RUNNING = re.compile(r"\$\(|`|\$\{?[0-9@*#?!$]")
#: A dollar that is nothing but one.
_LONE = re.compile(r"\$(?![A-Za-z_{])")


class KnownByRunning(ValueError):
    """Only the shell that runs a script knows it."""


class OfARound(KnownByRunning):
    """It is another one in each round of a loop, or each time that a function is called."""


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


def with_variables(text: str, variables: Variables) -> str:
    """With what a shell puts in place of variables."""
    if _KNOWN_BY_RUNNING.search(text):
        raise KnownByRunning
    try:
        return substituted(_LONE.sub("$$", text), variables)
    except OfARound:
        raise
    except ValueError:
        raise KnownByRunning from None


def expanded(text: str, variables: Variables, in_place: Callable[[str, Variables], str] = with_variables) -> str:
    """Without quotes, and with what is put in place of variables outside of single ones."""
    parts = []
    for match in _WORD.finditer(text):
        part = match.group()
        if len(part) > 1 and part[0] == "'":
            parts.append(part[1:-1])
        elif part[0] == "\\":
            parts.append(part[1:] or part)
        else:
            plain = part[1:-1] if len(part) > 1 and part[0] == '"' else part
            escaped = enumerate(_ESCAPED.split(plain))
            parts += [each[1:] if index % 2 else in_place(each, variables) for index, each in escaped]
        parts.append(text[match.end() : match.end() + 1] if text[match.end() : match.end() + 1].isspace() else "")
    return "".join(parts).strip()
