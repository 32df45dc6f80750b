"""Java's ``.properties`` files, read as ``java.util.Properties`` reads them.

In: the bytes of a file, or its text. Out: the pairs in the file's order, repeated ones included; ``ValueError`` where
Java would refuse the file.
"""

from __future__ import annotations

import re

# Java's own ends of lines and blanks; Python's splitlines() and \s know more.
_LINE_END = re.compile(r"\r\n|\n|\r")
_BLANKS = " \t\f"
_KEY = re.compile(r"((?:\\.|[^\\=: \t\f])*)\\?[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.)|\Z)", re.DOTALL)
_PLAIN = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def decoded(content: bytes) -> tuple[str, bool]:
    """The text of a file, and whether it is UTF-8 beyond ASCII, which Kafka's own programs read as ISO-8859-1."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1"), False
    return text, not text.isascii()


def properties_pairs(text: str) -> list[tuple[str, str]]:
    """Every pair: ``=``, ``:`` or blanks between, ``#`` and ``!`` comments, lines continued by a backslash."""
    return [_pair(line) for line in _logical_lines(text)]


def java_properties(text: str) -> dict[str, str]:
    """The pairs by name; the last of a repeated name counts, as in Java."""
    return dict(properties_pairs(text))


def _logical_lines(text: str) -> list[str]:
    found: list[str] = []
    line = ""
    for natural in _LINE_END.split(text):
        part = natural.lstrip(_BLANKS)
        # A comment is one only where a logical line begins, which it still does behind a lone backslash.
        if not line and (not part or part[0] in "#!"):
            continue
        line += part
        if (len(part) - len(part.rstrip("\\"))) % 2:
            line = line[:-1]
        else:
            found.append(line)
            line = ""
    if line:
        found.append(line)
    return found


def _pair(line: str) -> tuple[str, str]:
    match = _KEY.match(line)
    assert match is not None
    return _unescaped(match.group(1)), _unescaped(line[match.end() :])


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text

    def replaced(match: re.Match[str]) -> str:
        digits, character = match.groups()
        if digits:
            return chr(int(digits, 16))
        if character == "u":
            raise ValueError(r"Malformed \uxxxx encoding")
        return _PLAIN.get(character, character) if character else ""

    plain = _ESCAPE.sub(replaced, text)
    # Java writes what lies beyond 16 bits as two halves; a half alone is none of any text.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
