"""Sweeps: one look for rows in all the silent groups of a table, instead of a read of each.

In: a `TableState`, the time, which streams had rows. Out: `Sweep`s; silent groups that have moved on together, and
those in which something happens woken, to be read one by one.

A group without anything to remember may be swept: it is open, nothing waits for it, it waits for nothing, and what was
delivered of it is covered by its slot's mark. If the sweep finds no row of it, that says the same as a read that found
none: nothing lies before the sweep's ``limit``, and it moves there. From then on it shares its place with the other
silent groups of its slot, so that what it costs is its part of one query, and one number per slot.

A sweep also sees rows that are too young to be delivered. They are no reason to believe anything, but one to wake
their group and to read it when they are old enough. So sweeps may be a confidence window apart and delay nothing.

Of a sweep that was refused in parts, what got through counts. The other groups are read by themselves, and left out
(`arcs.py`) until they were answered and some time has passed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain

from connector.topology.arcs import Arc, around_refused, outside
from connector.topology.groups import GroupState, Silence, Sweep
from connector.topology.table_state import TableState

# A sweep passes by all groups, and finds rows in every one that is awake: it is worth it while so many times the silent
# ones are more than those.
WORTH = 8


def begin(plan: TableState, now: int) -> Sweep | None:
    """A sweep of all that is silent or may fall silent; None: there is nothing to be learnt by one now."""
    limit = plan.limit(now)
    if limit is None or plan.sweep is not None or plan.failure is not None:
        return None
    slots = plan.readable_slots()
    tired = [state for state in plan.all_awake() if state.slot in slots and may_rest(plan, state)]
    silences = [silence for slot, silence in plan.silences.items() if slot in slots and silence.groups]
    swept = len(tired) + sum(silence.groups for silence in silences)
    if swept * WORTH <= plan.awake - len(tired):
        wake_all(plan)
        return None
    lower = min([state.read_to for state in tired] + [silence.level for silence in silences], default=limit)
    if lower >= limit:
        return None
    plan.refused = {state for state in plan.refused if state.read_to < state.news_to}
    around = bool(plan.refused)
    arcs = around_refused(plan) if around else plan.arcs()
    one = _stream_of_one(plan, slots, tired)
    sweep = Sweep(plan.table, slots, arcs, lower, limit, now + 1, swept, one, around)
    for state in tired:
        state.swept = sweep
    plan.sweep = sweep
    return sweep


def _stream_of_one(plan: TableState, slots: Collection[int], tired: Sequence[GroupState]) -> bytes:
    silent = (state for slot in slots for state in plan.lineage.groups(slot) if state.silence is not None)
    return next(chain(tired, silent)).group.streams[0]


def finish(
    plan: TableState,
    sweep: Sweep,
    found: Mapping[bytes, int],
    narrowest: int,
    through: Sequence[Arc] | None = None,
    pause_ms: int = 0,
) -> bool:
    """The sweep was read, and ``found`` the first row (ms) of some streams. False: it is void.

    ``narrowest`` ms is the least that a read covers: who is woken is read so much earlier. ``through``: the arcs that
    were read to their ends, if others were refused; who has a stream elsewhere is read by itself, for ``pause_ms`` at
    least.
    """
    if plan.sweep is not sweep:
        return False
    plan.sweep = None
    _leave_out(plan, sweep, through, pause_ms)
    for slot in sweep.slots:
        if found:
            for state in plan.lineage.groups(slot):
                if state.silence is not None:
                    _hear(plan, sweep, state, found, narrowest)
        silence = plan.silences.setdefault(slot, Silence(sweep.limit))
        if not silence.groups:
            silence.level = sweep.limit
        elif silence.level >= sweep.lower:
            silence.level = max(silence.level, sweep.limit)
        for state in plan.awake_in(slot):
            if state.swept is sweep and not _hear(plan, sweep, state, found, narrowest):
                state.swept = None
                if silence.level == sweep.limit and sweep.lower <= state.read_to <= sweep.limit:
                    plan.hush(state, silence)
                else:
                    plan.settle(state)
    if plan.asleep:
        plan.silent_to = min((silence.level for silence in plan.silences.values() if silence.groups), default=None)
    return True


def _leave_out(plan: TableState, sweep: Sweep, through: Sequence[Arc] | None, pause_ms: int) -> None:
    if through is None:
        return
    for state in outside(plan, sweep.slots, through):
        woken = plan.wake(state)
        if state.close is None and state not in plan.refused:
            plan.refused.add(state)
            state.news_to = max(state.news_to, sweep.limit + pause_ms)
        if woken:
            plan.settle(state)


def give_up(plan: TableState, sweep: Sweep) -> None:
    """The sweep did not get through: all of its groups are read one by one."""
    if plan.sweep is sweep:
        wake_all(plan)


def wake_all(plan: TableState) -> None:
    """Nobody is silent, and nobody is about to be."""
    if plan.sweep is None and not any(silence.groups for silence in plan.silences.values()):
        return
    plan.sweep = None
    for slot in plan.active:
        for state in plan.lineage.groups(slot):
            if plan.wake(state):
                plan.settle(state)


def may_rest(plan: TableState, state: GroupState) -> bool:
    """Nothing has to be remembered of the group but how far it is read."""
    if state.close is not None or state.failure is not None or state.reading is not None or state.holds:
        return False
    if state.gates or state.watched or state.waiters or plan.is_uncommitted(state):
        return False
    if state.apart or state.delivered or state.recorded or state.late:
        return False
    return state.read_to >= state.news_to


def _hear(plan: TableState, sweep: Sweep, state: GroupState, found: Mapping[bytes, int], narrowest: int) -> bool:
    """Wake the group if there is a row of it."""
    if not found or found.keys().isdisjoint(state.group.streams):
        return False
    first = min(found[stream] for stream in state.group.streams if stream in found)
    plan.wake(state)
    state.news_to = sweep.upper
    if first >= sweep.limit and state.read_to <= sweep.limit:
        # Nothing before it, as far as anybody knows; what turns up there after all is read with it.
        state.due = first + 1 - narrowest
    plan.settle(state)
    return True
