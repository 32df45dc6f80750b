"""Group states: one group of streams while it is being read, with the positions of its streams and what it
waits for.

`TableReader` owns them; they hold no rule about when reading is allowed, only where each stream stands.
"""

from __future__ import annotations

from dataclasses import dataclass

from connector.table_name import TableName
from connector.timeuuid import millis_of
from connector.topology.offsets import Position
from connector.topology.sets import StreamGroup


@dataclass(frozen=True, slots=True, eq=False)
class Gate:
    """No row at or after ``at`` before every group in ``before`` is delivered up to ``at``."""

    at: int
    before: tuple[GroupState, ...]


class Silence:
    """The groups of one slot in which nothing happens: all stand at ``level``, and a sweep moves them together.
    ``groups`` counts them."""

    __slots__ = ("groups", "level")

    def __init__(self, level: int) -> None:
        self.level = level
        self.groups = 0


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """One permission to look for rows in all silent groups of ``slots``, and in those that may fall silent, at once.

    Of each stream with a token in ``arcs`` (both ends included), the first row from ``lower`` up to ``upper``,
    exclusive, is wanted. What it says of the time before ``limit`` is final; from there on rows may still become
    visible, and one that is there already says only when its group is worth reading. It is made instead of reads of
    so many ``groups``; ``stream`` is of one of them. ``around``: its arcs leave out what was refused.
    """

    table: TableName
    slots: frozenset[int]
    arcs: tuple[tuple[int, int], ...]
    lower: int
    limit: int
    upper: int
    groups: int
    stream: bytes
    around: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """One permission to read: ``streams`` from ``read_to`` (or, where ``after`` is given, behind it) up to
    ``limit``, exclusive.

    ``late``: beyond the close, see `looks.py`.
    Hand rows of it on only while `TableReader.is_current` says so: after an abort, a revocation or a new claim
    its pages belong to nobody any more.
    """

    table: TableName
    slot: int
    state: GroupState
    streams: tuple[bytes, ...]
    read_to: int
    after: bytes | None
    limit: int
    late: bool = False

    @property
    def range_end(self) -> int:
        return self.state.group.range_end


Saved = tuple[int, dict[bytes, Position], dict[bytes, int], dict[bytes, Position], bool]


def is_beyond(position: Position, close: int) -> bool:
    """Something at or after ``close`` is delivered, or known not to be there."""
    return position.read_to > close or (position.read_to == close and position.after is not None)


class GroupState:
    """Where one group stands.

    ``level`` is the position of all streams that are not in ``apart``. ``delivered`` keeps, per stream, the
    ms of the last delivered row where the committed mark does not cover it. ``recorded`` are the streams with
    a position in the topic. A group with a ``failure`` is not read, unless it is tried ``again``.

    Beyond the close: ``late`` are the streams of which more was delivered than what lies
    before it, ``looked`` says that nothing more is expected, ``look_at`` when to look again and
    ``look_past`` how far beyond; ``heirs`` took over from the group, ``holds`` counts the looks that it has to stand
    still for.

    A group in ``silence`` stands where that does, whatever ``level`` says; whatever happens to it begins with `stir`.
    While ``swept`` by a sweep it is not read. ``due``: before this ms a read of it would find nothing; ``news_to``: up
    to here it has to be read before it may fall silent again.
    """

    __slots__ = (
        "again", "apart", "close", "delivered", "due", "failure", "gates", "group", "heirs", "holds", "late", "level",
        "look_at", "look_past", "looked", "news_to", "opened", "opened_known", "queued", "reading", "recorded",
        "silence", "slot", "swept", "waiters", "watched",
    )  # fmt: skip

    def __init__(self, group: StreamGroup, slot: int, opened: int, opened_known: bool) -> None:
        self.group = group
        self.slot = slot
        self.opened = opened
        self.opened_known = opened_known
        self.close: int | None = None
        self.gates: list[Gate] = []
        self.watched: list[int] = []
        self.waiters: list[GroupState] = []
        self.level = opened
        self.apart: dict[bytes, Position] = {}
        self.delivered: dict[bytes, int] = {}
        self.recorded: set[bytes] = set()
        self.reading: Read | None = None
        self.failure: str | None = None
        self.again = False
        self.queued = False
        self.heirs: list[GroupState] = []
        self.holds = 0
        self.late: dict[bytes, Position] = {}
        self.looked = False
        self.look_at = 0
        self.look_past = 0
        self.silence: Silence | None = None
        self.swept: Sweep | None = None
        self.due = 0
        self.news_to = 0

    @property
    def read_to(self) -> int:
        """Everything in the group before this ms is delivered."""
        if self.silence is not None:
            return self.silence.level
        if not self.apart:
            return self.level
        lowest = min(position.read_to for position in self.apart.values())
        return lowest if len(self.apart) == len(self.group.streams) else min(lowest, self.level)

    def worked(self) -> None:
        """Something of it is committed, or it is somebody else's: what failed before is over."""
        self.failure, self.again = None, False

    @property
    def drained(self) -> bool:
        return self.close is not None and self.read_to >= self.close

    @property
    def turn(self) -> int:
        """Its place among those that are to be read."""
        return max(self.read_to, self.due)

    def hush(self, silence: Silence) -> None:
        """Move with ``silence`` from here on; both stand at the same place."""
        assert self.silence is None and not self.apart
        self.silence = silence
        silence.groups += 1

    def stir(self) -> None:
        """Stand alone again, where the silence stands."""
        silence = self.silence
        if silence is not None:
            self.silence, self.level = None, silence.level
            silence.groups -= 1

    def position(self, stream: bytes) -> Position:
        return self.apart.get(stream) or Position(self.level if self.silence is None else self.silence.level)

    @property
    def reaches(self) -> int:
        """Nothing of the group at or after this ms is delivered."""
        ends = [
            (self.level if self.silence is None else self.silence.level, None),
            *self.apart.values(),
            *self.late.values(),
        ]
        return max(max(read_to, 0 if after is None else millis_of(after) + 1) for read_to, after in ends)

    def next_read(self, cap: int) -> tuple[tuple[bytes, ...], Position, int]:
        """Which streams to read next, from where, up to where.

        Streams that stand at the same place share a query, the lowest first and only up to the next place
        where others stand, so that a group that came apart (a read that broke off, a restart) is level again
        after a few reads. A stream inside a read has its own lower bound and goes alone: in a shared query
        either its rows would come twice or those of the others be missed.
        """
        streams = self.group.streams
        if not self.apart:
            return streams, Position(self.level), cap
        positions = {stream: self.position(stream) for stream in streams}
        lowest = min(position.read_to for position in positions.values())
        higher = (position.read_to for position in positions.values() if position.read_to > lowest)
        limit = min([cap, *higher])
        together = tuple(stream for stream, position in positions.items() if position == (lowest, None))
        if together:
            return together, Position(lowest), limit
        first = next(stream for stream, position in positions.items() if position.read_to == lowest)
        return (first,), positions[first], limit

    def delivered_row(self, stream: bytes, time: bytes) -> None:
        """Everything of ``stream`` up to and with ``time`` is produced."""
        ms = millis_of(time)
        before = self.apart.get(stream)
        read_to = self.level if before is None else before.read_to
        # Never lower: a row stamped before its stream was opened must not take back what others were told.
        self.apart[stream] = Position(ms if ms > read_to else read_to, time)
        self.delivered[stream] = ms

    def delivered_late(self, stream: bytes, time: bytes) -> None:
        """As `delivered_row`, beyond the close."""
        assert self.close is not None
        self.late[stream] = Position(self.close, time)

    def read_ended(self, streams: tuple[bytes, ...], read_to: int) -> None:
        """All rows of ``streams`` before ``read_to`` are produced. Never moves a stream back that is further inside."""
        ahead = {
            stream: position
            for stream, position in self.apart.items()
            if position.read_to >= read_to and position != (read_to, None) and stream in streams
        }
        if len(streams) == len(self.group.streams):
            self.level = read_to
            self.apart = ahead
            return
        for stream in streams:
            self.apart[stream] = ahead.get(stream, Position(read_to))
        self._rejoin()

    def close_at(self, close: int) -> None:
        self.stir()
        self.close = close
        self.cap_at_close()

    def cap_at_close(self) -> None:
        """What is written to a stream at or after its close is the business of looks: to everybody else, positions
        beyond mean the same as the close. What was read there while the close was not known is not read again by a
        look."""
        close = self.close
        if close is None:
            return
        if self.level > close or self.apart:
            for stream in self.group.streams:
                at = self.position(stream)
                if is_beyond(at, close):
                    self.late.setdefault(stream, at)
        self.level = min(self.level, close)
        for stream, position in self.apart.items():
            if position.read_to >= close:
                self.apart[stream] = Position(close)
        self._rejoin()

    def place(self, level: int, positions: dict[bytes, Position]) -> None:
        """Put all streams to ``level``, but for those with positions of their own."""
        self.stir()
        self.due = self.news_to = 0
        self.level = level
        self.apart = {stream: at for stream, at in positions.items() if at != (level, None)}
        self._rejoin()

    def _rejoin(self) -> None:
        """Come back to one level if all streams stand at the same place, none of them inside a read."""
        if not self.apart:
            return
        first = next(iter(self.apart.values()))
        if first.after is not None:
            return
        if len(self.apart) < len(self.group.streams) and first.read_to != self.level:
            return
        if all(position == first for position in self.apart.values()):
            self.level = first.read_to
            self.apart.clear()

    def save(self) -> Saved:
        return self.level, dict(self.apart), dict(self.delivered), dict(self.late), self.looked

    def stood_at(self, saved: Saved) -> int:
        """What `read_to` was then."""
        level, apart, *_ = saved
        at = [position.read_to for position in apart.values()]
        return min(at if len(at) == len(self.group.streams) else [level, *at])

    def put_back(self, saved: Saved) -> None:
        level, apart, delivered, late, self.looked = saved
        self.level, self.apart, self.delivered, self.late = level, dict(apart), dict(delivered), dict(late)
