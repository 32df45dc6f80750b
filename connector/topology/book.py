"""The book of slots: which slots are ours, what is committed in each, and how far that may be believed.

Shared by all tables of one worker. `Planner` writes it, `TableReader` reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from connector.offsets_entry import OffsetsEntry
from connector.table_name import TableName
from connector.topology.ledger import Ledger, SlotLedger


class SlotBook:
    """Two views per slot: ``own`` of slots that were restored and are ours, ``followed`` of what became
    visible of any."""

    def __init__(self, slots: int, owner: str) -> None:
        self.slots = slots
        self.owner = owner
        self.own: dict[int, SlotLedger] = {}
        self._followed = [SlotLedger(slots) for _ in range(slots)]
        self._pending: dict[int, list[OffsetsEntry]] = {}
        self._caught_up: set[int] = set()
        #: Counts whatever may give any table something to do that it had not to do before: not what takes from it.
        self.stirs = 0

    def restore(self, slot: int, records: Iterable[OffsetsEntry]) -> None:
        self.stirs += 1
        ledger = self.own[slot] = SlotLedger(self.slots)
        for record in records:
            ledger.take(record)

    def release(self, slot: int) -> None:
        """Nothing is known of it until it is followed: what was committed in it meanwhile need not have been."""
        self.own.pop(slot, None)
        self._caught_up.discard(slot)

    def follow(self, records: Iterable[OffsetsEntry], caught_up: Collection[int]) -> set[int]:
        """Take in what became visible; the slots of which something new may be used.

        Records of a slot that is not read to its end wait until it is. In a compacted topic an early mark can stand
        before the only remaining copy of a position that lies below it, so a prefix that ends between the two promises
        more than was ever true. Its end is the end at the moment of reading: up to a high watermark that was noted
        earlier, compaction may meanwhile have taken positions away in favour of copies behind it.
        """
        self.stirs += 1
        for record in records:
            if record.slot < self.slots:
                self._pending.setdefault(record.slot, []).append(record)
        at_end = {slot for slot in caught_up if slot < self.slots}
        changed = at_end - self._caught_up
        self._caught_up |= at_end
        for slot in [slot for slot in self._pending if slot in at_end]:
            for record in self._pending.pop(slot):
                self._followed[slot].take(record)
            changed.add(slot)
        return changed

    def follow_anew(self) -> None:
        """What was followed may have holes: it counts for nothing until each slot is read to its end again."""
        self._followed = [SlotLedger(self.slots) for _ in range(self.slots)]
        self._pending.clear()
        self._caught_up.clear()

    def ledger(self, slot: int, table: TableName) -> Ledger | None:
        """What is committed for ``table`` in ``slot``; None while that is not known (see `follow`)."""
        own = self.own.get(slot)
        if own is not None:
            return own.table(table)
        if slot in self._caught_up:
            return self._followed[slot].table(table)
        return None

    @property
    def all_known(self) -> bool:
        return len(self._caught_up | self.own.keys()) == self.slots

    def ledgers(self, table: TableName) -> list[Ledger]:
        """The known ledgers of a table."""
        found = (self.ledger(slot, table) for slot in range(self.slots))
        return [ledger for ledger in found if ledger is not None]
