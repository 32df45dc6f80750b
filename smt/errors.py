"""What can go wrong: options that are wrong (all at once), and a record that a transform cannot be applied to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OptionProblem:
    """One thing wrong with an option; ``option`` is empty when it is the transform's type."""

    option: str
    problem: str
    suggestion: str | None = None

    def __str__(self) -> str:
        name = f"{self.option}: " if self.option else ""
        return f"{name}{self.problem}" + (f" ({self.suggestion})" if self.suggestion else "")


class SmtError(Exception):
    """Root of what this package raises."""


class SmtOptionError(SmtError):
    """The options are wrong; ``problems`` lists everything found."""

    def __init__(self, problems: Iterable[OptionProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class SmtRecordError(SmtError):
    """A record that the transform cannot be applied to; the message names the remedy."""
