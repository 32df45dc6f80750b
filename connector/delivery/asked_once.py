"""What a command asks of Kafka once: it is asked again while brokers start, end, and elect each other.

In: a call. Out: its answer; its error, if that lasts.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from connector.errors import DeliveryError, RetriableDeliveryError

log = logging.getLogger(__name__)

# Less than it takes to find that nobody is there: that is said once it is known.
PASSING_SECONDS = 14.0
PAUSE_SECONDS = 0.3

T = TypeVar("T")


def patiently(call: Callable[[], T], *also: type[DeliveryError]) -> T:
    """``also``: errors besides `RetriableDeliveryError` after which it may be done once more. For those who end with an
    error otherwise; whoever goes on by turns has patience of its own."""
    passing: tuple[type[DeliveryError], ...] = (RetriableDeliveryError, *also)
    deadline, told = time.monotonic() + PASSING_SECONDS, False
    while True:
        try:
            return call()
        except passing as error:
            if time.monotonic() >= deadline:
                raise
            if not told:
                log.info("%s; trying again", error)
            told = True
        time.sleep(PAUSE_SECONDS)
