"""Whether brokers hold answers back, because a client uses more than a quota gives it.

In: what clients say of their answers. Out: the cause of whatever takes long, for as long as it is of now.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import ThrottleEvent

# Shorter pauses than that hold nobody up.
LEAST_SECONDS = 1.0

# A client that is throttled says so again with each answer.
OF_NOW_SECONDS = 60.0


class Throttling:
    """Of the clients of one process; each of them tells it in whichever thread serves it."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._last: tuple[float, str] | None = None

    def heard(self, event: ThrottleEvent) -> None:
        if event.throttle_time >= LEAST_SECONDS:
            text = f"a quota: {event.broker_name} has held an answer back for {event.throttle_time:.0f} s"
            self._last = self._monotonic(), f"{text} (producer_byte_rate, consumer_byte_rate or request_percentage)"

    @property
    def cause(self) -> str | None:
        last = self._last
        return None if last is None or self._monotonic() - last[0] >= OF_NOW_SECONDS else last[1]
