"""How a table, a worker or a connector is doing, and which of two states an operator has to hear of first."""

from __future__ import annotations

from enum import Enum
from functools import total_ordering


@total_ordering
class State(Enum):
    """In rising order, so that `max` is the state of many together."""

    STOPPED = "STOPPED"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    FAILED = "FAILED"

    def __lt__(self, other: State) -> bool:
        order = list(State)
        return order.index(self) < order.index(other)

    @classmethod
    def _missing_(cls, value: object) -> State | None:
        """A worker of a newer version may have states that this one does not know: neither good nor final."""
        return cls.WAITING if isinstance(value, str) else None
