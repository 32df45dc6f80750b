"""A table's progress, for `status`, lag and the warnings about expiry: a `TableState` in, plain values out."""

from __future__ import annotations

from collections.abc import Iterator

from connector.topology.groups import GroupState
from connector.topology.offsets import Position
from connector.topology.table_state import TableState


def visible_to(plan: TableState) -> int | None:
    """Everything before this ms in the claimed slots can be read in Kafka; None: nothing is being read."""
    states = [*_undrained(plan), *(state for state in plan.fresh if state.drained)]
    return min(map(plan.visible_to, states), default=None)


def older_than(plan: TableState, ms: int) -> Iterator[tuple[bytes, Position]]:
    """Own streams that stand before ``ms``: with now - ttl, those whose next rows may have expired unread."""
    for state in _undrained(plan):
        if state.read_to < ms:
            for stream in state.group.streams:
                position = state.position(stream)
                if position.read_to < ms:
                    yield stream, position


def nothing_left(plan: TableState) -> bool:
    """There is something to read in the claimed slots, and all of it is FAILED or waits for what is."""
    if plan.failure is not None:
        return bool(plan.active)
    states = list(_undrained(plan))
    return bool(states) and all(state.failure is not None or _hopeless(plan, state) for state in states)


def _hopeless(plan: TableState, state: GroupState) -> bool:
    """Behind a failure, at any distance: a child of a child of a failed stream waits for ever as well."""
    seen: set[int] = set()
    while id(state) not in seen:
        seen.add(id(state))
        shut = plan.blocking(state) if state.gates else None
        if shut is None or state.read_to < shut[0].at:
            return False
        state = shut[1]
        if state.failure is not None:
            return True
    return False


def _undrained(plan: TableState) -> Iterator[GroupState]:
    for slot in sorted(plan.active):
        yield from (state for state in plan.lineage.groups(slot) if not state.drained)
