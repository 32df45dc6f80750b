"""The kinds of value a property can have: what text is accepted, what it becomes, how it is described.

In: the text of one value. Out: the typed value, or ``Invalid`` with what is wrong and what would be right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connector import java_regex
from connector.config.secret import Secret
from connector.suggestions import did_you_mean

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
# What Java takes away around a text: not every blank that there is.
_BLANKS = "".join(map(chr, range(33)))


class Invalid(ValueError):
    """A value that its kind does not accept."""

    def __init__(self, problem: str, suggestion: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.suggestion = suggestion


@dataclass(frozen=True, slots=True)
class Kind:
    """``parse`` turns text into the value; ``label`` is the word the documentation uses. ``literals``: all that there
    are, if they are few."""

    label: str
    parse: Callable[[str], Any]
    secret: bool = False
    literals: tuple[str, ...] = ()


def _boolean(text: str) -> bool:
    folded = text.strip().lower()
    if folded not in ("true", "false"):
        raise Invalid("Must be true or false", "true or false")
    return folded == "true"


def _string(text: str) -> str:
    return text.strip(_BLANKS)


def _list(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


STRING = Kind("string", _string)
BOOLEAN = Kind("boolean", _boolean)
LIST = Kind("list", _list)
PASSWORD = Kind("password", Secret, secret=True)


def integer(low: int, high: int = INT_MAX, *, also: Sequence[int] = (), problem: str | None = None) -> Kind:
    """Whole numbers from ``low`` to ``high``, and the single values in ``also``."""
    wide = high > INT_MAX
    expected = f"a whole number of at least {low}" if high in (INT_MAX, LONG_MAX) else f"{low} to {high}"
    if also:
        expected += " or " + " or ".join(str(value) for value in also)

    def parse(text: str) -> int:
        stripped = text.strip()
        if not re.fullmatch(r"[+-]?[0-9]+", stripped):
            raise Invalid("Must be a whole number" if problem is None else problem, expected)
        sign, digits = stripped[0] if stripped[0] in "+-" else "", stripped.lstrip("+-").lstrip("0") or "0"
        # Far beyond any bound, and Python refuses to read more than 4300 digits.
        value = int(sign + digits[:30])
        if value in also or low <= value <= high:
            return value
        if value > high and high in (INT_MAX, LONG_MAX):
            raise Invalid(f"Must be at most {high}", expected)
        raise Invalid(problem or f"Must be {expected}", expected)

    return Kind("long" if wide else "int", parse)


def one_of(*literals: str, taken_as: Mapping[str, str] | None = None) -> Kind:
    """One of the literals, in any case, as Debezium compares its enums (trimmed, lower case). ``taken_as``: what values
    that others know mean here."""
    by_folded = {**(taken_as or {}), **{literal.lower(): literal for literal in literals}}

    def parse(text: str) -> str:
        found = by_folded.get(text.strip().lower())
        if found is None:
            hint = did_you_mean(text.strip(), literals, 0.6) or literals[0]
            raise Invalid("Value must be one of " + ", ".join(literals), hint)
        return found

    return Kind("one of " + ", ".join(f"`{literal}`" for literal in literals), parse, literals=literals)


def list_of(*literals: str, problem: Callable[[str], str] | None = None) -> Kind:
    """A comma list whose items are all among the literals; becomes a frozenset."""
    by_folded = {literal.lower(): literal for literal in literals}

    def parse(text: str) -> frozenset[str]:
        chosen = []
        for item in _list(text):
            found = by_folded.get(item.lower())
            if found is None:
                raise Invalid(
                    problem(item) if problem else f"'{item}' is not one of " + ", ".join(literals),
                    did_you_mean(item, literals, 0.6),
                )
            chosen.append(found)
        return frozenset(chosen)

    return Kind("list of " + ", ".join(f"`{literal}`" for literal in literals), parse, literals=literals)


def matching(pattern: str, problem: str, suggestion: str | None = None, *, empty: bool = False) -> Kind:
    """Text that matches the whole pattern (or is empty, where that has a meaning)."""
    compiled = re.compile(pattern)

    def parse(text: str) -> str:
        stripped = text.strip()
        if (empty and not stripped) or compiled.fullmatch(stripped):
            return stripped
        raise Invalid(problem, suggestion)

    return Kind("string", parse)


def java_pattern(text: str) -> re.Pattern[str]:
    """A regular expression of Java's. Raises ``Invalid``."""
    try:
        return java_regex.java_pattern(text)
    except ValueError as error:
        raise Invalid(str(error)) from None
