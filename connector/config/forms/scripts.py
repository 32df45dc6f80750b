"""Connectors in scripts that post them to Kafka Connect: the JSON in a line of `curl`, or in what `<<EOF` begins.

In: the text of a script, and its variables. Out: the configurations in it; variables that it does not set itself are
references, and what only running it tells is a problem, as is a connector in what is no JSON. And the files that it
posts instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from connector.config.forms.json_makers import with_json_written_out
from connector.config.forms.loops import unrolled
from connector.config.forms.no_json import no_json
from connector.config.forms.posted_names import posted_name
from connector.config.forms.repeated import Repeated, repeated_pairs
from connector.config.forms.script_variables import MADE, ScriptVariables
from connector.config.forms.shell_words import KnownByRunning, OfARound, with_variables
from connector.config.forms.wrapped import Wrapped
from connector.config.substitution import Variables
from connector.errors import Problem

_BEGIN = re.compile(r"\{\s*\\?\"")
_POSTED = re.compile(
    r"(?:-d|--data(?:-raw|-binary|-ascii)?|--json|--upload-file|-T|<|\bcat[ \t]|[ \t](?=@))"
    r"[ =]*[\"']?@?([\w./~\-]+\.json)\b"
)
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
#: In single quotes: what leaves them for something that the shell puts there.
_LEAVES = re.compile(
    r"'(?:\"([^\"'\n]+)\"|(\$\{[^{}'\"\n]*\}|\$[\w{][^\s\"']*|`[^`'\n]*`)|\"?(\$\([^)'\n]*\))\"?)'",
)
_HEREDOC = re.compile(r"<<-?[ \t]*(['\"\\]?)\w+[^\n]*\n\s*\Z")
#: PowerShell's, with variables in it.
_HERE_STRING = re.compile(r"@\"[ \t]*\n\s*\Z")
_OF_POWERSHELL = re.compile(r"\$(?:\{env:(\w+)\}|env:(\w+))", re.IGNORECASE)
_QUOTE = re.compile(r"(?<!\\)\"")
_ESCAPE = re.compile(r"\\([\"\\$`])")
#: Outside of quotes: a quote has a backslash of its own there.
_ESCAPED = re.compile(r"\\([\\$`\n])")
_REFERENCE = re.compile(r"\$\{env:(\w+)\}")
_CONFIG_OF = re.compile(r"\"config\"\s*:\s*\Z")
_CLASS = re.compile(r"\"connector\.class\\?\"\s*:\s*\\?\"([^\"\\\n]*)")
#: More beginnings of JSON than any script has: each may have to be read to the end.
_MOST_TRIED = 2_000
_JSON = json.JSONDecoder(object_pairs_hook=repeated_pairs)
#: Stand for a dollar that is none of the shell's, and for what only running the script tells.
DOLLAR, MADE_BY_RUNNING = "\ue000", "\ue001"
#: A number that is a variable, as Kafka Connect takes texts as well.
_BARE = re.compile(
    rf"(\\?\")(\s*:\s*)([{DOLLAR}$]\{{[^{{}}\"\n]*\}}|\$\w+|{MADE_BY_RUNNING})(?=\s*[,}}])",
)


def without_comments(text: str) -> str:
    return _COMMENT.sub("", text)


def posted_connectors(text: str, environ: Mapping[str, str]) -> list[Wrapped]:
    """What has a `connector.class`, in order, each once. A `PUT` has the name in its address alone. ``text`` has no
    comments any more."""
    found: list[Wrapped] = []
    text = with_json_written_out(unrolled(text, environ))
    text = _LEAVES.sub(_Leaving(ScriptVariables(text, environ)), text)
    text = _BARE.sub(r"\1\2\1\3\1", text.replace(r"'\''", "'"))
    script, before, unread = ScriptVariables(text, environ), 0, list[_Unread]()
    for each in _objects(text, unread):
        found += _not_read(text, before, each.start, unread)
        config = each.value.get("config", each.value)
        if isinstance(config, Mapping) and "connector.class" in config:
            wrapped = Wrapped({})
            wrapped.content = _settled(each, each.value, script, wrapped)
            if "name" not in each.value and "name" not in config:
                name = _posted_name(text, before, each, script, wrapped)
                wrapped.content = {"name": name, "config": wrapped.content} if name else wrapped.content
                wrapped.notes += _made("name", name, script, each.start)
            wrapped.problems += [
                _is_none(one) for one in unread[-1:] if one.start >= before and one.is_around(text, each)
            ]
            wrapped.label = str(wrapped.content.get("name", config.get("name", "")))
            if not any(other.content == wrapped.content for other in found):
                found.append(wrapped)
        before = each.end
    return [*found, *_not_read(text, before, len(text), unread)]


def _not_read(text: str, start: int, end: int, unread: list[_Unread]) -> Iterator[Wrapped]:
    """The connectors of this part of the text, in which no object can be read."""
    for found in _CLASS.finditer(text, start, end):
        around = [each for each in unread if start <= each.start < found.start()]
        if around:
            yield Wrapped({"connector.class": found[1]}, problems=[_is_none(around[-1])])


def _is_none(unread: _Unread) -> Problem:
    wrong = no_json(unread.error)
    return Problem("JSON", f"Is not JSON: {wrong.behind_a_name()}", None, wrong.hint)


def _posted_name(text: str, before: int, each: _Object, script: ScriptVariables, wrapped: Wrapped) -> str | None:
    try:
        return posted_name(text, before, each.start, each.end, script)
    except KnownByRunning as error:
        wrapped.problems.append(_told("name", error))
        return None


def posted_files(text: str) -> list[str]:
    """The files that a script posts."""
    return list(dict.fromkeys(_POSTED.findall(text)))


@dataclass(frozen=True, slots=True)
class _Leaving:
    """What stands for a variable that single quotes were left for, as JSON has it."""

    variables: ScriptVariables

    def __call__(self, match: re.Match[str]) -> str:
        try:
            text = with_variables(match[1] or match[2] or match[3], self.variables.at(match.start()))
        except KnownByRunning:
            return MADE_BY_RUNNING
        return json.dumps(text.replace("$", DOLLAR), ensure_ascii=False)[1:-1]


@dataclass(frozen=True, slots=True)
class _Object:
    """A JSON object, and whether the shell puts variables into it."""

    start: int
    end: int
    value: dict[str, Any]
    expands: bool = field(default=False)


@dataclass(frozen=True, slots=True)
class _Unread:
    """What begins as JSON does and is none."""

    start: int
    error: json.JSONDecodeError

    def is_around(self, text: str, inner: _Object) -> bool:
        """Whether the configuration in it is read, and what is wrong stands behind that."""
        goes_on = self.error.doc is text and inner.end <= self.error.pos
        return goes_on and _CONFIG_OF.search(text, self.start, inner.start) is not None


def _objects(text: str, unread: list[_Unread]) -> Iterator[_Object]:
    at = 0
    for _ in range(_MOST_TRIED):
        begin = _BEGIN.search(text, at)
        if begin is None:
            return
        start, before = begin.start(), text[max(0, begin.start() - 200) : begin.start()]
        expanded = _expanded_by(before, begin.group())
        try:
            value, end = (expanded or _decoded)(text, start)
        except (ValueError, RecursionError) as error:
            if isinstance(error, json.JSONDecodeError):
                unread.append(_Unread(start, error))
            at = start + 1
            continue
        yield _Object(start, end, value, expanded is not None)
        at = max(end, start + 1)


def _expanded_by(before: str, begin: str) -> Callable[[str, int], tuple[dict[str, Any], int]] | None:
    """How an object is read into which a shell puts variables; None if it puts none."""
    if before.rstrip().endswith('"') and begin.endswith('\\"'):
        return _in_quotes
    heredoc = _HEREDOC.search(before)
    if heredoc is not None and not heredoc[1]:
        return _in_heredoc
    return _in_here_string if _HERE_STRING.search(before) else None


def _decoded(text: str, start: int) -> tuple[dict[str, Any], int]:
    value, end = _JSON.raw_decode(text, start)
    return value, end


def _in_quotes(text: str, start: int) -> tuple[dict[str, Any], int]:
    """What stands in double quotes of a shell."""
    closing = _QUOTE.search(text, start)
    end = len(text) if closing is None else closing.start()
    inner = text[start:end].replace("\\\n", "")
    inner = _ESCAPE.sub(lambda match: DOLLAR if match[1] == "$" else match[1], inner)
    return json.loads(inner, object_pairs_hook=repeated_pairs), end


def _in_heredoc(text: str, start: int) -> tuple[dict[str, Any], int]:
    """What stands behind `<<EOF`, where a shell makes one backslash of two."""
    value, length = _decoded(_ESCAPED.sub(_unescaped, text[start:]), 0)
    end = start
    for escaped in _ESCAPED.finditer(text, start):
        if escaped.start() - end >= length:
            break
        length -= escaped.start() - end + len(_unescaped(escaped))
        end = escaped.end()
    return value, end + length


def _in_here_string(text: str, start: int) -> tuple[dict[str, Any], int]:
    """What stands between `@"` and `"@`."""
    end = text.find('\n"@', start)
    inner = text[start : len(text) if end < 0 else end]
    value, length = _decoded(_OF_POWERSHELL.sub(r"${\1\2}", inner), 0)
    return value, start + length if end < 0 else end


def _unescaped(match: re.Match[str]) -> str:
    return {"$": DOLLAR, "\n": ""}.get(match[1], match[1])


def _settled(posted: _Object, value: dict[str, Any], script: ScriptVariables, wrapped: Wrapped) -> dict[str, Any]:
    """As it is posted; without what only running the script tells, which is told."""
    variables, found = script.at(posted.start), Repeated()
    found.repeated = getattr(value, "repeated", ())
    for name, member in value.items():
        try:
            found[name] = (
                _settled(posted, member, script, wrapped)
                if isinstance(member, dict)
                else _text(member, variables, expands=posted.expands)
                if isinstance(member, str)
                else member
            )
        except KnownByRunning as error:
            wrapped.problems.append(_told(name, error))
            continue
        wrapped.notes += _made(name, found[name], script, posted.start)
    return found


def _told(name: str, why: KnownByRunning) -> Problem:
    if isinstance(why, OfARound):
        text = "Is another one in each round of a loop, or call of a function, which only running the script tells"
        return Problem(name, text, None, "the words of the loop where it begins, or each connector by itself")
    text = "Is an expression, which only running the script tells"
    return Problem(name, text, None, "its value in its place, or a variable that the script does not set")


def _made(name: str, text: Any, script: ScriptVariables, place: int) -> list[tuple[str, str]]:
    """What is to be said of a reference to a variable that the environment may have as well."""
    variables = _REFERENCE.findall(text) if isinstance(text, str) else []
    told = f"{MADE}: it is taken from the variable {{}} here"
    return [(name, told.format(each)) for each in variables if script.is_made(each, place)]


def _text(text: str, variables: Variables, *, expands: bool) -> str:
    if MADE_BY_RUNNING in text:
        raise KnownByRunning
    plain = with_variables(text, variables) if expands else text
    return plain.replace(DOLLAR, "$")
