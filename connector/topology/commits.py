"""What a transaction must say about one table: positions, tombstones and marks, and in which order.

A `TableState` goes in, `Staged` comes out: the entries to produce, and what to remember once they are
committed.

A start is right for a stream if everything before it was delivered and nothing at or after it. The start that
the committed entries give (`ledger.start_of`) has to be right for every stream after every commit. So a
stream needs a position of its own exactly when the mark alone would give a wrong one: it stands below, or
rows beyond were delivered, or it is inside a read. Silence beyond the mark needs none: reading it again finds
nothing again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from connector.offsets_entry import OffsetsEntry
from connector.topology import claims, looks, snapshots
from connector.topology.groups import GroupState, Silence
from connector.topology.ledger import Ledger, start_of
from connector.topology.offsets import Mark, MarkKey, PositionKey, mark_entry, position_entry
from connector.topology.table_state import Staged, TableState


@dataclass(frozen=True, slots=True)
class Commit:
    """What to produce at the end of a transaction, in this order, and the slots that the commit has to
    name."""

    entries: tuple[OffsetsEntry, ...]
    slots: frozenset[int]


def stage(plan: TableState, now: int, move_marks: bool, idle_ms: int = 0) -> Staged:
    """Everything to commit about ``plan``'s table. ``move_marks``: also where nothing but the time has
    passed, if that is ``idle_ms`` at least."""
    staged, new = Staged(), False
    # The home slot first: what it decides about the table is the others' as well, in the same transaction.
    for slot in sorted(plan.claimable(), key=lambda slot: slot != plan.home):
        mark = claims.first_mark(plan, slot, now, staged.marks.get(plan.home))
        if mark is not None:
            # Only who owns the home slot starts a table, and knows all slots then.
            new = new or (slot == plan.home and claims.is_new(plan))
            staged.marks[slot] = mark
            staged.claimed.add(slot)
    moved: set[int] = set()
    limit = plan.limit(now) if move_marks else None
    if limit is not None:
        # Reading knows it as well, but without a stream in any of our slots there is no reading.
        plan.last_limit = limit
    if move_marks and not _all_sleep(plan, idle_ms):
        touched = {state.slot for state in plan.touched()}
        sleeping = 0
        for slot in sorted(plan.active):
            ledger = plan.own_ledger(slot)
            if slot not in touched and _sleeps(plan, slot, ledger, idle_ms):
                sleeping += 1
                continue
            if ledger is not None and plan.readable(slot):
                moved.add(slot)
                _stage_mark(plan, slot, ledger, staged, 0 if slot in touched else idle_ms)
        if sleeping == len(plan.active):
            marks = (plan.mark_of(slot) for slot in plan.active)
            plan.oldest_mark = min((mark.read_to for mark in marks if mark is not None), default=None)
    for state in plan.touched():
        if state.slot not in moved:
            _stage_group(plan, state, staged)
    staged.snapshots = snapshots.stage(plan, now, new, move_marks)
    return staged


def entries(plan: TableState, staged: Staged) -> tuple[list[OffsetsEntry], list[OffsetsEntry]]:
    """Positions, tombstones and what is about snapshots, and marks: in the transaction all of the former precede all of
    the latter.

    A follower may see any prefix. Were a mark before the position of a stream that stands below it, the
    prefix that ends between them would say that the stream was delivered up to the mark, and its successor,
    in another worker, would start.
    """
    table, slots = plan.table, plan.book.slots
    positions = [
        position_entry(slot, PositionKey(table, stream), position) for slot, _, stream, position in staged.positions
    ]
    # The home slot's first: it says where the table starts.
    ordered = sorted(staged.marks, key=lambda slot: (slot != plan.home, slot))
    marks = [mark_entry(MarkKey(table, slot, slots), staged.marks[slot]) for slot in ordered]
    return [*snapshots.entries(plan, staged.snapshots), *positions], marks


def settle(plan: TableState, staged: Staged) -> None:
    """The commit is known to have happened: our own ledgers say the same as the topic now."""
    for slot, state, stream, position in staged.positions:
        ledger = plan.own_ledger(slot)
        if ledger is None:
            continue
        if position is None:
            ledger.positions.pop(stream, None)
        else:
            ledger.positions[stream] = position
        if state is None:
            plan.orphans.get(slot, set()).discard(stream)
        elif position is None:
            state.recorded.discard(stream)
        else:
            state.recorded.add(stream)
    if staged.marks:
        plan.oldest_mark = None
    for slot, mark in staged.marks.items():
        ledger = plan.own_ledger(slot)
        if ledger is None:
            continue
        ledger.mark = mark
        if slot not in staged.claimed:
            for state in plan.awake_in(slot):
                if state.delivered:
                    state.delivered = {s: ms for s, ms in state.delivered.items() if ms >= mark.read_to}


def _stage_group(plan: TableState, state: GroupState, staged: Staged) -> None:
    """Under an unmoved mark: a position for every stream that delivered, or that lets others pass."""
    ledger = plan.own_ledger(state.slot)
    if ledger is None or ledger.mark is None:
        return
    fresh = plan.fresh.get(state, ())
    passed = plan.passed(state) if state in plan.announced else None
    for stream in state.group.streams if passed is not None else fresh:
        position = state.late.get(stream) or state.position(stream)
        if stream in fresh or (passed is not None and _start(ledger, state, stream) < passed):
            staged.positions.append((state.slot, state, stream, position))


def _stage_mark(plan: TableState, slot: int, ledger: Ledger, staged: Staged, idle_ms: int) -> None:
    """Under a mark that moves: also a position for every stream that the new mark would put wrong, and
    tombstones.

    A mark that would say nothing but that ``idle_ms`` or less have passed in silence is not worth a record: who starts
    from the old one reads the silence again.
    """
    old = ledger.mark
    assert old is not None and plan.newest is not None
    staged_before = len(staged.positions)
    states = plan.awake_in(slot)
    # `stream_set` never goes down, or streams of the sets above it would start at their opening again, rows
    # delivered or not; `readable` has made sure that we know all of them.
    known = plan.as_ours(old)
    rechecked = looks.rechecked(plan, slot, known.rechecked)
    read_to = _not_past(plan.silences.get(slot), _next_mark(plan, states, old), old)
    moved = Mark(
        read_to,
        plan.newest.timestamp,
        old.start,
        plan.book.owner,
        rechecked,
        looks.looked_at(plan, slot, known.looked),
        plan.log,
        old.began if old.began is not None and read_to < old.began else None,
        plan.kept.behind(slot, min([read_to, *(state.read_to for state in states if not state.drained)]), old.ttl),
    )
    alone = Ledger()
    alone.mark = moved
    for state in states:
        _stage_under(plan, state, alone, ledger, staged)
    for stream in sorted(plan.orphans.get(slot, ())):
        # A position of a stream in no set that we know: forgotten by ttl, unless it lies behind the newest
        # set, when a predecessor knew a newer one that opened it.
        if ledger.positions[stream].read_to <= min(moved.read_to, plan.newest.timestamp):
            staged.positions.append((slot, None, stream, None))
    before, after = ((each.stream_set, each.log, each.owner, each.rechecked, each.looked) for each in (old, moved))
    silence = len(staged.positions) == staged_before and before == after
    if moved != old and not (silence and moved.read_to - old.read_to < idle_ms):
        staged.marks[slot] = moved


def _all_sleep(plan: TableState, idle_ms: int) -> bool:
    """Whether every slot sleeps, as each did when it was looked at: what is no matter of time has that forgotten."""
    if plan.oldest_mark is None or plan.last_limit is None or not plan.asleep or plan.fresh or plan.announced:
        return False
    return plan.last_limit - plan.oldest_mark < idle_ms


def _sleeps(plan: TableState, slot: int, ledger: Ledger | None, idle_ms: int) -> bool:
    """Whether `_stage_mark` would find that less than ``idle_ms`` have passed in silence, and nothing else: told at a
    glance, since it is true of nearly all slots of nearly all tables."""
    mark, newest, silence = None if ledger is None else ledger.mark, plan.newest, plan.silences.get(slot)
    if mark is None or newest is None or plan.last_limit is None:
        return False
    if plan.orphans.get(slot) or plan.lineage.closed(slot):
        return False
    if any(state.apart or state.delivered or state.recorded or state.late for state in plan.awake_in(slot)):
        return False
    if (mark.owner, mark.stream_set, mark.log) != (plan.book.owner, newest.timestamp, plan.log):
        return False
    upto = silence.level if silence is not None and silence.groups else plan.last_limit
    return min(mark.rechecked, mark.looked) >= newest.timestamp and upto - mark.read_to < idle_ms


def _stage_under(plan: TableState, state: GroupState, alone: Ledger, ledger: Ledger, staged: Staged) -> None:
    usual = start_of(alone, b"", state.opened, state.close, state.opened_known)
    assert usual is not None
    passed = plan.passed(state) if state in plan.announced else None
    hidden = passed is not None and usual.read_to < passed
    assert alone.mark is not None
    # What was delivered beyond the close has to be known until nobody looks there any more.
    late = {} if state.close is None or state.close <= alone.mark.rechecked else state.late
    if state.level < usual.read_to or hidden:
        streams = list(state.group.streams)
    elif late or state.apart or state.delivered or state.recorded:
        noted = {*late, *state.apart, *state.delivered, *state.recorded}
        streams = [stream for stream in state.group.streams if stream in noted]
    else:
        return
    for stream in streams:
        position = late.get(stream) or state.position(stream)
        wrong = (
            stream in late
            or position.after is not None
            or position.read_to < usual.read_to
            or state.delivered.get(stream, usual.read_to - 1) >= usual.read_to
            or (passed is not None and usual.read_to < passed <= position.read_to)
        )
        if wrong:
            if ledger.positions.get(stream) != position:
                staged.positions.append((state.slot, state, stream, position))
        elif stream in state.recorded:
            staged.positions.append((state.slot, state, stream, None))


def _not_past(silence: Silence | None, read_to: int, old: Mark) -> int:
    """Silent groups have no positions: the mark is theirs."""
    if silence is None or not silence.groups:
        return read_to
    return max(old.read_to, min(read_to, silence.level))


def _next_mark(plan: TableState, states: Sequence[GroupState], old: Mark) -> int:
    """How far the mark of a slot may move: as far as its slowest stream, but for a few that are far behind.

    Those get positions instead, so that one group that is FAILED or waits does not make all others start from its
    place after a restart. Where most are behind, as after a start, it is not worth that many records. A slot without
    live streams moves with the time.
    """
    live = [(state.read_to, state) for state in states if not state.drained]
    limit = plan.last_limit if plan.last_limit is not None else old.read_to
    if not live:
        return max(old.read_to, limit)
    far = limit - plan.laggard_ms
    behind = {id(state) for at, state in live if at < (far if state.failure is None else limit)}
    streams = sum(len(state.group.streams) for _, state in live if id(state) in behind)
    total = sum(len(state.group.streams) for _, state in live)
    if streams > max(plan.laggard_streams, total // 10) or streams * 2 > total:
        behind = set()
    return max(old.read_to, min((at for at, state in live if id(state) not in behind), default=limit))


def _start(ledger: Ledger, state: GroupState, stream: bytes) -> int:
    start = start_of(ledger, stream, state.opened, state.close, state.opened_known)
    return -1 if start is None else start.read_to
