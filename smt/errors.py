"""What can go wrong: options that are wrong (all at once, with what was meant), and a record that a transform cannot be
applied to. With no part of the connector, so that the transforms can be used without it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OptionProblem:
    """One thing wrong with an option; ``option`` is empty when it is the transform's type."""

    option: str
    problem: str
    suggestion: str | None = None
    value: str | None = None

    def __str__(self) -> str:
        given = "" if self.value is None else f" = {self.value!r}"
        name = f"{self.option}{given}: " if self.option else ""
        return f"{name}{self.problem}" + (f" ({self.suggestion})" if self.suggestion else "")


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that was probably meant."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return found[0] if found else None


class SmtError(Exception):
    """Root of what this package raises."""


class SmtOptionError(SmtError):
    """The options are wrong; ``problems`` lists everything found."""

    def __init__(self, problems: Iterable[OptionProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class SmtRecordError(SmtError):
    """A record that the transform cannot be applied to; the message names the remedy."""
