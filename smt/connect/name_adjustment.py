"""Names made acceptable to Avro, as Debezium's ``SchemaNameAdjuster`` does it.

In: a mode of ``schema.name.adjustment.mode`` or ``field.name.adjustment.mode``. Out: functions from a name to a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

Adjust = Callable[[str], str]

MODES: Final = ("none", "avro", "avro_unicode")
_FIRST: Final = {"avro": re.compile(r"[A-Za-z_]"), "avro_unicode": re.compile(r"[A-Za-z]")}
_INVALID: Final = {
    ("avro", "."): re.compile(r"[^A-Za-z0-9_.]"),
    ("avro", ""): re.compile(r"[^A-Za-z0-9_]"),
    ("avro_unicode", "."): re.compile(r"[^A-Za-z0-9.]"),
    ("avro_unicode", ""): re.compile(r"[^A-Za-z0-9]"),
}


def name_adjuster(mode: str, *, fields: bool = False) -> Adjust:
    """For names of schemas, in which dots are separators, or of ``fields``, in which they are not."""
    if mode == "none":
        return lambda name: name
    first, invalid = _FIRST[mode], _INVALID[mode, "" if fields else "."]
    replace = _underscore if mode == "avro" else _unicode

    def adjust(name: str) -> str:
        if not name:
            return name
        head = name[0] if first.match(name) else replace(name[0])
        if mode == "avro" and name[0].isdecimal():
            # Names that differ in their first digit only stay apart.
            head += name[0]
        return head + invalid.sub(lambda found: replace(found[0]), name[1:])

    return adjust


def _underscore(character: str) -> str:
    return "_" * (len(character.encode("utf-16-le")) // 2)


def _unicode(character: str) -> str:
    units = character.encode("utf-16-be")
    codes = (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    # As many zeros before the code as Java writes: two before one or two digits, none before three.
    return "".join("_u" + (f"00{code:x}" if code < 256 else f"{code:x}") for code in codes)
