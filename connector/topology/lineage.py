"""The lineage of one table's streams: every group that is not yet forgotten, by slot, and whom each had to
wait for.

In: node views of the stream sets. Out: `GroupState`s, closed and opened and gated as the sets followed each
other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from connector.table_name import TableName
from connector.topology.groups import Gate, GroupState
from connector.topology.sets import StreamGroup, StreamSet
from connector.topology.slots import slot_of
from connector.topology.transitions import transition


class Observed(Enum):
    """What one poll of the stream sets was worth."""

    FRESH = "fresh"
    STALE = "stale"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class View:
    """One node's answer: all timestamps it lists, and the sets of those that `TableReader.wanted` asked for."""

    timestamps: tuple[int, ...]
    sets: Mapping[int, StreamSet] = field(default_factory=dict)


class Lineage:
    """``base`` is the first set that was applied; ``trimmed`` says that older ones were listed but not
    needed."""

    def __init__(self, table: TableName, slots: int) -> None:
        self.table = table
        self.slots = slots
        self.newest: StreamSet | None = None
        self.oldest_listed: int | None = None
        self.base = 0
        self.trimmed = False
        self.by_slot: dict[int, list[GroupState]] = {}
        self._open: dict[bytes, GroupState] = {}
        self._closed: dict[int, dict[GroupState, None]] = {}

    def wanted(self, timestamps: Iterable[int], horizon: int | None) -> tuple[int, ...]:
        """The sets still to be fetched: all newer ones, at first from the one in force at the ``horizon``
        on."""
        ordered = sorted(set(timestamps))
        if self.newest is not None:
            return tuple(at for at in ordered if at > self.newest.timestamp)
        if horizon is None:
            return tuple(ordered)
        older = sum(at <= horizon for at in ordered)
        return tuple(ordered[max(0, older - 1) :])

    def observe(self, view: View) -> tuple[Observed, list[GroupState]]:
        """Take in a view; the groups that are new by it.

        A node's list is a prefix of the history, less what ttl made it forget in front. So of two lists the
        one that ends later is right, and what it lacks in front is old news. A log that was dropped and
        created again looks just like that, if all of its sets are newer: its old streams close where the new
        ones open, and are found empty. See `TableReader.identify`.
        """
        if not view.timestamps:
            return Observed.EMPTY, []
        # A node that does not know what another one told us cannot vouch for "nothing newer until now".
        if self.newest is not None and max(view.timestamps) < self.newest.timestamp:
            return Observed.STALE, []
        if self.newest is None:
            first = min(view.sets, default=min(view.timestamps))
            needed = tuple(sorted(at for at in set(view.timestamps) if at >= first))
        else:
            needed = self.wanted(view.timestamps, None)
        missing = [at for at in needed if at not in view.sets]
        if missing:
            raise ValueError(f"{self.table}: the view lacks the sets of {missing}")
        if self.newest is None:
            self.oldest_listed = min(view.timestamps)
            self.base = needed[0]
            self.trimmed = self.base > self.oldest_listed
        added: list[GroupState] = []
        for at in needed:
            added += self._apply(view.sets[at])
        return Observed.FRESH, added

    def _apply(self, new: StreamSet) -> list[GroupState]:
        if self.newest is None:
            self.newest = new
            # Of the oldest listed set nobody knows when its streams were opened: ttl may have cut off what
            # was before.
            return [self._add(group, new.timestamp, opened_known=False) for group in new.groups]
        change = transition(self.newest, new)
        before = dict(self._open)
        for group in change.closed:
            state = self._open.pop(group.streams[0])
            state.close_at(new.timestamp)
            self._closed.setdefault(state.slot, {})[state] = None
        added = [self._add(group, new.timestamp, opened_known=True) for group in change.opened]
        for group, sources in change.waits:
            waited_for = tuple(before[source.streams[0]] for source in sources)
            heir = self._open[group.streams[0]]
            self._shut(heir, Gate(new.timestamp, waited_for))
            for source in waited_for:
                source.heirs.append(heir)
        self.newest = new
        return added

    def _add(self, group: StreamGroup, opened: int, opened_known: bool) -> GroupState:
        slot = slot_of(self.table, group.range_end, self.slots)
        state = GroupState(group, slot, opened, opened_known)
        self._open[group.streams[0]] = state
        self.by_slot.setdefault(slot, []).append(state)
        return state

    def _shut(self, state: GroupState, gate: Gate) -> None:
        state.stir()
        state.gates.append(gate)
        for source in gate.before:
            source.stir()
            # Whoever waits in another slot may wait in another worker, which sees only what is committed.
            if source.slot != state.slot and gate.at not in source.watched:
                source.watched.append(gate.at)

    def groups(self, slot: int) -> list[GroupState]:
        return self.by_slot.get(slot, [])

    @property
    def open(self) -> Iterable[GroupState]:
        """Those of the newest set."""
        return self._open.values()

    def closed(self, slot: int) -> list[GroupState]:
        """Those that have ended: few, but for some time after a change of all streams."""
        return list(self._closed.get(slot, ()))

    @property
    def any_closed(self) -> bool:
        return any(self._closed.values())

    def forget(self, done: Callable[[GroupState], bool]) -> list[StreamGroup]:
        """Drop the closed groups that are ``done``. Gates that name one keep it alive until they have
        opened."""
        forgotten: list[StreamGroup] = []
        for slot, closed in self._closed.items():
            gone = {state for state in closed if done(state)}
            if gone:
                for state in gone:
                    # Gates may still ask it, also after its slot has become ours.
                    state.read_ended(state.group.streams, state.close or state.opened)
                forgotten += [state.group for state in closed if state in gone]
                self._closed[slot] = {state: None for state in closed if state not in gone}
                self.by_slot[slot] = [state for state in self.by_slot[slot] if state not in gone]
        return forgotten
