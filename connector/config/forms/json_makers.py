"""JSON that other programs of a script make, `jq -n --arg` and HTTPie: written out, as it would be behind `curl -d`.

In: the text of a script. Out: the same with that JSON in it. Quotes are left for what a shell puts into it, as in JSON
that is written by hand.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_POSTS = "connector.class"
_CALL = re.compile(r"(?:^|[;&|(])[ \t]*(jq|https?|xh)(?=[ \t])", re.MULTILINE)
_WORD = re.compile(
    r"(?:[ \t]|\\\r?\n)+((?:'[^']*'|\"(?:[^\"\\]|\\.)*\"|\$\([^()\n]*\)|`[^`\n]*`|\\[^\n]|[^\s;&|<>()'\"\\`])+)"
)
_TOLD_BY_A_SHELL = re.compile(r"[$`]")
#: A text, what is put into it or stands for one, and a name without quotes.
_TEXT = re.compile(r"\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_TOKEN = re.compile(
    rf"{_TEXT.pattern}|\((\$\w+)\)|\$ENV\.(\w+)|\benv\.(\w+)|\$(\w+)|([A-Za-z_]\w*)(?=\s*:)|\([^()]*\)", re.DOTALL
)
_IN_A_TEXT = re.compile(r"\\\((?:\$ENV\.(\w+)|env\.(\w+)|\$(\w+)|[^()]*)\)")
#: What is left for the shell, and what only running the program tells.
_ONLY_RUNNING = "'\"$(jq)\"'"
_ITEM = re.compile(r"([\w.\-]+)(?:\[([^\[\]]+)\])?(:?=)(?!=)(.*)", re.DOTALL)


class _Word(NamedTuple):
    start: int
    end: int
    text: str


def with_json_written_out(text: str) -> str:
    """Each call of such a program that has a connector in it, with its JSON in its place."""
    parts, at = [], 0
    for call in _CALL.finditer(text) if _POSTS in text else ():
        if call.start() < at:
            continue
        words = list(_words(text, call.end()))
        written = _of_jq(words) if call[1] == "jq" else _of_httpie(words)
        if written is not None:
            place, content = written
            parts += [text[at : place.start], content]
            at = place.end
    return "".join([*parts, text[at:]])


def _words(text: str, at: int) -> Iterator[_Word]:
    while found := _WORD.match(text, at):
        at = found.end()
        yield _Word(found.start(1), at, found[1])


def _of_jq(words: list[_Word]) -> tuple[_Word, str] | None:
    """The program of a call, and the JSON that it makes."""
    given: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if word.text in ("--arg", "--argjson", "--rawfile", "--slurpfile"):
            name, value = next(rest, None), next(rest, None)
            if name is not None and value is not None:
                given[name.text.strip("'\"")] = _left_for(value.text) if "arg" in word.text else _ONLY_RUNNING
        elif not word.text.startswith("-"):
            program = word.text[1:-1]
            if word.text[0] != "'" or _POSTS not in program:
                return None
            # What is changed behind its object is told by running it alone.
            return word, f"'{_json(program, given)}'" if _is_one_object(program) else "''"
    return None


def _is_one_object(program: str) -> bool:
    depth, ends = 0, 0
    plain = _TEXT.sub("", program).strip()
    for character in plain:
        depth += (character == "{") - (character == "}")
        ends += character == "}" and depth == 0
    return plain.startswith("{") and plain.endswith("}") and ends == 1


def _json(program: str, given: Mapping[str, str]) -> str:
    def variable(name: str | None, *of_environment: str | None) -> str:
        known = next((f"'\"${{{each}}}\"'" for each in of_environment if each), None)
        return known or given.get((name or "").lstrip("$"), _ONLY_RUNNING)

    def in_a_text(found: re.Match[str]) -> str:
        return variable(found[3], found[1], found[2])

    def token(found: re.Match[str]) -> str:
        if found[0][0] == '"':
            return _IN_A_TEXT.sub(in_a_text, found[0])
        if found[5]:
            return f'"{found[5]}"'
        return f'"{variable(found[1] or found[4], found[2], found[3])}"'

    return _TOKEN.sub(token, program)


def _left_for(word: str) -> str:
    """A word of the shell within a text of JSON that stands in single quotes."""
    if not _TOLD_BY_A_SHELL.search(word) or (word[0] == word[-1] == "'" and word.count("'") == 2):
        return json.dumps("".join(shlex.split(word)), ensure_ascii=False)[1:-1]
    inner = word[1:-1] if word[0] == word[-1] == '"' and word.count('"') == 2 else word
    return f"'\"{inner}\"'" if not re.search(r"[\"']", inner) else _ONLY_RUNNING


def _of_httpie(words: list[_Word]) -> tuple[_Word, str] | None:
    """All words of a call, and those of `curl` that send the same."""
    if not any(_POSTS in word.text for word in words):
        return None
    own: dict[str, str] = {}
    nested: dict[str, dict[str, str]] = {}
    others = []
    for word in words:
        quote = word.text[0] if word.text[0] in "'\"" and word.text.find(word.text[0], 1) == len(word.text) - 1 else ""
        item = _ITEM.fullmatch(word.text.strip(quote) if quote else word.text)
        if item is None or item[1].startswith("-"):
            others.append(word.text)
            continue
        value = f"{quote}{item[4]}{quote}"
        is_json = item[3] == ":=" and value.startswith("'{") and value.endswith("}'")
        into = nested.setdefault(item[1], {}) if item[2] else own
        into[item[2] or item[1]] = value[1:-1] if is_json else f'"{_left_for(value)}"'
    own |= {name: _object(members) for name, members in nested.items()}
    place = _Word(words[0].start, words[-1].end, "")
    return place, f"{' '.join(others)} -d '{_object(own)}'"


def _object(members: Mapping[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": {text}' for name, text in members.items()) + "}"
