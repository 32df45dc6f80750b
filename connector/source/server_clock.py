"""What time it is for those who write: the servers' clocks, read by this machine's monotonic one.

In: samples, what each server said and when. Out: the time by the clock that is most behind, by the one that is most
ahead, and which servers have another time than most.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from statistics import median

log = logging.getLogger(__name__)

SKEW_WARNING_MS = 1_000
# More than an answer may take that tells the time.
APART_SECONDS = 10.0


class ServerClock:
    """The servers' time, as a lower bound, and what the one that is most ahead says.

    A row is safe to read when *the servers* are past it by the confidence window. Each sample says: at the moment the
    answer arrived, that server's clock stood at least here; of several servers the one that is most behind counts.
    Without a sample the local clock serves.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self._bases: dict[str, float] = {}
        self._warned = False

    def sampled(self, host: str, server_ms: int) -> None:
        self._bases[host] = server_ms - self._monotonic() * 1000

    def keep(self, hosts: Collection[str]) -> None:
        """Forget the samples of servers that are gone: what theirs say now, nobody knows. Those of the others are there
        by now, so that it can be told whether it is this machine's clock that is wrong."""
        self._bases = {host: base for host, base in self._bases.items() if host in hosts}
        skew = self.skew_ms
        # Where it is between theirs, it is not this one that is wrong.
        ours_is_apart = skew > 0 or self.latest_ms() < self._wall() * 1000
        if abs(skew) > SKEW_WARNING_MS and ours_is_apart and not self._warned:
            self._warned = True
            log.warning("this machine's clock is %+.1f s off the servers'; using the servers' clock", -skew / 1000)

    def now_ms(self) -> int:
        if not self._bases:
            return int(self._wall() * 1000)
        return int(min(self._bases.values()) + self._monotonic() * 1000)

    def latest_ms(self) -> int:
        """By the clock that is most ahead: what was written until now has hardly a later time."""
        if not self._bases:
            return int(self._wall() * 1000)
        return int(max(self._bases.values()) + self._monotonic() * 1000) + 1

    def apart(self) -> dict[str, float]:
        """Whose time is not that of most others, this machine among them, and by how many seconds it is ahead."""
        here = (self._wall() - self._monotonic()) * 1000
        usual = median([here, *self._bases.values()])
        seconds = {host: (base - usual) / 1000 for host, base in self._bases.items()}
        return {host: ahead for host, ahead in seconds.items() if abs(ahead) > APART_SECONDS and len(seconds) > 1}

    @property
    def skew_ms(self) -> float:
        """Servers' time minus ours."""
        return self.now_ms() - self._wall() * 1000
