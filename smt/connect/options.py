"""Options of a transform: declared once with kind, default and check, as Java's ``ConfigDef`` has them.

In: texts as they stand in a configuration. Out: parsed values by name, and everything that is wrong with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from smt.errors import OptionProblem, nearest

#: Parsed options by their name.
Values = Mapping[str, Any]

REQUIRED: Final = object()
_COMMA: Final = re.compile(r"\s*,\s*")
MISSING = "Missing required configuration which has no default value"


@dataclass(frozen=True, slots=True)
class Option:
    """``check`` raises ``ValueError`` with what is wrong; ``aliases`` are names of older versions."""

    name: str
    kind: Literal["text", "list", "boolean", "int"]
    doc: str
    default: Any = REQUIRED
    check: Callable[[Any], None] | None = None
    aliases: tuple[str, ...] = ()

    def parse(self, text: str) -> Any:
        found = _PARSERS[self.kind](text)
        if self.check is not None:
            self.check(found)
        return found


@dataclass(frozen=True, slots=True)
class Parsed:
    """``ignored``: options that were, as Java ignores them, with what is to be said of each."""

    values: Values
    problems: tuple[OptionProblem, ...]
    ignored: tuple[tuple[str, str], ...] = ()


def parse(declared: tuple[Option, ...], given: Mapping[str, str]) -> Parsed:
    """The values of all declared options; an unknown one is a problem if it resembles one that is known."""
    named = {name: option for option in declared for name in (option.name, *option.aliases)}
    values = {option.name: None if option.default is REQUIRED else option.default for option in declared}
    problems: list[OptionProblem] = []
    ignored = []
    seen: dict[str, str] = {}
    for name, text in given.items():
        option = named.get(name)
        if option is None:
            close = nearest(name, named)
            if close or not named:
                hint = f"did you mean {close}?" if close else "the transform has no options"
                problems.append(OptionProblem(name, "Unknown option", hint, text))
            else:
                ignored.append((name, f"has no effect: it knows {', '.join(named)}"))
            continue
        if option.name in seen:
            problems.append(OptionProblem(name, f"Contradicts {seen[option.name]}", f"leave out {name}", text))
            continue
        seen[option.name] = name
        try:
            values[option.name] = option.parse(text)
        except ValueError as error:
            problems.append(OptionProblem(name, str(error), None, text))
    problems += [
        OptionProblem(option.name, MISSING)
        for option in declared
        if option.default is REQUIRED and option.name not in seen
    ]
    return Parsed(values, tuple(problems), tuple(ignored))


def _trimmed(text: str) -> str:
    """As Java trims: without blanks and control characters around it."""
    return text.strip("".join(map(chr, range(33))))


def _boolean(text: str) -> bool:
    found = {"true": True, "false": False}.get(text.strip().lower())
    if found is None:
        raise ValueError("Expected value to be either true or false")
    return found


def _int(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text.strip()) or not -(2**31) <= int(text) < 2**31:
        raise ValueError("Not a number of type INT")
    return int(text)


def _list(text: str) -> list[str]:
    return _COMMA.split(text.strip()) if text.strip() else []


_PARSERS: dict[str, Callable[[str], Any]] = {"text": _trimmed, "list": _list, "boolean": _boolean, "int": _int}


def not_empty(value: Any) -> None:
    if not value:
        raise ValueError("Empty list" if isinstance(value, list) else "String must be non-empty")


def one_of(*allowed: str) -> Callable[[str], None]:
    """Java compares these with case."""

    def check(text: str) -> None:
        if text not in allowed:
            raise ValueError("String must be one of: " + ", ".join(allowed))

    return check


#: Most transforms have it.
WITH_DEFAULTS = Option(
    "replace.null.with.default",
    "boolean",
    "Whether null in a field with a default counts as that default.",
    default=True,
)
