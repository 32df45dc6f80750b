"""Late looks: a closed stream is read once more, some time after its end, for rows that are not where they belong.

In: a `TableState`, the time. Out: `Read`s beyond the ends of closed groups, the groups that must stand still while what
they found is handed on, which of it may still be handed on, and up to which end a slot has been looked at.

A node that learns late of a stream set goes on writing to streams that have ended. Nobody reads these rows in
passing: a stream is read up to its end. So each closed group is looked at again when no node should be behind any
more, once more some time later, and again after each look that found something. What a mark calls ``rechecked`` is
the last end that needs no further look, so whoever takes a slot over knows what is still owed; until then the
streams' positions say which rows were handed on.

Such a row must not come behind a later one of its partition. Its key is read elsewhere by now: in the group's heirs,
those that took over any part of its range, and theirs. They are known to have delivered everything before the end of
the look; they stand still while their logs are searched for later rows of the same partitions, and until the found
rows are produced. An heir of another worker does not stand still, but it has committed everything before the end of
the look, and it delivers no row younger than the confidence window. So where its log shows no later row of the
partition at all, one that is not visible yet will not be delivered for three quarters of that window, less what nodes
lag, and what is in Kafka within a quarter of it is in front. Whatever takes longer is taken back, and searched for
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from connector.timeuuid import millis_of, time_key
from connector.topology.groups import GroupState, Read, is_beyond
from connector.topology.ledger import Ledger, start_of
from connector.topology.offsets import Mark, Position
from connector.topology.table_state import TableState


@dataclass(frozen=True, slots=True)
class Relative:
    """Streams that share a part of the range: what they delivered lies before ``upto`` (ms, exclusive); None where
    nobody here can tell, as another worker reads them."""

    streams: tuple[bytes, ...]
    upto: int | None


@dataclass(frozen=True, slots=True)
class Held:
    """Where later rows of what a look found may have been delivered from. ``within_ms``: so long after their logs were
    searched, what is handed on must be in Kafka; None where nobody else delivers."""

    relatives: tuple[Relative, ...]
    within_ms: int | None


def heirs_of(state: GroupState) -> list[GroupState]:
    """All groups that took over from ``state``, directly or from its heirs."""
    found: dict[int, GroupState] = {}
    waiting = list(state.heirs)
    while waiting:
        heir = waiting.pop()
        if heir is not state and id(heir) not in found:
            found[id(heir)] = heir
            waiting += heir.heirs
    return list(found.values())


def begin(plan: TableState, now: int, count: int) -> list[Read]:
    """At most ``count`` reads beyond the ends of closed streams."""
    if now < plan.look_at <= now + plan.search_ms or count <= 0:
        return []
    reads: list[Read] = []
    for state, upto in due(plan, now):
        read = Read(plan.table, state.slot, state, state.group.streams, lowest(state), None, upto, late=True)
        state.reading = read
        reads.append(read)
        if len(reads) >= count:
            return reads
    plan.look_at = now + plan.search_ms
    return reads


def finish(plan: TableState, read: Read, found: bool, now: int) -> bool:
    """A look has ended. If it ``found`` anything, another one follows."""
    state = read.state
    if state.reading is not read:
        return False
    plan.touch(state)
    state.reading = None
    assert state.close is not None
    past, last = read.limit - state.close, plan.last_look * plan.grace_ms
    state.looked = not found and past >= last
    # After a find it may still go on: the next look has to reach further, and not at once.
    state.look_past, state.look_at = (past + plan.grace_ms, now + plan.grace_ms) if found else (last, 0)
    let_go(plan, read)
    return True


def interrupt(plan: TableState, read: Read) -> None:
    """The query broke off; the rest will be planned again."""
    if read.state.reading is read:
        read.state.reading = None
        let_go(plan, read)
        plan.settle(read.state)


def let_go(plan: TableState, read: Read) -> None:
    """Whoever had to stand still goes on."""
    for heir in plan.holding.pop(read, ()):
        heir.holds -= 1
        if not heir.holds:
            plan.settle(heir)


def end(plan: TableState) -> None:
    """Looks are begun anew after what may have changed who the heirs are, or whose."""
    for slot in plan.active:
        for state in plan.lineage.closed(slot):
            if state.reading is not None and state.reading.late:
                interrupt(plan, state.reading)


def place(state: GroupState, ledger: Ledger, mark: Mark, close: int) -> None:
    """What is committed about a group's rows beyond its close."""
    state.looked = close <= mark.rechecked
    state.late = {}
    for stream in () if state.looked else state.group.streams:
        # A mark whose writer knew the close has moved on without the stream; one whose writer did not, with it.
        if stream in ledger.positions or close > mark.stream_set:
            at = start_of(ledger, stream, state.opened, None, state.opened_known)
            if at is not None and is_beyond(at, close):
                state.late[stream] = at


def due(plan: TableState, now: int) -> Iterator[tuple[GroupState, int]]:
    """Groups to look at now, and up to where."""
    limit = plan.limit(now)
    if limit is None or not plan.lineage.any_closed:
        return
    for slot in sorted(plan.active):
        if not plan.readable(slot):
            continue
        for state in plan.lineage.closed(slot):
            if state.close is None or state.looked or state.reading is not None or state.failure is not None:
                continue
            enough = state.close + max(plan.grace_ms, state.look_past)
            if state.holds or not state.drained or now < state.look_at or limit < enough:
                continue
            upto = _delivered_by(plan, heirs_of(state), limit)
            if upto >= enough:
                yield state, upto


def beyond(state: GroupState, stream: bytes, time: bytes) -> bool:
    """A row of a look was not handed on before."""
    at = state.late.get(stream)
    if at is None:
        return True
    return time_key(time) > time_key(at.after) if at.after is not None else millis_of(time) >= at.read_to


def lowest(state: GroupState) -> int:
    """Where a look has to begin for the stream that is least far."""
    assert state.close is not None
    ends = [state.late.get(stream, Position(state.close)).read_to for stream in state.group.streams]
    return max(state.close, min(ends))


def hold(plan: TableState, read: Read, now: int) -> Held | None:
    """Let the heirs stand still until the look has ended. None: not now, since of the sets that other workers may read
    by now one may be unknown here."""
    family = heirs_of(read.state)
    heirs = [heir for heir in family if heir.slot in plan.active]
    elsewhere = len(heirs) < len(family)
    if elsewhere and (plan.polled_at is None or not 0 <= now - plan.polled_at <= plan.confidence_ms // 2):
        return None
    for heir in heirs:
        plan.wake(heir)
        if heir.reading is not None:
            interrupt(plan, heir.reading)
        heir.holds += 1
    plan.holding[read] = heirs
    # What came late into streams that ended even earlier may have been delivered as well.
    family += [state for state in plan.states() if state.late and read.state in heirs_of(state)]
    relatives = [
        Relative(state.group.streams, state.reaches if state.slot in plan.active else None)
        for state in family
        if state.slot not in plan.active or state.reaches > read.read_to
    ]
    return Held(tuple(relatives), plan.confidence_ms // 4 if elsewhere else None)


def rechecked(plan: TableState, slot: int, before: int) -> int:
    """Ends at or before this ms need no further look in the slot."""
    assert plan.newest is not None
    owed = [state.close for state in plan.lineage.closed(slot) if state.close is not None and not state.looked]
    return max(before, min(owed) - 1 if owed else plan.newest.timestamp)


def looked_at(plan: TableState, slot: int, before: int) -> int:
    """Ends at or before this ms have been looked beyond once."""
    assert plan.newest is not None
    owed = [state.close for state in plan.lineage.closed(slot) if state.close is not None and not once(state)]
    return max(before, min(owed) - 1 if owed else plan.newest.timestamp)


def once(state: GroupState) -> bool:
    """The first look is over: it comes when no node should write to the group any more."""
    return state.looked or state.look_past > 0


def _delivered_by(plan: TableState, heirs: Iterable[GroupState], limit: int) -> int:
    """Everything before this ms is delivered by all heirs, those of other workers included; at most ``limit``."""
    for heir in heirs:
        at = heir.read_to if heir.slot in plan.active else plan.committed_up_to(heir)
        if heir.close is None or at < heir.close:
            limit = min(limit, at)
    return limit
