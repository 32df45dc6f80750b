"""Snapshots of a table: which tokens still lack their rows, which group may deliver them, and where it stands.

In: a `TableState`, the time, what was placed. Out: `Opening`s, each a permission to read rows of a group's range and to
place them where the group stands; the entries that a transaction must contain about them.

Only who delivers the changes of a key may deliver its row, or the row could land behind a newer change, or in front of
an older one, of somebody else's transaction. So a row belongs to the group of streams whose range has its token, and
shares that group's slot, claim and transaction. What is done is committed as intervals of tokens: whatever becomes of
the groups, what is left of a new one's range is its range without all intervals that any slot has.

A group whose range came from others begins when those have *committed* everything before it began: what they placed is
known by then, as it stands in front of that in their slots. What they had read and not placed is thrown away.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from connector.offsets_entry import OffsetsEntry
from connector.table_name import TableName
from connector.topology.groups import GroupState
from connector.topology.looks import heirs_of, once
from connector.topology.offsets import (
    EntryKey,
    Inside,
    ProgressKey,
    Reached,
    Snapshot,
    SnapshotKey,
    known_key,
    parse_progress,
    parse_snapshot,
    progress_entry,
    snapshot_entry,
)
from connector.topology.sets import StreamSet
from connector.topology.snapshot_state import Event, Opening, Span, StagedSnapshots
from connector.topology.snapshot_wishes import ASKED, INITIAL, NEEDED, changed, notes, of_no_use, of_snapshots, settled
from connector.topology.streams import MAX_TOKEN, MIN_TOKEN
from connector.topology.table_state import TableState

# A group that is further behind has changes to read first; every change of a held row has to be remembered.
NEAR_MS = 10_000

# Intervals of a snapshot that has ended are kept so long: a worker that learns late of its end must not begin anew.
KEPT_MS = 3_600_000

_SHIFT = 1 << 63

#: What is placed behind a token.
Part = tuple[int, Reached]


# -- looking -------------------------------------------------------------------------------------------------


def known(plan: TableState) -> dict[str, Snapshot]:
    """The snapshots of the table, by what is committed."""
    home = plan.book.ledger(plan.home, plan.table)
    return {} if home is None else of_snapshots(home.snapshots)


def running(plan: TableState) -> tuple[str, Snapshot] | None:
    """The one that is under way."""
    return _under_way(known(plan))


def _under_way(found: dict[str, Snapshot]) -> tuple[str, Snapshot] | None:
    return min(((name, run) for name, run in found.items() if run.ended is None), default=None) if found else None


def last_snapshots(entries: Iterable[OffsetsEntry]) -> dict[TableName, tuple[Snapshot, float]]:
    """Of each table, by what is committed in all slots, with the part of the ring whose rows are."""
    found: dict[TableName, dict[str, Snapshot]] = defaultdict(dict)
    parts: dict[tuple[TableName, str], list[Part]] = defaultdict(list)
    for entry in entries:
        key = known_key(entry)
        if isinstance(key, SnapshotKey) and entry.value is not None:
            found[key.table][key.snapshot] = parse_snapshot(entry.value, entry.place)
        elif isinstance(key, ProgressKey) and entry.value is not None:
            reached = parse_progress(entry.value, entry.place)
            parts[key.table, key.snapshot].append((key.behind, reached))
    last = {table: each for table, known in found.items() if (each := _last(of_snapshots(known))) is not None}
    return {table: (shot, _share(parts[table, name])) for table, (name, shot) in last.items()}


def forgotten(slot: int, key: EntryKey | None) -> OffsetsEntry | None:
    """Where a table is to begin as if nobody had read it: the end of a snapshot, or of its progress. What has been
    granted of what was asked for stays, or it would be granted again."""
    if isinstance(key, ProgressKey):
        return progress_entry(slot, key, None)
    if isinstance(key, SnapshotKey) and key.snapshot not in (NEEDED, ASKED):
        return snapshot_entry(slot, key, None)
    return None


def last_snapshot(plan: TableState) -> tuple[str, Snapshot] | None:
    """The one under way, else the last one that ended."""
    return _last(known(plan))


def _last(found: dict[str, Snapshot]) -> tuple[str, Snapshot] | None:
    last = max(found.items(), key=lambda each: (each[1].ended is None, each[1].began), default=None)
    return _under_way(found) or last


def over(plan: TableState) -> bool:
    """The table is started, and there is no snapshot of it to be made any more."""
    home = plan.book.ledger(plan.home, plan.table)
    return home is not None and home.mark is not None and running(plan) is None


def passed_over(plan: TableState) -> bool:
    """Whoever starts the table makes a snapshot, and somebody has started it without."""
    state, home = plan.snapshots, plan.own_ledger(plan.home)
    wanted = state.initial and state.start is None and not state.when_needed
    started = home is not None and home.mark is not None
    return wanted and started and all(each.kind != INITIAL for each in known(plan).values())


def share_done(plan: TableState, snapshot: str) -> float:
    """The part of the ring whose rows are committed."""
    return _share(_committed(plan, snapshot))


def _share(parts: Iterable[Part]) -> float:
    return sum(high - low for low, high in _tokens(parts)) / (MAX_TOKEN - MIN_TOKEN)


# -- openings ------------------------------------------------------------------------------------------------


def refresh(plan: TableState, now: int) -> list[Opening]:
    """All groups of ours that have rows to place, those that may begin now included."""
    openings = plan.snapshots.openings
    run = running(plan)
    if run is None or run[1].paused or plan.newest is None or not plan.book.all_known:
        openings.clear()
        return []
    name, snapshot = run
    for state in [state for state, opening in openings.items() if opening.snapshot != name]:
        del openings[state]
    parts: list[Part] = []
    done: list[Span] | None = None
    late: set[GroupState] | None = None
    for slot in plan.active:
        for state in plan.lineage.groups(slot):
            if state in openings or not may_open(plan, state, now):
                continue
            late = late_ones(plan) if late is None else late
            if state in late:
                continue
            if done is None:
                parts = [*_committed(plan, name), *_uncommitted(plan, name)]
                done = _tokens(parts)
            left = without(_spans(plan, plan.newest, state), done)
            inside = _inside(parts, left)
            openings[state] = Opening(
                state, plan.table, name, snapshot.kind, snapshot.where, snapshot.began, left, inside
            )
    return [opening for opening in openings.values() if opening.left]


def is_open(plan: TableState, opening: Opening) -> bool:
    """What was read for it may still be placed."""
    return plan.snapshots.openings.get(opening.state) is opening


def stands(plan: TableState, opening: Opening) -> int | None:
    """Everything of the group before this ms is delivered and nothing at or after it; None: there is no such ms."""
    state = opening.state
    if not is_open(plan, opening) or state.apart or state.failure is not None:
        return None
    return state.read_to


def place(plan: TableState, opening: Opening, span: Span, inside: Inside | None = None) -> None:
    """All rows of the opening with tokens in the span, and those ``inside`` the partition behind it, were produced in
    the open transaction. What is left in front of the span, or behind it, stays open."""
    low, high = span
    parts = [(max(low, first), min(high, last)) for first, last in opening.left if first < high and low < last]
    opening.left = without(opening.left, [span])
    for first, last in parts:
        _reach(plan, opening, first, Reached(last))
    if inside is not None:
        opening.inside[high, inside.table_id] = inside
        _reach(plan, opening, high, Reached(high, inside))


def _reach(plan: TableState, opening: Opening, low: int, reached: Reached) -> None:
    """What follows goes under the same key: one entry for each interval, however many commits it takes."""
    behind = opening.began.pop(low, low)
    opening.began[reached.upto] = behind
    plan.snapshots.produced[opening.state.slot, opening.snapshot, behind] = reached


def new_set(plan: TableState) -> None:
    """Another stream set is known: a group whose range changes places nothing more."""
    assert plan.newest is not None
    before, openings = plan.snapshots.spans, plan.snapshots.openings
    for state in list(openings):
        same = before is not None and before[1].get(state.group.streams[0]) == _spans(plan, plan.newest, state)
        if state.close is not None or not same:
            del openings[state]


def close(plan: TableState, slots: Iterable[int]) -> None:
    """These slots are not ours any more."""
    gone, openings = set(slots), plan.snapshots.openings
    for state in [state for state in openings if state.slot in gone]:
        del openings[state]
    # Whoever has them now finds out again.
    plan.snapshots.needed -= gone


def need(plan: TableState, slot: int, since: int) -> None:
    """Changes of a slot expired unread, from ``since`` on. Who noted it after that meant these: where it stands now, it
    stood then, so far behind that no row of a snapshot has been placed in it since."""
    ledger = plan.own_ledger(slot)
    noted = None if ledger is None else ledger.snapshots.get(NEEDED)
    if noted is None or noted.began < since:
        plan.snapshots.needed.add(slot)


# -- transactions --------------------------------------------------------------------------------------------


def stage(plan: TableState, now: int, new_table: bool, look: bool) -> StagedSnapshots:
    """``new_table``: it is started by this commit. ``look``: also whether a snapshot has ended."""
    state = plan.snapshots
    staged = state.staged = StagedSnapshots()
    staged.progress, state.produced = state.produced, {}
    staged.changed.update(notes(plan, now))
    if (new_table or look) and plan.book.all_known and plan.own_ledger(plan.home) is not None:
        found = changed(plan, now, new_table)
        staged.changed.update(((plan.home, name), each) for name, each in found.items())
    if look and plan.book.all_known:
        _stage_end(plan, staged, now)
    return staged


def _stage_end(plan: TableState, staged: StagedSnapshots, now: int) -> None:
    found = known(plan)
    run = _under_way(found)
    if run is not None and plan.home in plan.active:
        name, snapshot = run
        if _tokens(_committed(plan, name)) == [(MIN_TOKEN, MAX_TOKEN)]:
            staged.changed[plan.home, name] = replace(snapshot, ended=now)
    if found and plan.home in plan.active:
        staged.changed.update(((plan.home, name), None) for name in of_no_use(plan, found, now - KEPT_MS))
    kept = {name for name, each in found.items() if each.ended is None or now - each.ended < KEPT_MS}
    for slot in plan.active:
        ledger = plan.book.own[slot].tables.get(plan.table)
        if ledger is not None and ledger.done:
            staged.outdated += [(slot, name, behind) for name, behind in ledger.done if name not in kept]


def entries(plan: TableState, staged: StagedSnapshots) -> list[OffsetsEntry]:
    """They stand in front of marks and positions: a prefix that tells how far a group is delivered tells what it placed
    until then."""
    progress = [*staged.progress.items(), *((key, None) for key in staged.outdated)]
    found = [
        progress_entry(slot, ProgressKey(plan.table, name, behind), reached)
        for (slot, name, behind), reached in progress
    ]
    found += [
        snapshot_entry(slot, SnapshotKey(plan.table, name), each) for (slot, name), each in staged.changed.items()
    ]
    return found


def committed(plan: TableState) -> None:
    """The staged commit is known to have happened."""
    staged, plan.snapshots.staged = plan.snapshots.staged, None
    if staged is None:
        return
    for (slot, name, behind), reached in staged.progress.items():
        if (ledger := plan.own_ledger(slot)) is not None:
            ledger.done[name, behind] = reached
    for slot, name, behind in staged.outdated:
        if (ledger := plan.own_ledger(slot)) is not None:
            ledger.done.pop((name, behind), None)
    for (slot, name), each in staged.changed.items():
        if (ledger := plan.own_ledger(slot)) is None:
            continue
        before = ledger.snapshots.pop(name, None)
        if each is not None:
            ledger.snapshots[name] = each
            plan.snapshots.events.append(Event(plan.table, name, before, each))
    settled(plan, staged)


def aborted(plan: TableState) -> None:
    """What was produced is taken back, and groups stand where they stood before: everything is read again."""
    plan.snapshots.staged, plan.snapshots.produced = None, {}
    plan.snapshots.openings.clear()


# -- inside --------------------------------------------------------------------------------------------------


def _committed(plan: TableState, snapshot: str) -> Iterator[Part]:
    for ledger in plan.book.ledgers(plan.table):
        yield from ((behind, reached) for (name, behind), reached in ledger.done.items() if name == snapshot)


def _uncommitted(plan: TableState, snapshot: str) -> Iterator[Part]:
    state = plan.snapshots
    for progress in (state.produced, {} if state.staged is None else state.staged.progress):
        yield from ((behind, reached) for (_, name, behind), reached in progress.items() if name == snapshot)


def _tokens(parts: Iterable[Part]) -> list[Span]:
    return joined((behind, reached.upto) for behind, reached in parts)


def _inside(parts: Iterable[Part], left: Iterable[Span]) -> dict[tuple[int, str | None], Inside]:
    """Of the partitions with which the spans begin, how far they are placed already: by the token in front of them, and
    the table, as another one may have had the name."""
    begins = {low for low, _ in left}
    found: dict[tuple[int, str | None], Inside] = {}
    for _, (upto, inside) in parts:
        if inside is not None and upto in begins:
            known = found.setdefault((upto, inside.table_id), inside)
            if known.part < inside.part:
                found[upto, inside.table_id] = inside
    return found


def _spans(plan: TableState, newest: StreamSet, group: GroupState) -> list[Span]:
    state = plan.snapshots
    if state.spans is None or state.spans[0] is not newest:
        state.spans = (newest, spans_of(newest))
    return state.spans[1].get(group.group.streams[0], [])


def may_open(plan: TableState, state: GroupState, now: int) -> bool:
    """The group delivers the changes of its whole range from where it stands on, and it alone: the newest set has begun
    there, and what the range was taken from is committed up to that."""
    limit = plan.limit(now)
    if limit is None or plan.newest is None or not plan.readable(state.slot):
        return False
    if state.close is not None or state.failure is not None or state.read_to < limit - NEAR_MS:
        return False
    return state.read_to >= plan.newest.timestamp and all(
        plan.committed_to(source, gate.at) for gate in state.gates for source in gate.before
    )


def late_ones(plan: TableState) -> set[GroupState]:
    """Groups behind whose rows changes may follow that came late into the streams before them: a row would show what
    stands behind it."""
    found: set[GroupState] = set()
    for source in plan.states():
        if source.close is not None and not looked_beyond(plan, source):
            found.update(heirs_of(source))
    return found


def looked_beyond(plan: TableState, source: GroupState) -> bool:
    """No node writes to it any more, and what was late is delivered, as far as is known here."""
    if source.slot in plan.active and once(source):
        return True
    mark = plan.mark_of(source.slot)
    return mark is not None and source.close is not None and mark.looked >= source.close


def spans_of(set_: StreamSet) -> dict[bytes, list[Span]]:
    """The tokens of each group, by its first stream."""
    found: dict[bytes, list[Span]] = {}
    before = 0
    for end, group in set_.segments():
        low, high = max(before - 1 - _SHIFT, MIN_TOKEN), end - 1 - _SHIFT
        if low < high:
            found.setdefault(group.streams[0], []).append((low, high))
        before = end
    return found


def joined(spans: Iterable[Span]) -> list[Span]:
    """The same tokens in as few spans as there can be, in order.

    >>> joined([(5, 7), (0, 2), (1, 3), (3, 5)])
    [(0, 7)]
    """
    found: list[Span] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return found


def without(spans: Iterable[Span], done: Iterable[Span]) -> list[Span]:
    """What ``done`` leaves of the spans.

    >>> without([(0, 10)], [(2, 4), (8, 12)])
    [(0, 2), (4, 8)]
    """
    left: list[Span] = []
    for low, high in sorted(spans):
        for first, last in done:
            if last <= low or first >= high:
                continue
            if low < first:
                left.append((low, first))
            low = max(low, last)
        if low < high:
            left.append((low, high))
    return left
