"""What is wrong with a text that is no JSON, in the words of those who write what they take for it.

In: the error of Python's reader, which has the text. Out: what it is, what to do about it, and where it is.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

_NAME = re.compile(r"\"([^\"\\\n]{1,200})\\?\"\s*:")
#: What word processors, and pages that were copied from, make of quotes.
_CURVED = ("\u201c", "\u201d", "\u201e", "\u2018", "\u2019", "\u00ab", "\u00bb")
_DELIMITER = "Expecting ',' delimiter"


@dataclass(frozen=True, slots=True)
class NoJson:
    """``said`` and where, by its line or by what stands before it; ``hint``: what to do where that is known."""

    text: str
    said: str
    hint: str | None
    place: int

    def at_its_line(self) -> str:
        line, column = self.text.count("\n", 0, self.place) + 1, self.place - self.text.rfind("\n", 0, self.place)
        return f"{self.said} at line {line}, column {column}"

    def behind_a_name(self) -> str:
        """For a text that another one was made of: its lines are not those that somebody has before them."""
        *_, name = (None, *_NAME.finditer(self.text, 0, self.place))
        return f"{self.said} at its beginning" if name is None else f"{self.said} behind {name[1]}"


def no_json(error: json.JSONDecodeError, *, of_a_file: bool = True) -> NoJson:
    """``of_a_file``: what helps may be another form, or another file."""
    text = error.doc
    before, rest = text[: error.pos].rstrip(), text[error.pos :].lstrip(" \t\r\n,")
    # Python 3.13 points at the comma, older ones behind it.
    at_comma = text[error.pos : error.pos + 1] == "," and not before.endswith(("{", "["))
    if rest.startswith(("//", "/*", "#")):
        hint = "JSON has none: leave it out" + (", YAML takes those that begin with #" if of_a_file else "")
        return NoJson(text, "a comment", hint, len(text) - len(rest))
    if error.msg == "Extra data":
        if not rest:
            return NoJson(text, "a comma behind its end", "leave it out", error.pos)
        several = "a file for each of several configurations" if of_a_file else None
        return NoJson(text, "something behind its end", several, error.pos)
    if rest[:1] in ("}", "]") and (at_comma or before.endswith(",")):
        return NoJson(text, "a comma with nothing behind it", "leave it out", text.rindex(",", 0, error.pos + 1))
    if rest.startswith("'"):
        return NoJson(text, "a text in single quotes", "JSON has double ones", error.pos)
    if rest.startswith(_CURVED):
        return NoJson(text, f"the quote {rest[0]}", 'JSON has straight ones, "', len(text) - len(rest))
    if not rest and before:
        return NoJson(text, "it ends too early", "a bracket or a quote is not closed", len(before))
    if error.msg == _DELIMITER:
        return _no_delimiter(text, before, rest)
    if error.msg.startswith("Invalid control character"):
        hint = "JSON writes a line's end as \\n, a tab as \\t; or a quote is not closed"
        return NoJson(text, "a line's end or a tab inside of a text", hint, error.pos)
    if error.msg.startswith("Unterminated string"):
        return NoJson(text, "a text without its second quote", None, error.pos)
    return NoJson(text, error.msg, None, error.pos)


def _no_delimiter(text: str, before: str, rest: str) -> NoJson:
    """Where a value has ended for Python's reader, which asks for a comma then, whatever stands there."""
    if rest[:1] in ("}", "]"):
        return NoJson(text, f"the bracket {rest[0]}", "another one is not closed yet", len(text) - len(rest))
    begun = len(before) + len(rest) == len(text) and (rest[0].isalnum() or rest[0] in "_.")
    if begun and before.endswith('"'):
        # Such as those of a `sasl.jaas.config`.
        return NoJson(text, "a quote inside of a text", 'JSON writes it as \\"', len(before) - 1)
    if begun and before[-1].isdigit():
        hint = "one begins with no 0, and what has letters stands in quotes"
        return NoJson(text, "a number that is none", hint, len(before))
    return NoJson(text, "a comma is missing", None, len(before))
