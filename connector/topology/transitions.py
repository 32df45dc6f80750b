"""What one stream set changes about the one before: closed, opened and kept groups, and who must wait for
whom.

Two `StreamSet`s go in, a `Transition` comes out, in time linear in their sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from connector.errors import UnsupportedServer
from connector.topology.sets import StreamGroup, StreamSet


@dataclass(frozen=True, slots=True, eq=False)
class Transition:
    """The change at ``at``. ``waits`` names, per group of the new set that gained tokens, the old groups it
    gained from."""

    at: int
    closed: tuple[StreamGroup, ...]
    opened: tuple[StreamGroup, ...]
    kept: tuple[StreamGroup, ...]
    waits: tuple[tuple[StreamGroup, tuple[StreamGroup, ...]], ...]


# All vnode tables go through the same pairs of sets, one after the other.
@lru_cache(maxsize=4)
def transition(old: StreamSet, new: StreamSet) -> Transition:
    """How ``new`` follows ``old``.

    The server also lists closed and opened streams, but against the timestamp before in *its* list; after a
    gap (sets forgotten by ttl between two polls) only the difference to the set that was really applied last
    is right.
    """
    before = {stream: group for group in old.groups for stream in group.streams}
    kept: dict[bytes, StreamGroup] = {}
    opened: list[StreamGroup] = []
    for group in new.groups:
        shared = [stream for stream in group.streams if stream in before]
        if not shared:
            opened.append(group)
        elif before[shared[0]] == group:
            kept[group.streams[0]] = group
        else:
            # No server does this: ids get 38 fresh random bits at each creation, and a tablet's range end is
            # in its id.
            raise UnsupportedServer(
                f"stream 0x{shared[0].hex()} changed its group of streams at {new.timestamp}: not a layout of ScyllaDB"
            )
    closed = tuple(group for group in old.groups if group.streams[0] not in kept)
    return Transition(new.timestamp, closed, tuple(opened), tuple(kept.values()), _waits(old, new))


def forget_transitions() -> None:
    """All tables have gone through the pairs of sets: whole generations need not stay in memory for it."""
    transition.cache_clear()


def _waits(old: StreamSet, new: StreamSet) -> tuple[tuple[StreamGroup, tuple[StreamGroup, ...]], ...]:
    """Per group of the new set, the other groups that owned a part of its range before, by one walk around
    the ring.

    Not only closed groups count. Let k1 = (0, 50] and k2 = (50, 100] become k1 = (0, 20], n = (20, 50], k2
    kept: k1 stays open, but keys 20..50 have their earlier rows in it, so n waits for k1 up to T. And when k1
    goes away without a successor, k2 grows to (0, 100]: kept, and yet it must not pass T before k1 is
    drained. A group whose range only shrinks gains nothing and is not in the answer.
    """
    was, becomes = old.segments(), new.segments()
    waits: dict[StreamGroup, dict[StreamGroup, None]] = {}
    i = j = 0
    while i < len(was) and j < len(becomes):
        (old_end, source), (new_end, target) = was[i], becomes[j]
        if source != target:
            waits.setdefault(target, {})[source] = None
        i += old_end <= new_end
        j += new_end <= old_end
    return tuple((target, tuple(sources)) for target, sources in waits.items())
