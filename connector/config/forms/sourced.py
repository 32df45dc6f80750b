"""Files that a script reads variables from, `source .env` and `export $(cat .env | xargs)`, put where it reads them.

In: the text of a script, where it lies. Out: the text with what those files hold; others are left to be run.
"""

from __future__ import annotations

import re
from pathlib import Path

from connector.config.contents import file_text
from connector.config.forms.script_variables import MOST_TEXT

_WORD = r"(?:\$\([^()\n]*\)|\$\{[^{}\n]*\}|\"|[^\s;&|<>\"])+"
_SOURCED = re.compile(
    rf"(^|[;&|]|\b(?:then|do|else)\b)[ \t]*(?:(?:source|\.)[ \t]+({_WORD})"
    r"|export[ \t]+\$\([^()\n]*?([\w./\-]*\.env[\w.\-]*)[^()\n]*\))",
    re.MULTILINE,
)
#: The folder of the script, mostly: files are looked for beside it.
_FOLDER = re.compile(r"\$\([^()]*\)|\$\{[^{}]*\}|\$\w+")
_MOST_FILES = 20


def with_sourced(text: str, folder: Path) -> str:
    room = MOST_TEXT

    def replaced(match: re.Match[str]) -> str:
        nonlocal room
        path = _FOLDER.sub("", (match[2] or match[3]).replace('"', "").replace("'", ""))
        path = path.lstrip("/") if _FOLDER.search(match[2] or "") else path
        content = None if not path or path.startswith("/") else file_text(folder / path)
        if content is None or len(content) > room:
            return match.group()
        room -= len(content)
        return f"{match[1]}\n{content}\n".replace("\r\n", "\n")

    return _SOURCED.sub(replaced, text, count=_MOST_FILES)
