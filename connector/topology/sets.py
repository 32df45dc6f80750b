"""Stream sets: what was in force from one timestamp on, with the range of tokens that each group of streams
covers.

The answers of ScyllaDB's tables go in (`tablet_set`, `vnode_set`), checked `StreamSet`s come out. An answer
that cannot be whole raises `RetriableSourceError`: ask again, elsewhere. It is never taken for "nothing to
read".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from connector.errors import RetriableSourceError
from connector.topology.streams import MAX_TOKEN, StreamId, token_of

_RING = 1 << 64
_SHIFT = 1 << 63


@dataclass(frozen=True, slots=True)
class StreamGroup:
    """Streams that share one range of tokens and are read together: a vnode's, or a single tablet's."""

    range_end: int
    streams: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, eq=False)
class StreamSet:
    """All groups in force from ``timestamp`` (ms) on, by rising ``range_end``. Compared by identity: sets are
    big."""

    timestamp: int
    groups: tuple[StreamGroup, ...]

    def segments(self) -> list[tuple[int, StreamGroup]]:
        """The ring as ``(end, group)`` pieces in order, tokens shifted to 0 .. 2**64, ends exclusive.

        The first group's range wraps around: it also owns what lies behind the last range end.
        """
        pieces = [(group.range_end + _SHIFT + 1, group) for group in self.groups]
        if pieces[-1][0] < _RING:
            pieces.append((_RING, self.groups[0]))
        return pieces


def tablet_set(timestamp: int, streams: Iterable[bytes]) -> StreamSet:
    """The set of a table with tablets: every stream covers the tokens after its predecessor's up to its
    own."""
    ordered = sorted((token_of(stream), stream) for stream in streams)
    if not ordered:
        raise RetriableSourceError(f"the stream set of {timestamp} came back empty: a node that lags, ask again")
    # The last tablet ends where the ring ends. A set without it was cut short: paging through the virtual
    # table goes by unsigned ids while its rows come by signed token, and a lagging node may know only a part.
    if ordered[-1][0] != MAX_TOKEN:
        raise RetriableSourceError(
            f"the stream set of {timestamp} ends at token {ordered[-1][0]} and not at the ring's end: "
            "incomplete, ask again"
        )
    for (token, one), (next_token, other) in pairwise(ordered):
        if token == next_token:
            raise RetriableSourceError(
                f"the stream set of {timestamp} has two streams for token {token} "
                f"(0x{one.hex()}, 0x{other.hex()}): mixed up, ask again"
            )
    return StreamSet(timestamp, tuple(StreamGroup(token, (stream,)) for token, stream in ordered))


def vnode_set(timestamp: int, rows: Mapping[int, Iterable[bytes]]) -> StreamSet:
    """A generation of vnodes: rows ``range_end -> streams``. Shards interleave, so a group covers all its vnode."""
    groups = tuple(StreamGroup(end, tuple(sorted(streams))) for end, streams in sorted(rows.items()))
    if not groups:
        raise RetriableSourceError(f"the generation of {timestamp} came back without streams: ask again")
    for group in groups:
        if not group.streams:
            raise RetriableSourceError(
                f"the generation of {timestamp} has no streams for the range ending at {group.range_end}: ask again"
            )
    _check_indexes(timestamp, groups)
    return StreamSet(timestamp, groups)


def _check_indexes(timestamp: int, groups: tuple[StreamGroup, ...]) -> None:
    """Versioned ids carry the number of their vnode: numbers that rise but skip one betray missing rows."""
    indexes = [StreamId.parse(group.streams[0]).index for group in groups]
    known = [index for index in indexes if index is not None]
    if len(known) < len(groups) or any(a >= b for a, b in pairwise(known)):
        return
    for place, index in enumerate(known):
        if index != place:
            raise RetriableSourceError(
                f"the generation of {timestamp} lacks the streams of vnode {place}: only a part arrived, ask again"
            )
