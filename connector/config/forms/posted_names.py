"""The name of a connector that a script puts: it stands in an address alone.

In: the text of a script, and where a configuration stands in it. Out: the name, if the command that sends it has one;
``KnownByRunning`` where only the shell tells it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from connector.config.forms.assignments import DECLARED
from connector.config.forms.script_variables import ScriptVariables
from connector.config.forms.shell_words import expanded

_OF_URL = re.compile(r"/connectors/(?![{<:])([^/\s?]+)/config\b")
#: What keeps a configuration until it is sent: a variable, or a file.
_KEPT = re.compile(
    rf"{DECLARED}([A-Za-z_]\w*)=(?=[\"'$`])"
    r"|[^\n]*\bread\b[^\n]*[ \t]([A-Za-z_]\w*)[ \t]*<<"
    r"|[^\n]*>[ \t]*[\"']?(?:[^\s\"'<>|;&]*/)?([\w.\-]+)"
)
#: Further away than any script sends what it has written.
_FAR, _NEAR = 100_000, 300
_MOST_COMMANDS = 50


def posted_name(text: str, before: int, start: int, end: int, variables: ScriptVariables) -> str | None:
    """Of what stands from ``start`` to ``end``; ``before``: where the one before it ends."""
    first, last = _command(text, start, end)
    name = _OF_URL.search(text, first, start) or _OF_URL.search(text, end, last)
    kept = _KEPT.match(text, first, start)
    if name is None and kept is not None:
        name = next(_where_sent(text, end, kept), None)
    elif name is None:
        # An address may stand some lines above, as in files of requests.
        *_, name = (None, *_OF_URL.finditer(text, before, start))
        name = name or _OF_URL.search(text, end, end + _NEAR)
    return None if name is None else expanded(name[1], variables.at(name.start()))


def _command(text: str, start: int, end: int) -> tuple[int, int]:
    """From where to where the command goes that something is in; a backslash hands it on to the next line."""
    blanks = text[max(0, start - _NEAR) : start]
    first = start - len(blanks) + len(blanks.rstrip())
    while (line := text.rfind("\n", 0, first)) > 0 and text[line - 1] == "\\":
        first = line
    last = end
    while (line := text.find("\n", last)) >= 0 and text[line - 1] == "\\":
        last = line + 1
    return text.rfind("\n", 0, first) + 1, len(text) if line < 0 else line


def _where_sent(text: str, end: int, kept: re.Match[str]) -> Iterator[re.Match[str]]:
    name = kept[1] or kept[2]
    sent = rf"\$\{{?{re.escape(name)}\b" if name else rf"@[^\s\"']*{re.escape(kept[3])}"
    for use in islice(re.compile(sent).finditer(text, end, end + _FAR), _MOST_COMMANDS):
        first, last = _command(text, use.start(), use.end())
        if found := _OF_URL.search(text, first, last):
            yield found
