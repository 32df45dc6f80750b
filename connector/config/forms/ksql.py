"""Connectors in statements of ksqlDB: `CREATE SOURCE CONNECTOR orders WITH ('connector.class' = '…', …);`.

In: the text of a file. Out: a configuration for each statement, with the name that ksqlDB gives it.
"""

from __future__ import annotations

import re

from connector.config.forms.wrapped import Wrapped
from connector.errors import Problem

_QUOTED = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`"
_TEXT = rf"{_QUOTED}|[\w.+\-]+"
_COMMENT = re.compile(rf"({_QUOTED})|--[^\n]*|/\*.*?\*/", re.DOTALL)
_CREATE = re.compile(
    rf"\bCREATE\s+(?:SOURCE|SINK)\s+CONNECTOR\s+(?:IF\s+NOT\s+EXISTS\s+)?({_TEXT})\s*WITH\s*\(", re.IGNORECASE
)
_PAIR = re.compile(rf"\s*({_TEXT})\s*=>?\s*({_TEXT})\s*(,|\))")


def connectors_of_ksql(text: str) -> list[Wrapped]:
    found = []
    text = _COMMENT.sub(lambda match: match[1] or "\n" * match[0].count("\n"), text)
    for create in _CREATE.finditer(text):
        properties: dict[str, str] = {}
        at, more = create.end(), ","
        while more == ",":
            pair = _PAIR.match(text, at)
            if pair is None:
                break
            properties[_plain(pair[1])] = _plain(pair[2])
            at, more = pair.end(), pair[3]
        # Names without quotes are capitals.
        name = _plain(create[1]) if create[1][0] in "'\"`" else create[1].upper()
        wrapped = Wrapped({"name": name, "config": properties}, name)
        if more == ",":
            line = text.count("\n", 0, at) + 1
            hint = "'name' = 'value' pairs, with commas between, in brackets"
            wrapped.problems.append(Problem("WITH", f"Cannot be read from line {line} on", None, hint))
        found.append(wrapped)
    return found


def _plain(text: str) -> str:
    quote = text[0]
    return text[1:-1].replace(quote * 2, quote) if quote in "'\"`" else text
