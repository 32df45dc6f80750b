"""Random partial changes of a stream set, for histories that no present ScyllaDB makes but its metadata
allows.

Comes in: the newest set of a table and a random source. Goes out: the streams to close and the tokens to
open.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from embedded.scylla.tokens import MIN_TOKEN

KINDS = ("split", "merge", "shift", "grow", "shrink", "replace")


def random_partial_change(
    streams: Sequence[bytes], tokens: Sequence[int], source: random.Random
) -> tuple[list[bytes], list[int]]:
    """What one to three neighbouring-tablet changes close and open, never touching a tablet twice."""
    close: list[bytes] = []
    opened: list[int] = []
    places = list(range(len(streams)))
    source.shuffle(places)
    busy: set[int] = set()
    for place in places[: source.randint(1, 3)]:
        if busy & {place - 1, place, place + 1}:
            continue
        busy |= {place, place + 1}
        closed, new = _change_at(streams, tokens, place, source.choice(KINDS), source)
        close += closed
        opened += new
    return close, opened


def _change_at(
    streams: Sequence[bytes], tokens: Sequence[int], place: int, kind: str, source: random.Random
) -> tuple[list[bytes], list[int]]:
    stream, end = streams[place], tokens[place]
    start = tokens[place - 1] if place else MIN_TOKEN
    last = place + 1 == len(streams)
    inner = source.randint(start + 1, end - 1) if end - start > 1 else None
    if kind == "merge" and not last:
        return [stream, streams[place + 1]], [tokens[place + 1]]
    if kind == "grow" and not last:
        return [stream], []
    if inner is not None:
        if kind == "split":
            return [stream], [inner, end]
        if kind == "shift" and not last:
            return [stream], [inner]
        if kind == "shrink":
            return [], [inner]
    return [stream], [end]
