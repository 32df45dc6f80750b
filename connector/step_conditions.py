"""For which records a step of a chain of transforms is, as its ``predicate`` and ``negate`` say.

In: both as they were given, None where they were not; which predicates there are. Out: a `StepCondition`, with what is
wrong; which of the two a misspelt name was to be. The connector refuses what readers of its topics refuse, in the same
words; hints are of who tells them.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Literal

Option = Literal["predicate", "negate"]
_OPTIONS: Final[tuple[Option, ...]] = ("predicate", "negate")


@dataclass(frozen=True, slots=True)
class Wrong:
    """``lacks``: what would have to be there beside it."""

    option: Option
    problem: str
    value: str
    lacks: Option | None = None


@dataclass(frozen=True, slots=True)
class StepCondition:
    """``predicate``: its name, empty for none."""

    predicate: str
    negate: bool
    wrong: tuple[Wrong, ...]


def step_condition(predicate: str | None, negate: str | None, known: Collection[str]) -> StepCondition:
    """As Kafka Connect takes them.

    >>> [each.problem for each in step_condition(None, "true", ()).wrong]
    ['There is no predicate to be negated']
    """
    named, turned = (predicate or "").strip(), ("false" if negate is None else negate).strip().lower()
    wrong: list[Wrong] = []
    if predicate is not None and named not in known:
        wrong.append(Wrong("predicate", "`predicates` names no such predicate", named))
    if turned not in ("true", "false"):
        wrong.append(Wrong("negate", "Must be true or false", turned))
    elif turned == "true" and predicate is None:
        wrong.append(Wrong("negate", "There is no predicate to be negated", turned, "predicate"))
    return StepCondition(named, turned == "true", tuple(wrong))


def conditions_in(options: Mapping[str, str]) -> dict[str, Option]:
    """The options of a condition, by the names that they were given, which may be misspelt: no option of a transform or
    a predicate resembles them, and a step without its condition would be for all records.

    >>> conditions_in({"predicat": "p", "negate": "true", "regex": "x"})
    {'predicat': 'predicate', 'negate': 'negate'}
    """
    return {
        name: option
        for name in options
        for option in _OPTIONS
        if difflib.get_close_matches(name.lower(), [option], cutoff=0.8)
    }
