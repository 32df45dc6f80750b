"""Why a table gets a snapshot: it is started, its connector is, changes have expired unread, or somebody asks for one.

In: a `TableState`, the time, what was asked. Out: the snapshots that begin, pause, go on or end with the next commit.
Only the owner of the table's home slot decides; others note in their own slots what they find.

What was asked has a number, its place in the topic that it came by. Up to which it is done is committed with what it
did, so that it is done once, whoever asks and whoever dies. What was there before anything was noted of that topic is
nobody's wish any more. A topic that is deleted and created again counts from its beginning: its numbers are others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from connector.topology.offsets import Snapshot
from connector.topology.snapshot_state import SnapshotState, StagedSnapshots
from connector.topology.table_state import TableState

INITIAL, INCREMENTAL = "initial", "incremental"

#: Entries beside those of snapshots: changes of a slot that expired unread, and up to which wish all is done.
NEEDED, ASKED = "needed", "asked"


def of_snapshots(found: dict[str, Snapshot]) -> dict[str, Snapshot]:
    return {name: each for name, each in found.items() if name not in (NEEDED, ASKED)}


def notes(plan: TableState, now: int) -> dict[tuple[int, str], Snapshot]:
    """What a worker notes in its own slots, the home slot's being one or not."""
    found = plan.snapshots.needed if plan.snapshots.when_needed else ()
    return {(slot, NEEDED): Snapshot(NEEDED, now, now) for slot in found if plan.own_ledger(slot) is not None}


def changed(plan: TableState, now: int, new_table: bool) -> dict[str, Snapshot]:
    """To be committed in the home slot, which is ours, with all slots known."""
    home = plan.own_ledger(plan.home)
    assert home is not None
    found = {**home.snapshots}
    begun = _begun(plan, of_snapshots(found), now, new_table)
    if begun is not None:
        found[_name(begun.began, found)] = begun
    if plan.snapshots.hears_from is not None and plan.home in plan.active:
        _obey(plan, found, now)
    return {name: each for name, each in found.items() if home.snapshots.get(name) != each}


def _begun(plan: TableState, known: dict[str, Snapshot], now: int, new_table: bool) -> Snapshot | None:
    """What nobody has to ask for."""
    state = plan.snapshots
    if new_table:
        return Snapshot(INITIAL, now, asked=state.start) if state.initial else None
    if plan.home not in plan.active:
        return None
    if state.start is not None and all(each.asked != state.start for each in known.values()):
        return Snapshot(INITIAL, now, asked=state.start)
    if state.when_needed:
        lost = max((each[NEEDED].began for each in _slots(plan) if NEEDED in each), default=-1)
        whole = [each for each in known.values() if each.kind == INITIAL]
        if lost >= 0 and all(each.ended is not None and each.began < lost for each in whole):
            return Snapshot(INITIAL, max(now, lost))
    return None


def _slots(plan: TableState) -> Iterable[dict[str, Snapshot]]:
    return (ledger.snapshots for ledger in plan.book.ledgers(plan.table))


def _obey(plan: TableState, found: dict[str, Snapshot], now: int) -> None:
    state = plan.snapshots
    assert state.hears_from is not None
    done = _done(found.get(ASKED), state)
    last = done
    for wish in state.wishes:
        # Whoever loses the topic reads it again, and hears once more what nobody has granted yet.
        if wish.number <= last:
            continue
        last = wish.number
        under_way = {name: each for name, each in of_snapshots(found).items() if each.ended is None}
        if wish.action == "start":
            name = _name(now, found)
            found[name] = Snapshot(INCREMENTAL, now, asked=wish.id, where=wish.where)
        for name, each in under_way.items():
            if wish.action == "stop":
                found[name] = replace(each, ended=now, stopped=True)
            elif wish.action != "start":
                found[name] = replace(each, paused=wish.action == "pause")
    is_named = ASKED in found and (found[ASKED].where is not None or state.hears is None)
    if not is_named or last > done:
        found[ASKED] = Snapshot(ASKED, now, now, where=state.hears, number=last)


def settled(plan: TableState, staged: StagedSnapshots) -> None:
    """A commit has happened: what it noted is noted, whoever wrote it."""
    state, home = plan.snapshots, plan.book.ledger(plan.home, plan.table)
    state.needed -= {slot for slot, name in staged.changed if name == NEEDED}
    if home is not None and ASKED in home.snapshots:
        done = _done(home.snapshots[ASKED], state)
        state.wishes = [wish for wish in state.wishes if wish.number > done]


def of_no_use(plan: TableState, known: dict[str, Snapshot], before: int) -> list[str]:
    """Snapshots that ended before a time, but for the last of each kind, and the one of this start."""
    ended = sorted((each.ended, name) for name, each in known.items() if each.ended is not None)
    last = {known[name].kind: name for _, name in ended}
    kept = {*last.values(), *(name for name, each in known.items() if each.asked == plan.snapshots.start is not None)}
    return [name for at, name in ended if at < before and name not in kept]


def _done(noted: Snapshot | None, state: SnapshotState) -> int:
    """The number of the last wish that is granted, of those in the topic that is heard now."""
    before = -1 if state.hears_from is None else state.hears_from - 1
    if noted is None or noted.number is None:
        return before
    if noted.where is None or state.hears in (None, noted.where):
        return noted.number
    if _name_in(noted.where) != _name_in(state.hears):
        return before
    # One that held more than was granted before anybody was heard may be a copy, with the same wishes in it.
    return -1 if before < noted.number else noted.number


def _name_in(topic: str) -> str:
    return topic.partition("/")[0]


def _name(now: int, taken: Iterable[str]) -> str:
    """In the order of their beginning, which is that of names."""
    name, count = str(now), 0
    while name in taken:
        count += 1
        name = f"{now}.{count:03}"
    return name
