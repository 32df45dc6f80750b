"""Loops of a script that post a connector for each of some words: the same script with every round written out.

In: the text of a script, and the environment. Out: the same without such loops; one over what only running it tells is
left where it is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from connector.config.forms.assignments import DECLARED
from connector.config.forms.script_variables import MOST_TEXT, ScriptVariables
from connector.config.forms.shell_words import words_of

_EDGE = re.compile(
    r"(?:^|[;|&]|\b(?:do|then|else)\b)[ \t]*(?:(for|while|until|select)\b|(done)\b)",
    re.MULTILINE,
)
_FOR = re.compile(r"for[ \t]+([A-Za-z_]\w*)[ \t]+in[ \t]+((?:[^\n;\\]|\\\r?\n|\\.)*)[;\n]\s*do\b")
_POSTS = "connector.class"
_OF_AN_ARRAY = re.compile(r"\"?\$\{([A-Za-z_]\w*)\[[@*]\]\}\"?")
_OF_A_TEXT = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_VARIABLE = re.compile(r"\$\{\w+\}|'[^']*'")
#: What a shell makes other words of, or that only it knows.
_UNTOLD = re.compile(r"[*?\[\]{}`]|\$[(@*\d]")
_MOST_LOOPS, _MOST_ROUNDS = 20, 100


def unrolled(text: str, environ: Mapping[str, str]) -> str:
    for _ in range(_MOST_LOOPS):
        loop = next(_loops(text, environ), None) if _POSTS in text else None
        if loop is None:
            break
        start, end, rounds = loop
        if len(text) + len(rounds) > MOST_TEXT:
            break
        text = f"{text[:start]}{rounds}{text[end:]}"
    return text


def _loops(text: str, environ: Mapping[str, str]) -> Iterator[tuple[int, int, str]]:
    """Where each begins and ends, the inner ones first, and its rounds."""
    open_: list[int] = []
    for edge in _EDGE.finditer(text):
        if edge[1]:
            open_.append(edge.start(1))
        elif open_:
            start = open_.pop()
            head = _FOR.match(text, start)
            if head is None or _POSTS not in text[head.end() : edge.start()]:
                continue
            words = _words(head[2], start, text, environ)
            if words and len(words) <= _MOST_ROUNDS:
                body = text[head.end() : edge.start()]
                yield start, edge.end(), "".join(f"\n{head[1]}={word}\n{body}\n" for word in words)


def _words(given: str, place: int, text: str, environ: Mapping[str, str]) -> list[str] | None:
    """As they stand there, quotes and all; None where only running the script tells them."""
    found: list[str] = []
    for word in words_of(given.replace("\\\n", " ")):
        if array := _OF_AN_ARRAY.fullmatch(word):
            inner = _array(array[1], place, text)
            if inner is None or _OF_AN_ARRAY.search(inner):
                return None
            more = _words(inner, place, text, environ)
        elif variable := _OF_A_TEXT.fullmatch(word):
            value = ScriptVariables(text, environ).value(variable[1] or variable[2], place)
            more = None if value is None or "$" in value else [*map(shlex.quote, value.split())]
        else:
            more = None if _UNTOLD.search(_VARIABLE.sub("", word)) else [word]
        if more is None:
            return None
        found += more
    return found


def _array(name: str, place: int, text: str) -> str | None:
    """What stands between the brackets, where it is set for the last time before a place."""
    expression = re.compile(rf"(?:^|;){DECLARED}{re.escape(name)}=\(([^()]*)\)", re.MULTILINE)
    *_, last = (None, *expression.finditer(text, 0, place))
    return None if last is None else last[1]
