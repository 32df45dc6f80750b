"""Which parts of a state a merge takes together, so that what is written is in proportion to what has changed.

In: the bytes of each part, and of the changes to merge. Out: the parts to take, and whether they become the base. As
soon as there are ``FAN`` runs of about one size, they become one of the next level. When all runs together are a share
of the base, they become one with it. So a change is written once per level, and the base for each ``SHARE`` of it that
has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

FAN = 10
SHARE = 0.5
_ABOUT = 3
"""How many times as large a run may be and still count as of one size."""

MARK_PART = -1


@dataclass(frozen=True)
class Choice:
    """The runs to take together with what is new; ``base`` if the base is among them."""

    runs: tuple[int, ...]
    base: bool


def runs_of(parts: Mapping[int, int]) -> dict[int, int]:
    return {part: size for part, size in parts.items() if part < MARK_PART}


def choose(parts: Mapping[int, int], new: int) -> Choice:
    """``parts`` are the buckets of the base, from 0 on, the runs below the mark's part, and the mark's.

    >>> choose({0: 1 << 30}, 1 << 20)
    Choice(runs=(), base=False)
    >>> choose({0: 2 << 20, -7: 1 << 19}, 1 << 19)
    Choice(runs=(-7,), base=True)
    """
    runs = runs_of(parts)
    base = sum(size for part, size in parts.items() if part > MARK_PART)
    if sum(runs.values()) + new >= SHARE * base:
        return Choice(tuple(sorted(runs)), base=True)
    taken: set[int] = set()
    size = new
    while True:
        peers = [part for part in runs if part not in taken and runs[part] <= _ABOUT * size]
        if len(peers) < FAN - 1:
            return Choice(tuple(sorted(taken)), base=False)
        taken.update(peers)
        size += sum(runs[part] for part in peers)
