"""Where the double is known to differ from a recorded ScyllaDB, each with its reason.

A difference that a deviation names is told as such and does not fail a replay. Deviations count on the double only: on
a real server every difference is one. docs/embedded.md lists the same names and reasons; a test holds the two equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from embedded.scylla.recordings.comparison import Comparison, Difference
from embedded.scylla.recordings.scripted import SETUP


@dataclass(frozen=True)
class Deviation:
    """`matches` is told all differences too, since one may be the cause of another."""

    name: str
    reason: str
    matches: Callable[[Difference, list[Difference]], bool]


_COUNTER_TABLE = next(found[1] for text in SETUP if (found := re.search(r"TABLE (\S+) .*\bcounter\b", text)))
_INDEX = re.compile(r"CREATE\s+INDEX\b.*?\bON\s+(\S+)\s*\((.*)\)", re.IGNORECASE | re.DOTALL)


def _message(answer: Any) -> str:
    return str(answer.get("message", "")) if isinstance(answer, dict) else ""


def _needs_counters(difference: Difference, every: list[Difference]) -> bool:
    if difference.kind != "answer" or not _message(difference.got):
        return False
    of_table = re.search(rf"{re.escape(_COUNTER_TABLE)}(?![\w$])", difference.place) is not None
    return of_table or re.search(r"\bcounter\b", difference.place, re.IGNORECASE) is not None


def _needs_index(difference: Difference, every: list[Difference]) -> bool:
    if difference.kind != "answer" or not _message(difference.got):
        return False
    if _INDEX.match(difference.place):
        return "no secondary indexes" in _message(difference.got)
    refused = [found for each in every if (found := _INDEX.match(each.place))]
    asked = [f"{table} WHERE {column.strip()} " for table, column in (found.groups() for found in refused)]
    return "ALLOW FILTERING" in _message(difference.got) and any(each in difference.place for each in asked)


DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        "counters",
        "Counter tables are refused: a log of changes has no counters, so no reader can tell.",
        _needs_counters,
    ),
    Deviation(
        "secondary indexes",
        "`CREATE INDEX` is refused, and what an index would answer needs ALLOW FILTERING: no reader of a log uses one.",
        _needs_index,
    ),
)


def set_apart(comparison: Comparison) -> None:
    """Move every difference that a deviation names from the differences to the deviations."""
    every, left = list(comparison.differences), []
    for difference in every:
        named = next((each for each in DEVIATIONS if each.matches(difference, every)), None)
        if named is None:
            left.append(difference)
        else:
            comparison.deviations.append((named.name, difference))
    comparison.differences[:] = left
