"""Windows that are read before their turn: a group with much to read is not bound by round trips.

In: the window of a group whose turn it is, what the log reader says of later ones. Out: the window in which the group's
next read begins, with all that has come of it by then.

Nothing here is a promise. What is read ahead lies before the limit that the planner gave, so it is final; but it is
delivered only when the planner gives a read of just these streams from just this place. Whatever does not fit is
dropped, and read again in its turn.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from connector.source.log_reader import LogReader, LogTable, ReadEvent, ReadFailed, ReadRequest
from connector.source.settings import ReadingSettings
from connector.source.windows import Widths
from connector.table_name import TableName
from connector.topology import GroupState, Read

# A group of which a window could not be read ahead is read in turn only, for so long.
REST_SECONDS = 10.0


@dataclass(slots=True, eq=False)
class Window:
    """A stretch of time of a group, and the streams of each query for it. ``came``: what came before its turn."""

    table: TableName
    state: GroupState
    streams: tuple[bytes, ...]
    lower: int
    upper: int
    parts: list[tuple[bytes, ...]]
    came: deque[ReadEvent] = field(default_factory=deque)

    def requests(self, table: LogTable, after: bytes | None = None) -> Iterator[ReadRequest]:
        for streams in self.parts:
            yield ReadRequest(self, table, streams, self.lower, self.upper, after, urgency=self.lower)

    def is_for(self, read: Read) -> bool:
        """In its turn the same would be read."""
        begins = (read.state, read.streams, read.read_to, read.after)
        return begins == (self.state, self.streams, self.lower, None) and self.upper <= read.limit


class ReadAhead:
    """All such windows of one process: a chain for each group, each window from where the one before it ends."""

    def __init__(
        self,
        log_reader: LogReader,
        widths: Widths,
        settings: ReadingSettings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log_reader
        self._widths = widths
        self._most_of_a_group = settings.windows_ahead
        # Half of all places: the rest is for what has its turn.
        self._most = settings.max_in_flight // 2
        self._clock = clock
        self._chains: dict[GroupState, deque[Window]] = {}
        self._resting: dict[GroupState, float] = {}
        self._queries = 0
        #: Windows whose turn came.
        self.used = 0

    def queries(self) -> Iterator[tuple[TableName, int]]:
        """By table."""
        for chain in self._chains.values():
            yield chain[0].table, sum(len(window.parts) for window in chain)

    def next(self, current: Window, read: Read, narrowest: int) -> Window | None:
        """One more window, behind those that there are; to be asked for. None if there is no use for more."""
        state = read.state
        chain = self._chains.get(state, ())
        most = min(self._most, self._log.most_ahead)
        if len(chain) >= self._most_of_a_group or self._queries + len(current.parts) > most or not self._is_hot(read):
            return None
        lower = chain[-1].upper if chain else current.upper
        if lower + narrowest > read.limit:
            return None  # it would not be planned, either
        window = Window(
            read.table, state, read.streams, lower, self._widths.upper(state, lower, read.limit), current.parts
        )
        self._chains.setdefault(state, deque()).append(window)
        self._queries += len(window.parts)
        return window

    def take(self, read: Read) -> Window | None:
        """The window of a read whose turn has come, if there is one; what does not fit it is dropped."""
        chain = self._chains.get(read.state)
        if chain is None:
            return None
        if not chain[0].is_for(read):
            self.forget(read.state)
            return None
        window = chain.popleft()
        if not chain:
            del self._chains[read.state]
        self._queries -= len(window.parts)
        self.used += 1
        return window

    def keep(self, window: Window, event: ReadEvent) -> bool:
        """Hold what has come before its turn; False if nobody will want it."""
        if window not in self._chains.get(window.state, ()):
            return False
        if isinstance(event, ReadFailed):
            now = self._clock()
            self._resting = {state: until for state, until in self._resting.items() if until > now}
            self._resting[window.state] = now + REST_SECONDS
            self.forget(window.state)
            return False
        window.came.append(event)
        return True

    def forget(self, state: GroupState) -> None:
        for window in self._chains.pop(state, ()):
            self._queries -= len(window.parts)
            self._log.cancel(window)
            for event in window.came:
                self._log.consumed(event)

    def forget_unread(self) -> None:
        """The planner gave what there is to read: whoever is not read now will not be for a while."""
        for state in [state for state in self._chains if state.reading is None]:
            self.forget(state)

    def clear(self) -> None:
        for state in list(self._chains):
            self.forget(state)

    def _is_hot(self, read: Read) -> bool:
        state = read.state
        if not self._widths.flooded(state) or len(read.streams) < len(state.group.streams):
            return False
        until = self._resting.get(state)
        return until is None or until <= self._clock()
