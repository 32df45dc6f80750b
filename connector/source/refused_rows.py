"""Rows of snapshots that are refused: which groups rest until they are tried again, and what is said of each table.

In: reads of groups that failed, worked or are begun. Out: whether a group rests; per table, the first of its troubles,
as long as there is one. Of rows that nobody gets, as their replica is away or a partition is too much for the servers,
neither the rest of the table nor other tables hear: each such group rests by itself, for longer each time, and one of
them is tried at a time, so that there is always a place for others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from connector.pauses import doubled
from connector.source.background import FIRST_PAUSE, LONGEST_PAUSE, SOURCE, Background, Purpose, explained
from connector.table_name import TableName
from connector.topology import GroupState, Opening

SNAPSHOTS = Purpose(
    "snapshots",
    "rows of a snapshot are not read",
    "they are not in the topic yet; changes are delivered as ever",
    holds=False,
    behind=SOURCE,
)

# A group whose rows are refused again and again.
LONGEST_REST = 60.0


@dataclass(slots=True)
class _Refused:
    table: TableName
    words: str
    times: int = 0
    until: float = 0.0


class RefusedRows:
    """Of one process. Times are the caller's monotonic seconds."""

    def __init__(self, background: Background) -> None:
        background.expect(SNAPSHOTS)
        self._background = background
        self._groups: dict[GroupState, _Refused] = {}
        # What was read and cannot be delivered, by the first of its tokens.
        self._undelivered: dict[tuple[GroupState, int], _Refused] = {}
        # A table of which nothing was read since so many failures may be refused as a whole: it rests as well.
        self._in_a_row: Counter[TableName] = Counter()
        self._rests: dict[TableName, float] = {}
        self._trying: GroupState | None = None

    def rests(self, opening: Opening, now: float) -> bool:
        """Whether it is not to be read now."""
        if now < self._rests.get(opening.table, now):
            return True
        refused = self._groups.get(opening.state)
        return refused is not None and (now < refused.until or self._trying is not None)

    def begun(self, opening: Opening) -> None:
        if opening.state in self._groups:
            self._trying = opening.state

    def ended(self, opening: Opening) -> None:
        """It was answered, or is not wanted any more."""
        if self._trying is opening.state:
            self._trying = None

    def failed(self, opening: Opening, which: str | None, error: BaseException, now: float) -> None:
        """``which``: the rows that were asked for, where others may be read."""
        table = opening.table
        words = explained(error) if which is None else f"{which}: {explained(error)}"
        refused = self._groups.setdefault(opening.state, _Refused(table, words))
        refused.words, refused.times = words, refused.times + 1
        refused.until = now + doubled(FIRST_PAUSE, refused.times, LONGEST_REST)
        self._in_a_row[table] += 1
        self._rests[table] = now + doubled(FIRST_PAUSE, self._in_a_row[table], LONGEST_PAUSE)
        task = self._background.task(SNAPSHOTS, table)
        # The error itself, where it is one that nobody foresaw: its trace is logged.
        task.failed(error if which is None else self._said(table) or words)

    def worked(self, opening: Opening) -> None:
        """Rows of it were read."""
        self._rests.pop(opening.table, None)
        self._in_a_row.pop(opening.table, None)
        if self._groups.pop(opening.state, None) is not None:
            self._background.task(SNAPSHOTS, opening.table).is_now(self._said(opening.table))

    def not_delivered(self, opening: Opening, token: int, error: BaseException) -> None:
        self._undelivered[opening.state, token] = _Refused(opening.table, explained(error))
        self._background.task(SNAPSHOTS, opening.table).failed(error)

    def delivered(self, opening: Opening, concerns: Callable[[int], bool]) -> None:
        """All that can be of some tokens; what waits of others of the group goes on waiting."""
        over = [place for place in self._undelivered if place[0] is opening.state and concerns(place[1])]
        for place in over:
            del self._undelivered[place]
        if over:
            self._background.task(SNAPSHOTS, opening.table).is_now(self._said(opening.table))

    def keep(self, openings: Iterable[Opening]) -> None:
        """What nobody wants any more fails no longer."""
        wanted = {opening.state for opening in openings}
        tables = {self._groups.pop(state).table for state in [*self._groups] if state not in wanted}
        tables |= {self._undelivered.pop(place).table for place in [*self._undelivered] if place[0] not in wanted}
        for table in tables:
            said = self._said(table)
            if said is not None:
                self._background.task(SNAPSHOTS, table).is_now(said)
                continue
            self._background.task(SNAPSHOTS, table).dismiss()
            self._rests.pop(table, None)
            self._in_a_row.pop(table, None)

    def count(self, table: TableName) -> int:
        """Of how many groups rows are refused, not only once, or cannot be delivered."""
        refused = {state for state, each in self._groups.items() if each.table == table and each.times > 1}
        return len(refused | {state for (state, _), each in self._undelivered.items() if each.table == table})

    def _said(self, table: TableName) -> str | None:
        """The trouble that lasts the longest, and how many others there are."""
        there = [each for each in (*self._undelivered.values(), *self._groups.values()) if each.table == table]
        if not there:
            return None
        return there[0].words + (f" (and {len(there) - 1} more ranges)" if len(there) > 1 else "")
