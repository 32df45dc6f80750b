"""Types of columns for random tables: how each is written in CQL, and how its values look to who compares them.

In: a source of randomness, a value from the driver or from a record. Out: CQL text, and values that are equal where
their source is.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_ATOMS: dict[str, Callable[[random.Random], Any]] = {
    "int": lambda draw: draw.randrange(1000),
    "text": lambda draw: f"t{draw.randrange(1000)}",
    "bigint": lambda draw: draw.randrange(1 << 40),
    "boolean": lambda draw: draw.random() < 0.5,
    "double": lambda draw: draw.randrange(1000) / 4,
}
_MANY_CELLS = ("set<int>", "map<text, int>", "list<int>", "u")
#: The user type that columns have; its table makes it.
USER_TYPE = "u (a int, b text)"


@dataclass(frozen=True)
class Kind:
    """``spelling``: as CQL has it."""

    spelling: str

    @property
    def core(self) -> str:
        """The same, frozen or not."""
        return self.spelling.removeprefix("frozen<").removesuffix(">") if self.is_frozen else self.spelling

    @property
    def is_frozen(self) -> bool:
        return self.spelling.startswith("frozen<")

    @property
    def has_many_cells(self) -> bool:
        """Its elements are written one by one, and of an empty value nothing is kept."""
        return self.spelling in _MANY_CELLS

    # -- as text ---------------------------------------------------------------------------------------------

    def literal(self, draw: random.Random) -> str:
        if self.core in _ATOMS:
            return _literal(_ATOMS[self.core](draw))
        count = draw.randrange(4)
        if self.core == "set<int>":
            return "{" + ", ".join(map(str, draw.sample(range(8), count))) + "}"
        if self.core == "map<text, int>":
            return "{" + ", ".join(f"'{key}': {draw.randrange(100)}" for key in draw.sample("abcdef", count)) + "}"
        if self.core == "list<int>":
            return "[" + ", ".join(str(draw.randrange(100)) for _ in range(count)) + "]"
        a, b = draw.choice([None, draw.randrange(100)]), draw.choice([None, f"b{draw.randrange(100)}"])
        return f"{{a: {_literal(a)}, b: {_literal(b)}}}"

    def assignment(self, draw: random.Random, column: str) -> str:
        """Of an UPDATE: null, a part of a collection, or the whole."""
        chosen = draw.random()
        if chosen < 0.15:
            return f"{column} = null"
        if not self.has_many_cells or chosen >= 0.75:
            return f"{column} = {self.literal(draw)}"
        number, key = draw.randrange(100), draw.choice("abcdef")
        # The elements of lists are not named: they get other keys in the snapshot than they had.
        parts = {
            "set<int>": [f"{column} = {column} {sign} {{{number % 8}}}" for sign in "+-"],
            "map<text, int>": [
                *(f"{column}['{key}'] = {number}", f"{column}['{key}'] = null"),
                f"{column} = {column} - {{'{key}'}}",
            ],
            "list<int>": [f"{column} = {column} + [{number}]", f"{column} = [{number}] + {column}"],
            "u": [
                *(f"{column}.a = {number}", f"{column}.a = null"),
                *(f"{column}.b = 'z{number}'", f"{column}.b = null"),
            ],
        }
        return draw.choice(parts[self.spelling])

    # -- as values -------------------------------------------------------------------------------------------

    def plain(self, value: Any) -> Any:
        """Of a whole value, from the driver or from a record."""
        if value is None or self.core in _ATOMS:
            return value
        found: Any
        if self.core == "set<int>":
            found = sorted(value)
        elif self.core == "map<text, int>":
            # Records have the entries one by one.
            found = dict(value) if isinstance(value, Mapping) else {each["key"]: each["value"] for each in value}
        elif self.core == "list<int>":
            found = list(value)
        else:
            # The driver has an object.
            parts = value if isinstance(value, Mapping) else value._asdict()
            found = {name: parts.get(name) for name in ("a", "b")}
            return found if self.is_frozen or any(each is not None for each in found.values()) else None
        return found if found or self.is_frozen else None


#: What columns are drawn from: plain numbers and texts more often than the rest.
KINDS = [
    *map(Kind, (*_ATOMS, "int", "text", *_MANY_CELLS)),
    *map(Kind, ("frozen<set<int>>", "frozen<map<text, int>>", "frozen<list<int>>", "frozen<u>")),
]


def _literal(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}'" if isinstance(value, str) else repr(value)
