"""Whether anything that has landed ends by itself, as what was written with a TTL does: counted as it is appended, so
that no merge has to look through all changes for it.

In: appends, each with the number of TTLs in it. Out: whether that is known of all that is unmerged; and, once the first
TTL has come, a table whose readers look at the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from spark_jobs.model import Layout
from spark_jobs.tables import Known, LandedTable


class EndingCells:
    """Of one table, from a start of its stream to the next."""

    def __init__(self) -> None:
        #: Whether the layout says of all that is unmerged whether it ends by itself.
        self._known = False

    def begin(self, counted: bool) -> None:
        """``counted``: no append can come that this job has not made."""
        self._known = counted

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Within it something is appended, and counted: if that fails, nobody knows."""
        known, self._known = self._known, False
        yield
        self._known = known

    def in_merge(self, layout: Layout) -> bool | None:
        """Whether anything that is to be merged ends by itself; None where the merge has to look."""
        return layout.expiring if self._known else None

    def expected(self, landed: LandedTable, known: Known | None) -> Known | None:
        """The table once something in it ends by itself; None where that was so before, or its readers are never
        asked for the time."""
        if known is None or known.expiring or known.layout().images:
            return None
        landed.expect_ends(known.layout())
        return replace(known, expiring=True)
