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


def committed_in(plan: TableState, slot: int) -> int | None:
    """Everything before this ms in a slot that is not read here is committed; None: it has no streams that are
    read, or nothing is known of it."""
    reached = [(state.close, plan.committed_up_to(state)) for state in plan.lineage.groups(slot)]
    return min((at for close, at in reached if at >= 0 and (close is None or at < close)), default=None)


def slots_stand(plan: TableState) -> dict[int, int]:
    """Of each claimed slot that has streams to read, before which ms all of them are."""
    found: dict[int, int] = {}
    for slot in plan.active:
        places = [state.read_to for state in plan.awake_in(slot) if not state.drained]
        silence = plan.silences.get(slot)
        if silence is not None and silence.groups:
            places.append(silence.level)
        if places:
            found[slot] = min(places)
    return found


def _undrained(plan: TableState) -> Iterator[GroupState]:
    return (state for state in plan.all_awake() if not state.drained)
