"""Names and literals as SQL must spell them, and the physical names of landed columns.

In: names as CQL knows them (any characters, upper and lower case told apart). Out: quoted identifiers and literals
for SQL text, and names for Parquet columns that every catalog accepts. No other module quotes anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_PLAIN = re.compile(r"[a-z0-9_]")


def quoted(*parts: str) -> str:
    """An identifier of one or more parts, in back quotes.

    >>> quoted("ks", "odd`name")
    '`ks`.`odd``name`'
    """
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def literal(text: str) -> str:
    """A string literal, whatever characters the text has.

    >>> literal("it's")
    "'it\\\\'s'"
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def physical(name: str) -> str:
    """``name`` in lower-case letters, digits, ``_`` and ``$``: reversible, so no two columns can collide.

    Delta and Iceberg refuse some characters in column names, and Spark does not tell upper from lower case.

    >>> physical("weight"), physical("Weight"), physical("a b"), physical("日")
    ('weight', '$57eight', 'a$20b', '$u0065e5')
    """
    return "".join(char if _PLAIN.match(char) else _code(ord(char)) for char in name)


def _code(number: int) -> str:
    return f"${number:02x}" if number < 0x100 else f"$u{number:06x}"


def struct_of(fields: Iterable[tuple[str, str]]) -> str:
    """The SQL of a struct with these named expressions.

    >>> struct_of([("t", "1"), ("v", "a")])
    "named_struct('t', 1, 'v', a)"
    """
    return "named_struct(" + ", ".join(f"{literal(name)}, {sql}" for name, sql in fields) + ")"


def greatest(terms: Iterable[str]) -> str:
    """The greatest of the expressions that are not null; ``greatest`` itself wants at least two.

    >>> greatest(["a"]), greatest(["a", "b"])
    ('a', 'greatest(a, b)')
    """
    found = list(terms)
    if not found:
        return "CAST(NULL AS bigint)"
    return found[0] if len(found) == 1 else f"greatest({', '.join(found)})"
