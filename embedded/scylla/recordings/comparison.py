"""What a comparison finds: differences, each with the place, what the recording has and what the server did.

In: two recordings of one kind, side by side. Out: a `Comparison` with counts and every difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from embedded.scylla.recordings.spelling import canonical


@dataclass(frozen=True)
class Difference:
    """`kind`: answer, columns, log, row, supported, local or system table. `place`: the statement, or the table with
    partition and time."""

    kind: str
    place: str
    expected: Any
    got: Any

    def text(self) -> str:
        lines = [f"{self.kind}: {self.place}"]
        if isinstance(self.expected, dict) and isinstance(self.got, dict):
            lines.append(f"  differs in {', '.join(_differing(self.expected, self.got))}")
        return "\n".join([*lines, f"  expected {_shown(self.expected)}", f"  got      {_shown(self.got)}"])

    def json(self) -> dict[str, Any]:
        return {"kind": self.kind, "place": self.place, "expected": self.expected, "got": self.got}


@dataclass
class Comparison:
    """`compared` counts statements, answers, columns, log rows, base rows and what the server says about itself."""

    recorded_on: str
    server: str
    compared: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    deviations: list[tuple[str, Difference]] = field(default_factory=list)

    def same(self, kind: str, place: str, expected: Any, got: Any) -> bool:
        if expected == got:
            return True
        self.differences.append(Difference(kind, place, expected, got))
        return False

    def rows(self, kind: str, place: str, expected: list[Any], got: list[Any]) -> None:
        """Two lists in order; one difference for each row that is missing, too much, or another."""
        if expected == got:
            return
        left, right = [canonical(each) for each in expected], [canonical(each) for each in got]
        for tag, start, end, other, other_end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
            if tag == "equal":
                continue
            for at in range(max(end - start, other_end - other)):
                self.differences.append(
                    Difference(
                        kind,
                        place,
                        expected[start + at] if start + at < end else None,
                        got[other + at] if other + at < other_end else None,
                    )
                )


def paired(expected: dict[Any, Any], got: dict[Any, Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Every key of either with both values, in the order of the first."""
    for key in [*expected, *(key for key in got if key not in expected)]:
        yield key, expected.get(key), got.get(key)


def _differing(expected: dict[str, Any], got: dict[str, Any]) -> Iterator[str]:
    """The keys whose values are not equal: `values.v`, `end`."""
    for key, left, right in paired(expected, got):
        if isinstance(left, dict) and isinstance(right, dict):
            yield from (f"{key}.{inner}" for inner in _differing(left, right))
        elif left != right:
            yield key


def _shown(value: Any) -> str:
    return "nothing" if value is None else canonical(value) if not isinstance(value, str) else value
