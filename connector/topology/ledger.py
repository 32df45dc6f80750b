"""Ledgers: what is committed for one table in one slot, and the one rule for where a stream therefore starts.

Entries go in, in the order of the slot's partition; any prefix of them makes a ledger that claims no more
than was delivered.
"""

from __future__ import annotations

from connector.errors import FatalDeliveryError
from connector.offsets_entry import OffsetsEntry
from connector.table_name import TableName
from connector.topology.offsets import (
    EntryKey,
    Mark,
    MarkKey,
    Position,
    PositionKey,
    Reached,
    Snapshot,
    SnapshotKey,
    known_key,
    mark_entry,
    parse_mark,
    parse_position,
    parse_progress,
    parse_snapshot,
    position_entry,
)


class Ledger:
    """One table in one slot: its mark, and the positions of the streams that deviate from it.

    ``snapshots`` by their names are in the table's home slot; ``done`` says of each how far it got behind a token.
    ``broken``: entries that something else has written over, and why they cannot be read. With one of them nothing is
    known of the table in this slot: neither where to go on, nor what is delivered.
    """

    __slots__ = ("broken", "done", "mark", "positions", "snapshots")

    def __init__(self) -> None:
        self.broken: dict[object, str] = {}
        self.mark: Mark | None = None
        self.positions: dict[bytes, Position] = {}
        self.snapshots: dict[str, Snapshot] = {}
        self.done: dict[tuple[str, int], Reached] = {}


class SlotLedger:
    """One slot: a `Ledger` per table that has entries there, tables unknown to the configuration included."""

    __slots__ = ("slots", "tables")

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.tables: dict[TableName, Ledger] = {}

    def table(self, table: TableName) -> Ledger:
        ledger = self.tables.get(table)
        if ledger is None:
            ledger = self.tables[table] = Ledger()
        return ledger

    def entries(self, slot: int, table: TableName) -> list[OffsetsEntry]:
        """The mark and the positions of a table, as they were taken in."""
        ledger = self.tables.get(table)
        if ledger is None or ledger.mark is None:
            return []
        positions = [position_entry(slot, PositionKey(table, stream), at) for stream, at in ledger.positions.items()]
        return [mark_entry(MarkKey(table, slot, self.slots), ledger.mark), *positions]

    def take(self, record: OffsetsEntry) -> None:
        """Take one entry in. One that cannot be read holds up its own table in this slot, and nobody else."""
        key = known_key(record)
        if key is None:
            return
        ledger = self.table(key.table)
        ledger.broken.pop(key, None)
        try:
            self._put(key, record)
        except FatalDeliveryError as error:
            ledger.broken[key] = str(error)

    def _put(self, key: EntryKey, record: OffsetsEntry) -> None:
        ledger = self.table(key.table)
        if isinstance(key, MarkKey):
            # Marks for another number of slots speak about other streams.
            if key.slots != self.slots:
                return
            ledger.mark = None if record.value is None else parse_mark(record.value, record.place)
        elif isinstance(key, PositionKey):
            if record.value is None:
                ledger.positions.pop(key.stream, None)
            else:
                ledger.positions[key.stream] = parse_position(record.value, record.place)
        elif isinstance(key, SnapshotKey):
            if record.value is None:
                ledger.snapshots.pop(key.snapshot, None)
            else:
                ledger.snapshots[key.snapshot] = parse_snapshot(record.value, record.place)
        elif record.value is None:
            ledger.done.pop((key.snapshot, key.behind), None)
        else:
            ledger.done[key.snapshot, key.behind] = parse_progress(record.value, record.place)


def start_of(
    ledger: Ledger, stream: bytes, opened: int, closed: int | None, opened_known: bool = True
) -> Position | None:
    """Where reading ``stream`` has to begin by what is committed; None while the slot has no mark: nothing is
    known.

    None as well where an entry cannot be read.

    - Its position, if it has one.
    - A stream opened after the mark's set was never taken into account by the mark's writer, whose mark may
      have passed the opening unknowingly (a node hid the newer set from it): it starts where it opened, not
      at the mark.
    - Otherwise the mark.
    - Never behind its close. A closed stream is drained exactly when this equals its close.

    ``opened_known`` is false for streams of the oldest listed set: ttl may have made the server forget when
    they were really opened, so a mark below the listing is believed rather than the listing.
    """
    mark = ledger.mark
    if mark is None or ledger.broken:
        return None
    position = ledger.positions.get(stream)
    if position is None:
        if opened > mark.stream_set:
            read_to = max(opened, mark.start)
            if not opened_known:
                read_to = min(read_to, mark.read_to)
        else:
            read_to = max(opened, mark.read_to) if opened_known else mark.read_to
        position = Position(read_to)
    if closed is not None and position.read_to >= closed:
        return Position(closed)
    return position
