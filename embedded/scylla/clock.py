"""The server's clock: the machine's time plus an offset that tests can move, or a frozen time.

Everything in the server that asks for the time (write timestamps, TTL, stream sets, `now()`) asks this object, so that
moving it moves the whole server. In: seconds to move by, or a time to stand at. Out: microseconds since the epoch.
"""

from __future__ import annotations

import time


class Clock:
    """A movable wall clock. Ordinary time until somebody moves or freezes it."""

    __slots__ = ("_frozen_us", "_offset_us")

    def __init__(self) -> None:
        self._offset_us = 0
        self._frozen_us: int | None = None

    def now_us(self) -> int:
        """Microseconds since 1970-01-01."""
        if self._frozen_us is not None:
            return self._frozen_us
        return time.time_ns() // 1000 + self._offset_us

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01."""
        return self.now_us() // 1000

    def now_seconds(self) -> int:
        """Whole seconds since 1970-01-01: the resolution of TTLs."""
        return self.now_us() // 1_000_000

    @property
    def offset_us(self) -> int:
        """How far this clock stands from the machine's."""
        return self.now_us() - time.time_ns() // 1000

    @property
    def frozen(self) -> bool:
        return self._frozen_us is not None

    def move(self, delta_us: int) -> None:
        """Jump by this much, forwards or backwards; a frozen clock stays frozen at the new time."""
        if self._frozen_us is not None:
            self._frozen_us += delta_us
        else:
            self._offset_us += delta_us

    def set(self, now_us: int) -> None:
        """Jump to this time."""
        self.move(now_us - self.now_us())

    def freeze(self, at_us: int | None = None) -> None:
        """Stand still, at this time or at the present one."""
        self._frozen_us = self.now_us() if at_us is None else at_us

    def resume(self) -> None:
        """Run on from where the clock stands."""
        if self._frozen_us is not None:
            frozen, self._frozen_us = self._frozen_us, None
            self._offset_us = 0
            self._offset_us = frozen - self.now_us()

    def reset(self) -> None:
        """Back to the machine's time."""
        self._frozen_us = None
        self._offset_us = 0
