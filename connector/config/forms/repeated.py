"""Objects of configuration files, JSON's and YAML's alike, that know which of their names were given twice.

In: pairs. Out: a ``Repeated``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any


class Repeated(dict[str, Any]):
    """An object that remembers which of its names were given twice."""

    repeated: tuple[str, ...] = ()
    #: On which lines of its file each of these names stands, where that is known.
    lines: Mapping[str, Sequence[int]] = MappingProxyType({})
    #: Whether another object takes its members by YAML's `<<`.
    is_brought_along = False


def repeated_pairs(pairs: Sequence[tuple[str, Any]], given: Sequence[Any] | None = None) -> Repeated:
    """The object of these pairs; the last of a repeated name counts. ``given``: the names that somebody wrote.

    What stands there twice and says the same leaves no doubt in JSON, of which Kafka Connect takes the last; readers
    of YAML refuse it.
    """
    found = Repeated(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in {(name, repr(value)) for name, value in pairs}] if given is None else given
        found.repeated = tuple(sorted(name for name, count in Counter(names).items() if count > 1))
    return found
