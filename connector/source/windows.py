"""How wide a read may be.

In: what the last reads of a group were like. Out: the upper end of the next one.

One paged query over everything that is missing is cheapest when little is there, so there is no window at first. Only a
window that held more than one page is evidence of a flood: from then on each read ends where its commit can follow
soon. A read that timed out is cut to a quarter, an empty one lets the next be four times as wide.
"""

from __future__ import annotations

from dataclasses import dataclass

FACTOR = 4
LEAST_MS = 10


@dataclass(slots=True)
class WindowWidth:
    """The cap of one group's next window; None means "to the limit"."""

    configured_ms: int
    cap_ms: int | None = None

    def upper(self, lower_ms: int, limit_ms: int) -> int:
        """Where a read from ``lower_ms`` ends; never beyond ``limit_ms``."""
        return limit_ms if self.cap_ms is None else min(limit_ms, lower_ms + self.cap_ms)

    def finished(self, pages: int, rows: int) -> None:
        if pages > 1:
            self.cap_ms = self.configured_ms if self.cap_ms is None else min(self.cap_ms, self.configured_ms)
        elif rows == 0 and self.cap_ms is not None:
            self.cap_ms *= FACTOR
            if self.cap_ms > self.configured_ms * FACTOR**8:
                self.cap_ms = None

    def timed_out(self, width_ms: int) -> None:
        """``width_ms``: how wide the read was that did not get through."""
        self.cap_ms = max(LEAST_MS, min(width_ms, self.cap_ms or width_ms) // FACTOR)
