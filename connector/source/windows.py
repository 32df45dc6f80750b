"""How wide a read may be.

In: what the last reads of a group were like. Out: the upper end of the next one.

One paged query over everything that is missing is cheapest when little is there, so there is no window at first. Only a
window that held more than one page is evidence of a flood: from then on each read ends where its commit can follow
soon, and is so narrow that several of them, read at once, bring a few pages each. A read that timed out is cut to a
quarter, an empty one lets the next be four times as wide, and one that held half a page at most twice as wide: behind
a flood, many groups with a little in each window would cost a query per window and group until the present is reached.
"""

from __future__ import annotations

from dataclasses import dataclass

from connector.topology import GroupState

FACTOR = 4
LEAST_MS = 10

# What a window of a flood should hold. Of windows that are read before their turn as many pages wait in memory.
PAGES = 2

# A read of which so many pages came, and that has not ended, is broken off, and goes on in windows.
FLOOD_PAGES = 8


@dataclass(slots=True)
class WindowWidth:
    """The cap of one group's next window; None means "to the limit"."""

    configured_ms: int
    page_rows: int
    cap_ms: int | None = None
    #: Whether a few rows let the next be wider than configured. Not where the server needs long for few of them.
    by_rows: bool = True

    def upper(self, lower_ms: int, limit_ms: int) -> int:
        """Where a read from ``lower_ms`` ends; never beyond ``limit_ms``."""
        return limit_ms if self.cap_ms is None else min(limit_ms, lower_ms + self.cap_ms)

    def finished(self, width_ms: int, pages: int, rows: int) -> None:
        """A window of this width held so much."""
        if pages > 1:
            self.cap_ms = self._most
            if pages > PAGES:
                self.cap_ms = max(LEAST_MS, min(self.cap_ms, width_ms * PAGES // pages))
        elif self.cap_ms is None:
            return
        elif rows:
            # Two pages next time at most; what is configured is for windows that hold more than one.
            few = self.by_rows and 2 * rows <= self.page_rows
            wider = 2 * self.cap_ms
            self.cap_ms = wider if few else max(self.cap_ms, min(wider, self.configured_ms))
        else:
            self.cap_ms *= FACTOR
        if self.cap_ms > self.configured_ms * FACTOR**8:
            self.cap_ms = None

    def broken_off(self, width_ms: int | None, pages: int) -> None:
        """``width_ms``: how far a read came in so many pages, where that is known; there was more to come."""
        narrower = self._most // FACTOR if width_ms is None else width_ms * PAGES // pages
        self.cap_ms = max(LEAST_MS, min(self._most, narrower))

    def timed_out(self, width_ms: int) -> None:
        """``width_ms``: how wide the read was that did not get through."""
        self.cap_ms = max(LEAST_MS, min(width_ms, self.cap_ms or width_ms) // FACTOR)
        self.by_rows = False

    @property
    def _most(self) -> int:
        return self.configured_ms if self.cap_ms is None else min(self.cap_ms, self.configured_ms)


class Widths:
    """Of all groups of one process that have one."""

    def __init__(self, configured_ms: int, page_rows: int) -> None:
        self._configured_ms, self._page_rows = configured_ms, page_rows
        self._of: dict[GroupState, WindowWidth] = {}

    def upper(self, state: GroupState, lower_ms: int, limit_ms: int) -> int:
        """Where a read from ``lower_ms`` ends; never beyond ``limit_ms``."""
        width = self._of.get(state)
        return limit_ms if width is None else width.upper(lower_ms, limit_ms)

    def flooded(self, state: GroupState) -> bool:
        """Its last reads held more than a page, and it has more to read than a window holds."""
        return state in self._of

    def finished(self, state: GroupState, width_ms: int, pages: int, rows: int) -> None:
        """A read has ended, of as many pages as one query had."""
        if pages > 1 or state in self._of:
            width = self._width(state)
            width.finished(width_ms, pages, rows)
            if width.cap_ms is None:
                del self._of[state]

    def may_narrow(self, state: GroupState) -> bool:
        width = self._of.get(state)
        return width is None or width.cap_ms is None or width.cap_ms > LEAST_MS

    def broken_off(self, state: GroupState, width_ms: int | None, pages: int) -> None:
        self._width(state).broken_off(width_ms, pages)

    def timed_out(self, state: GroupState, width_ms: int) -> None:
        self._width(state).timed_out(width_ms)

    def forget_drained(self) -> None:
        self._of = {state: width for state, width in self._of.items() if not state.drained}

    def _width(self, state: GroupState) -> WindowWidth:
        return self._of.setdefault(state, WindowWidth(self._configured_ms, self._page_rows))
