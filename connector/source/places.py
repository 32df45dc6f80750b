"""Who may have how many queries under way: a table whose log does not answer leaves places for the others.

In: what each table has under way, reads that it wants to begin. Out: those that may begin now; others wait here, in
turn. A table may take up to `SHARE` times what is free at the moment: one that takes all it can get leaves a fifth, two
leave a ninth, and so on. None can take everything, however many streams it has, and however far it is behind.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator

from connector.table_name import TableName
from connector.topology import Read

SHARE = 4


class Places:
    """Of one process."""

    def __init__(self) -> None:
        self._alone = False
        self._free = 0
        self._busy: Counter[TableName] = Counter()
        self._waiting: dict[TableName, deque[Read]] = {}

    def count(self, free: int, busy: Iterable[tuple[TableName, int]], *, alone: bool) -> None:
        """At the beginning of a round: places that are free, queries of each table. ``alone``: there is no other."""
        self._alone, self._free = alone, free
        self._busy.clear()
        for table, queries in busy:
            self._busy[table] += queries

    def admits(self, read: Read) -> bool:
        """Whether it may begin; else it waits."""
        if self.has_room(read.table):
            return True
        self._waiting.setdefault(read.table, deque()).append(read)
        return False

    def take(self, table: TableName, queries: int) -> None:
        self._busy[table] += queries
        self._free -= queries

    def waited(self) -> Iterator[Read]:
        """Those that waited and may begin now."""
        for table, waiting in list(self._waiting.items()):
            while waiting and self.has_room(table):
                yield waiting.popleft()
            if not waiting:
                del self._waiting[table]

    def keep(self, wanted: Callable[[Read], bool]) -> None:
        """Drop what nobody wants any more."""
        self._waiting = {table: deque(filter(wanted, waiting)) for table, waiting in self._waiting.items()}

    def has_room(self, table: TableName) -> bool:
        """Whether it may take one more."""
        return self._alone or self._busy[table] < max(1, SHARE * self._free)
