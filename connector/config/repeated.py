"""Objects of configuration files, JSON's and YAML's alike, that know which of their names were given twice.

In: pairs. Out: a ``Repeated``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Repeated(dict[str, Any]):
    """An object that remembers which of its names were given twice."""

    repeated: tuple[str, ...] = ()


def repeated_pairs(pairs: Sequence[tuple[str, Any]]) -> Repeated:
    """The object of these pairs; the last of a repeated name counts."""
    found = Repeated(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        found.repeated = tuple(sorted({name for name in names if names.count(name) > 1}))
    return found
