"""For which records a step of a chain of transforms is, as its ``predicate`` and ``negate`` say.

In: both as they were given, None where they were not; which predicates there are. Out: a `StepCondition`, with what is
wrong. The connector refuses what readers of its topics refuse, in the same words; hints are of who tells them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Option = Literal["predicate", "negate"]


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
