"""Roles: what each user of the planner may ask of it and tell it. `Planner` plays all of them, and is the only way to
change anything of a table's plan.

Whoever is given a planner takes the role it needs, so that its signature says what it changes: the watch the sets, the
readers their reads, transactions what is committed, the worker its slots.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from connector.offsets_entry import OffsetsEntry
from connector.table_name import TableName
from connector.topology.arcs import Arc
from connector.topology.commits import Commit
from connector.topology.groups import Read, Sweep
from connector.topology.lineage import Observed, View
from connector.topology.looks import Held
from connector.topology.offsets import Inside
from connector.topology.snapshot_state import Event, Opening, Span, Wish
from connector.topology.table_state import TableState


class Plan(Protocol):
    """Looking at it. ``voids`` counts how often reads were taken back; see `is_current`."""

    @property
    def tables(self) -> Mapping[TableName, TableState]: ...

    @property
    def owned(self) -> frozenset[int]: ...

    @property
    def voids(self) -> int: ...

    def is_current(self, read: Read) -> bool: ...


class KeptPlan(Plan, Protocol):
    """For who knows how long logs keep their rows."""

    def keeps(self, table: TableName, ttl: int, now: int) -> None: ...


class TablesPlan(Plan, Protocol):
    """For who says which tables are read."""

    def take_table(self, table: TableName) -> None: ...

    def drop_table(self, table: TableName) -> None: ...

    def stored(self, table: TableName) -> list[OffsetsEntry]: ...


class SetsPlan(Plan, Protocol):
    """For who watches the stream sets."""

    def is_former(self, table: TableName, log: str) -> bool: ...

    def identify(self, table: TableName, log: str, listed: Iterable[int]) -> bool: ...

    def wanted(self, table: TableName, listed: Iterable[int], now: int) -> tuple[int, ...]: ...

    def observe(self, table: TableName, view: View, polled_at: int) -> Observed: ...

    def fail_table(self, table: TableName, reason: str, gone: bool = False) -> None: ...

    def revive_table(self, table: TableName) -> None: ...


class ReadsPlan(Plan, Protocol):
    """For who reads."""

    def plan(self, now: int, count: int, narrowest: int = 1) -> list[Read]: ...

    def advance(self, read: Read, stream: bytes, time: bytes) -> bool: ...

    def finish(self, read: Read, read_to: int | None = None) -> bool: ...

    def interrupt(self, read: Read) -> None: ...

    def fail(self, read: Read, reason: str) -> None: ...

    def try_again(self, read: Read) -> bool: ...

    def sweeps(self, now: int, every_ms: int, but: Collection[TableName] = ()) -> list[Sweep]: ...

    def is_sweeping(self, sweep: Sweep) -> bool: ...

    def parts(self, sweep: Sweep, arc: Arc) -> Sequence[Arc]: ...

    def swept(
        self,
        sweep: Sweep,
        found: Mapping[bytes, int],
        narrowest: int = 1,
        through: Sequence[Arc] | None = None,
        pause_ms: int = 0,
    ) -> bool: ...

    def unswept(self, sweep: Sweep) -> None: ...


class LooksPlan(Plan, Protocol):
    """For who looks beyond the ends of closed streams."""

    def looks(self, now: int, count: int) -> list[Read]: ...

    def hold(self, read: Read, now: int) -> Held | None: ...

    def advance(self, read: Read, stream: bytes, time: bytes) -> bool: ...

    def finish_look(self, read: Read, found: bool, now: int) -> bool: ...

    def look_later(self, read: Read, at: int) -> None: ...


class SnapshotsPlan(Plan, Protocol):
    """For who places the rows of snapshots."""

    def openings(self, now: int) -> list[Opening]: ...

    def is_open(self, opening: Opening) -> bool: ...

    def stands(self, opening: Opening) -> int | None: ...

    def placed(self, opening: Opening, span: Span, inside: Inside | None = None) -> None: ...


class WishesPlan(Plan, Protocol):
    """For who hears what is wanted of snapshots, and tells what became of it."""

    def hear_from(self, number: int, topic: str | None = None) -> None: ...

    def wish(self, table: TableName, wish: Wish) -> None: ...

    def snapshot_events(self) -> list[Event]: ...


class CommitsPlan(Plan, Protocol):
    """For who commits."""

    def commit_due(self, now: int) -> bool: ...

    def commit_entries(self, now: int, move_marks: bool = False, idle_ms: int = 0) -> Commit: ...

    def committed(self) -> None: ...

    def aborted(self) -> None: ...

    def forget(self) -> list[int]: ...


class SlotsPlan(Plan, Protocol):
    """For who owns slots and follows those of others."""

    def restore(self, slot: int, records: Iterable[OffsetsEntry]) -> None: ...

    def need_snapshot(self, table: TableName, slot: int, since: int) -> None: ...

    def follow(self, records: Iterable[OffsetsEntry], caught_up: Collection[int]) -> None: ...

    def follow_anew(self) -> None: ...

    def release(self, slots: Iterable[int]) -> None: ...
