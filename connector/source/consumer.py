"""Who takes what reading finds: those that deliver it, and those that only have to know of it.

In: complete batches, in each stream's order. Out: how many of them count as produced, or why none does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from connector.changes import Batch
from connector.errors import CdcError
from connector.topology import Read


class Postponed(CdcError):
    """Nothing of a read can be delivered at present: it is begun anew after a pause, and others go on."""


class Consumer(Protocol):
    """Whoever delivers."""

    def deliver(self, read: Read, batches: Sequence[Batch]) -> int:
        """Called with complete batches, in each stream's order. How many of them, from the first, now count as
        produced: at least one.

        Raises Postponed, or PoisonRow if the first cannot be delivered unless somebody mends what is wrong: its group
        is FAILED, and tried again much later. Any other exception goes through to the caller of `Reading.handle`, and
        none of the batches counts.
        """

    def forgive(self) -> None:
        """FAILED groups are tried again: what made them fail may be mended."""


class Onlooker(Protocol):
    """Whoever has to know every change that is delivered."""

    def delivered(self, read: Read, batches: Sequence[Batch]) -> None:
        """These now count as produced."""
