"""What a transform is to the registry: a name, options, and what makes the function of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from smt.connect.options import Option, Values
from smt.connect.sides import Apply, Side
from smt.errors import OptionProblem

APACHE: Final = "org.apache.kafka.connect.transforms."


def _nothing(values: Values) -> tuple[OptionProblem, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Declared:
    """One class of Java's. ``sided``: there is one for keys and one for values, ``Name$Key`` and ``Name$Value``.

    ``check`` says what is wrong with options together that are right each by itself. ``routes``: it changes nothing
    but the topic, whatever the record.
    """

    name: str
    doc: str
    options: tuple[Option, ...]
    build: Callable[[Values, Side], Apply]
    sided: bool = False
    check: Callable[[Values], tuple[OptionProblem, ...]] = _nothing
    package: str = APACHE
    routes: bool = False

    @property
    def spellings(self) -> dict[str, str]:
        """Every accepted name, and the short name that it means."""
        short = [f"{self.name}${side}" for side in ("Key", "Value")] if self.sided else [self.name]
        return {prefix + name: name for name in short for prefix in (self.package, "")}
