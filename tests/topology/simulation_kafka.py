"""An in-memory model of what the planner sees of Kafka: transactions, a compacted topic, fencing.

Only what can hurt is modelled: records become visible per partition, when that partition's commit marker is written,
which is later than the decision and different for each partition; readers stop at the first undecided transaction; a
member that was thrown out does not know it until it tries to commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from connector.offsets_entry import OffsetsEntry
from tests.topology.worlds import Row


class State(Enum):
    OPEN = 0
    PREPARED = 1
    COMMITTED = 2
    ABORTED = 3


@dataclass(eq=False)
class Transaction:
    owner: str
    state: State = State.OPEN
    slots: frozenset[int] = frozenset()
    partitions: set[int] = field(default_factory=set)
    markers: set[int] = field(default_factory=set)
    fenced: bool = False

    @property
    def decided(self) -> bool:
        return self.state in (State.COMMITTED, State.ABORTED)

    def visible(self, partition: int) -> bool:
        return self.state is State.COMMITTED and partition in self.markers

    def undecided(self, partition: int) -> bool:
        """To a reader of the partition: it stops in front of records of such a transaction."""
        return not self.decided or partition not in self.markers


@dataclass(frozen=True, slots=True)
class Stored:
    slot: int
    key: Mapping[str, Any]
    value: Mapping[str, Any] | None
    transaction: Transaction
    text: str

    @property
    def place(self) -> str:
        return f"slot {self.slot}"


class Kafka:
    """The offsets topic, the data topic and the group."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.partitions: list[list[Stored | None]] = [[] for _ in range(slots)]
        self.data: list[tuple[Transaction, Row]] = []
        self.refused: list[tuple[Transaction, Row]] = []
        self.transactions: list[Transaction] = []
        self.members: set[str] = set()
        self.epochs: dict[str, int] = {}

    # -- transactions ----------------------------------------------------------------------------------------

    def begin(self, owner: str, epoch: int) -> Transaction:
        # A producer's next transaction begins when its last one is completely written.
        for old in self.transactions:
            if old.owner == owner and old.decided:
                self.write_markers(old)
        transaction = Transaction(owner, fenced=self.epochs.get(owner, 0) != epoch)
        self.transactions.append(transaction)
        return transaction

    def produce_entry(self, transaction: Transaction, entry: OffsetsEntry) -> bool:
        if transaction.fenced or transaction.decided:
            return False
        transaction.partitions.add(entry.slot)
        text = repr(list(entry.key.items()))
        self.partitions[entry.slot].append(Stored(entry.slot, entry.key, entry.value, transaction, text))
        return True

    def produce_row(self, transaction: Transaction, row: Row) -> bool:
        if transaction.fenced or transaction.decided:
            return False
        self.data.append((transaction, row))
        return True

    def refuse_row(self, transaction: Transaction, row: Row) -> None:
        """Counted and reported instead of delivered."""
        if not transaction.fenced and not transaction.decided:
            self.refused.append((transaction, row))

    def send_offsets(self, transaction: Transaction, slots: frozenset[int]) -> bool:
        """Fenced by the group: refused from whoever is no member, or names a slot that somebody else owns."""
        if transaction.fenced or transaction.decided:
            return False
        if slots and transaction.owner not in self.members:
            return False
        transaction.slots = slots
        transaction.state = State.PREPARED
        return True

    def commit(self, transaction: Transaction) -> bool:
        if transaction.fenced or transaction.decided:
            return False
        transaction.state = State.COMMITTED
        return True

    def abort(self, transaction: Transaction) -> bool:
        if transaction.fenced or transaction.state is State.COMMITTED:
            return False
        transaction.state = State.ABORTED
        self.write_markers(transaction)
        return True

    def write_markers(self, transaction: Transaction) -> None:
        transaction.markers |= transaction.partitions

    def fence(self, owner: str) -> int:
        """`init_transactions` with somebody's id: what he left open is aborted, what he committed is completed, and
        nothing that he sends later is accepted. The epoch of the new producer."""
        for transaction in self.transactions:
            if transaction.owner != owner or transaction.fenced:
                continue
            transaction.fenced = True
            if not transaction.decided:
                transaction.state = State.ABORTED
            self.write_markers(transaction)
        self.epochs[owner] = self.epochs.get(owner, 0) + 1
        return self.epochs[owner]

    # -- reading ---------------------------------------------------------------------------------------------

    def high_watermark(self, slot: int) -> int:
        return len(self.partitions[slot])

    def stable_offset(self, slot: int) -> int:
        for offset, record in enumerate(self.partitions[slot]):
            if record is not None and record.transaction.undecided(slot):
                return offset
        return len(self.partitions[slot])

    def committed(self, slot: int, start: int, end: int) -> list[Stored]:
        found = self.partitions[slot][start:end]
        return [record for record in found if record is not None and record.transaction.visible(slot)]

    def uncommitted(self, slot: int, start: int) -> list[Stored]:
        return [record for record in self.partitions[slot][start:] if record is not None]

    def pending(self, slot: int) -> bool:
        """What `committed()` of a read_committed consumer waits for."""
        return any(t.state is State.PREPARED and slot in t.slots for t in self.transactions)

    def compact(self, slot: int, below: int) -> None:
        """Drop what a later committed record with the same key replaces, below an offset."""
        newest: dict[str, int] = {}
        end = min(below, self.stable_offset(slot))
        partition = self.partitions[slot]
        for offset in range(end):
            record = partition[offset]
            if record is None:
                continue
            if not record.transaction.visible(slot):
                partition[offset] = None
                continue
            older = newest.get(record.text)
            if older is not None:
                partition[older] = None
            newest[record.text] = offset

    def delivered(self) -> list[Row]:
        """The data topic as a read_committed consumer sees it."""
        return [row for transaction, row in self.data if transaction.state is State.COMMITTED]

    def given_up(self) -> list[Row]:
        return [row for transaction, row in self.refused if transaction.state is State.COMMITTED]
