"""A table's progress, for `status` and lag: a `TableState` in, a time out."""

from __future__ import annotations

from collections.abc import Iterator

from connector.topology.groups import GroupState
from connector.topology.table_state import TableState


def visible_to(plan: TableState) -> int | None:
    """Everything before this ms in the claimed slots can be read in Kafka; None: nothing is being read."""
    if plan.asleep and not plan.fresh and plan.silent_to is not None:
        return plan.silent_to
    states = [*_undrained(plan), *(state for state in plan.fresh if state.drained)]
    levels = (silence.level for silence in plan.silences.values() if silence.groups)
    return min([*map(plan.visible_to, states), *levels], default=None)


def _undrained(plan: TableState) -> Iterator[GroupState]:
    return (state for state in plan.all_awake() if not state.drained)
