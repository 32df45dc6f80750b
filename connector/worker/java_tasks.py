"""What the Java connector's offsets say about the streams of one table: how far each was read, and what comes next.

In: the offsets of its tasks, stream sets as the server lists them. Out: the generation that Java would go on with, and
where each stream resumes. Pure. Java reads a generation to its end before it begins the next one, and begins again
with the oldest one listed whenever it starts (`GenerationBasedCDCMetadataModel` and `TableCDCController` of
scylla-cdc-java, `ScyllaMasterTransport` of the connector).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from connector.table_name import TableName
from connector.timeuuid import millis_of, time_key
from connector.topology import Position, StreamId, StreamSet

# Newer versions of the Java library give each tablet's stream a task of its own, numbered behind all vnodes: by the
# stream's place in the set, ids compared as Java compares byte buffers.
FIRST_TABLET_TASK = 1 << 22


@dataclass(frozen=True, slots=True)
class JavaOffset:
    """One task's offset. Times are the UUIDs' milliseconds; Java reads up to and with all of ``window_end``'s."""

    table: TableName
    generation: int
    vnode: int
    window_start: int
    window_end: int
    change_stream: bytes | None = None
    change_time: bytes | None = None


@dataclass(slots=True)
class Resumed:
    """Where a table goes on: with ``generation``, each of whose streams has a place, and with those streams of later
    ones that Java has read. ``ranges``: the end of each one's range. The ``unread`` had no offset; they begin at
    ``unread_from``."""

    generation: int
    places: dict[bytes, Position] = field(default_factory=dict)
    ranges: dict[bytes, int] = field(default_factory=dict)
    unread: set[bytes] = field(default_factory=set)
    unread_from: int = 0

    @property
    def earliest(self) -> int:
        """The place of the stream that Java has read least far, if it has read any."""
        read = (place.read_to for stream, place in self.places.items() if stream not in self.unread)
        return min(read, default=self.unread_from)


def stream_positions(offset: JavaOffset, streams: Iterable[bytes]) -> dict[bytes, Position]:
    """Where each stream of a task resumes.

    Java reads a task's streams one after the other, in the order of their ids as signed bytes, each through the whole
    window. So behind the named stream none was read, before it all were; the named one resumes *at* its change's time,
    whose batch may have been delivered in part, since the offset moves with every row of it.
    """
    if offset.change_stream is None or offset.change_time is None:
        return {stream: Position(offset.window_start) for stream in streams}
    named = java_order(offset.change_stream)
    found: dict[bytes, Position] = {}
    for stream in streams:
        order = java_order(stream)
        if order < named:
            found[stream] = Position(offset.window_end + 1)
        elif order > named:
            found[stream] = Position(offset.window_start)
        else:
            found[stream] = Position(millis_of(offset.change_time), just_before(offset.change_time))
    return found


def java_order(stream: bytes) -> bytes:
    """Sorts as Java compares byte buffers: byte by byte, signed."""
    return bytes(byte ^ 0x80 for byte in stream)


def just_before(time_uuid: bytes) -> bytes:
    """The time UUID right before this one in ScyllaDB's order, so that "behind it" begins with this one."""
    low = int.from_bytes(bytes(byte ^ 0x80 for byte in time_uuid[8:]), "big")
    if low == 0:
        # Nothing of this tick comes before; a row of the tick before cannot lie between two of one stream's window.
        return time_uuid
    previous = bytes(byte ^ 0x80 for byte in (low - 1).to_bytes(8, "big"))
    before = time_uuid[:8] + previous
    assert time_key(before) < time_key(time_uuid)
    return before


def sets_wanted(offsets: Iterable[JavaOffset], listed: Sequence[int], visible_from: int) -> list[int]:
    """The listed generations whose streams `resumed` has to know; none: nothing can be said. ``visible_from``: what is
    older has expired from the table's log."""
    read, ends = sorted({offset.generation for offset in offsets}.intersection(listed)), _ends_of(listed)
    if not read:
        return []
    # Java leaves out a generation all of whose changes have expired, whatever it has read of it. Without an offset in a
    # later one it may not have got there, and what it missed is missing.
    wanted = [each for each in read if each == read[-1] or ends[each] >= visible_from]
    return wanted if read[-1] not in ends else [*wanted, ends[read[-1]]]


def resumed(
    offsets: Sequence[JavaOffset], listed: Sequence[int], sets: Mapping[int, StreamSet], lookback_ms: int = 0
) -> Resumed:
    """``sets`` are those that are `sets_wanted`.

    Java is done with a generation when every task's window begins behind its end: nothing is owed of it. It keeps the
    offsets of such generations for ever, at most some windows behind their ends. A task without an offset keeps it in
    the generation, which it reads from the beginning.
    """
    ordered, ends = sorted(sets), _ends_of(listed)
    read = {at: _read(sets[at], [each for each in offsets if each.generation == at]) for at in ordered}
    owing = (at for at in ordered[:-1] if any(_owes(read[at].get(stream), ends[at]) for stream in _ranges(sets[at])))
    found = Resumed(next(owing, ordered[-1]))
    for at in ordered:
        # Tablets that neither split nor merge keep their streams, and each generation has offsets of its own for them:
        # where the former one was read to this one's beginning, whichever was read further counts.
        for stream, place in read[at].items():
            before = found.places.get(stream)
            if before is None or (before.read_to >= at and _order(place) > _order(before)):
                found.places[stream] = place
        if at == found.generation:
            _begin(found, _ranges(sets[at]))
            is_first = at == min(offset.generation for offset in offsets)
            if lookback_ms > 0 and is_first and found.places:
                # A table begins so long before it is first read, and that it was when any of its tasks had an offset.
                found.unread_from = max(at, found.earliest - lookback_ms)
            found.places |= dict.fromkeys(found.unread, Position(found.unread_from))
        if at > found.generation:
            found.ranges |= _ranges(sets[at])
    return found


def _begin(found: Resumed, ranges: dict[bytes, int]) -> None:
    """With the streams of its generation; what is known of those that had ended before is over."""
    found.ranges = ranges
    found.places = {stream: place for stream, place in found.places.items() if stream in ranges}
    found.unread = ranges.keys() - found.places.keys()
    found.unread_from = found.generation


def _owes(place: Position | None, end: int) -> bool:
    return place is None or place.read_to < end


def _order(place: Position) -> tuple[int, int]:
    return place.read_to, 0 if place.after is None else time_key(place.after)


def _ends_of(listed: Sequence[int]) -> dict[int, int]:
    """When each generation ended; nothing of the newest one."""
    return dict(pairwise(sorted(listed)))


def _ranges(stream_set: StreamSet) -> dict[bytes, int]:
    """Its streams, with the end of each one's range."""
    return {stream: group.range_end for group in stream_set.groups for stream in group.streams}


def _read(stream_set: StreamSet, offsets: Iterable[JavaOffset]) -> dict[bytes, Position]:
    """Where streams of a generation resume by its own offsets."""
    tasks, everything = defaultdict[int, list[bytes]](list), _ranges(stream_set)
    for stream in everything:
        tasks[StreamId.parse(stream).index or 0].append(stream)
    in_order = sorted(everything, key=java_order)
    found: dict[bytes, Position] = {}
    # A stream's own newer offset rules over the one that all streams of a tablets table once shared.
    for offset in sorted(offsets, key=lambda each: each.vnode >= FIRST_TABLET_TASK):
        if offset.vnode < FIRST_TABLET_TASK:
            streams = tasks.get(offset.vnode, [])
        elif offset.change_stream is not None and offset.change_stream in everything:
            streams = [offset.change_stream]
        else:
            place = offset.vnode - FIRST_TABLET_TASK
            streams = in_order[place : place + 1]
        found |= stream_positions(offset, streams)
    return found
