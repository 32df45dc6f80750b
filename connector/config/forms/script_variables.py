"""Variables of a script: what each stands for at a place in it.

In: the text of a script, and the environment. Out: ``ScriptVariables``; ``at`` a place they are ``Variables``.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from connector.config.forms.assignments import Assignment, assignments
from connector.config.forms.shell_words import KnownByRunning, OfARound, expanded
from connector.config.substitution import Variables, reference

#: More than all values of a script have; a few lines that name each other are enough to write far more.
MOST_TEXT = 2**19
#: What is said of what a script sets, and what only running it tells.
MADE = "is made when the script runs"
_BLOCK = re.compile(r"(?:^|;)[ \t]*(?:(if|case|for|while|until)|(fi|esac|done))\b", re.MULTILINE)


class ScriptVariables:
    """Those that it sets by itself, from where it sets them on, before those that it is given."""

    def __init__(self, text: str, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self._room = MOST_TEXT
        #: Of each variable the places where it is set, and to what; None where only running the script tells.
        self._set: dict[str, tuple[list[int], list[str | None]]] = {}
        #: Where one is set by each round of a loop, or each call of a function.
        self._of_rounds: set[tuple[str, int]] = set()
        depth, blocks = 0, _depths(text)
        next_place, next_depth = next(blocks)
        for one in assignments(text):
            while next_place <= one.place:
                depth = next_depth
                next_place, next_depth = next(blocks)
            places, values = self._set.setdefault(one.name, ([], []))
            value = self._assigned(one, values[-1] if values else None)
            # Of two branches only running it tells which one is taken.
            if values and value != values[-1] and (depth or one.behind in ("&&", "||")):
                value = None
            places.append(one.place)
            values.append(value)

    def _assigned(self, one: Assignment, before: str | None) -> str | None:
        if one.text is None:
            self._of_rounds.add((one.name, one.place))
        if one.text is None or one.text.startswith("(") or (one.adds and before is None):
            return None
        try:
            value = expanded(one.text, self.at(one.place))
        except KnownByRunning as error:
            if one.is_local or isinstance(error, OfARound):
                self._of_rounds.add((one.name, one.place))
            return None
        value = f"{before}{value}" if one.adds else value
        self._room -= len(value)
        return value if self._room > 0 else None

    def at(self, place: int) -> Variables:
        return _AtPlace(self.environ, script=self, place=place)

    def value(self, name: str, place: int) -> str | None:
        """None if nothing is known of it."""
        places, values = self._set.get(name, ([], []))
        before = bisect_left(places, place)
        return values[before - 1] if before else None

    def is_made(self, name: str, place: int) -> bool:
        """Whether the script sets it to what only running it tells."""
        return self._is_set(name, place) and self.value(name, place) is None

    def is_of_a_round(self, name: str, place: int) -> bool:
        """Whether it is another one each time that the script comes to this place."""
        places, _ = self._set.get(name, ([], []))
        before = bisect_left(places, place)
        return before > 0 and (name, places[before - 1]) in self._of_rounds

    def is_known(self, name: str, place: int) -> bool:
        """Whether there is such a variable at all."""
        return self._is_set(name, place) or name in self.environ

    def _is_set(self, name: str, place: int) -> bool:
        places, _ = self._set.get(name, ([], []))
        return bool(places) and places[0] < place


@dataclass(frozen=True, slots=True)
class _AtPlace(Variables):
    script: ScriptVariables = field(kw_only=True)
    place: int = field(kw_only=True)

    def value(self, name: str) -> str | None:
        found = self.script.value(name, self.place)
        return self.environ.get(name) if found is None else found

    def text(self, name: str) -> str:
        if self.script.is_of_a_round(name, self.place):
            raise OfARound
        found = self.script.value(name, self.place)
        return reference(name) if found is None else found


def _depths(text: str) -> Iterator[tuple[int, int]]:
    """From which place on how many blocks are around; the last one is beyond the end."""
    depth = 0
    for match in _BLOCK.finditer(text):
        depth = max(0, depth + (1 if match[1] else -1))
        yield match.start(), depth
    yield len(text) + 1, depth
