"""Each safety rule of reading, taken out: classes and patches under which the simulation has to find a fault.

A mutant is the shortest change that forgets one rule. If one survives, either the rule is not needed or the simulation
is blind to what it prevents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import connector.topology.claims as claims
import connector.topology.commits as commits
import connector.topology.ledger as ledger
import connector.topology.lineage as lineage
import connector.topology.looks as looks
import connector.topology.table_reader as table_plan
import connector.topology.table_state as table_state
from connector.topology import Mark, Planner, Position
from connector.topology.commits import Commit
from connector.topology.groups import GroupState
from connector.topology.ledger import Ledger, start_of
from connector.topology.table_reader import TableReader
from connector.topology.transitions import Transition, transition
from tests.topology.simulation_worker import Rules

Patch = tuple[Any, str, Any]


class Mutant:
    """``patches`` replace module members or methods, ``rules`` switch off what surrounds the planner."""

    def __init__(self, *patches: Patch, rules: Rules | None = None, lookback: int | None = None) -> None:
        self.patches = patches
        self.lookback = lookback
        self.rules = rules or Rules()


def _waits(change: Callable[[Transition], Iterable[Any]]) -> Patch:
    def mutated(old: Any, new: Any) -> Transition:
        real = transition(old, new)
        return Transition(real.at, real.closed, real.opened, real.kept, tuple(change(real)))

    return (lineage, "transition", mutated)


def _only_closed(real: Transition) -> Iterable[Any]:
    for target, sources in real.waits:
        left = tuple(source for source in sources if source in real.closed)
        if left:
            yield target, left


def _only_opened_wait(real: Transition) -> Iterable[Any]:
    return (wait for wait in real.waits if wait[0] in real.opened)


def _first_source_only(real: Transition) -> Iterable[Any]:
    return ((target, sources[:1]) for target, sources in real.waits)


def _limit_without_confidence(self: TableReader, now: int) -> int | None:
    return None if self.polled_at is None else min(now, self.polled_at - self.confidence_ms // 4)


def _unknown_is_reached(self: TableReader, source: GroupState, at: int) -> bool:
    if self.book.ledger(source.slot, self.table) is None:
        return True
    return _real_committed_to(self, source, at)


_real_committed_to = TableReader.committed_to


def _mark_alone_counts(self: TableReader, source: GroupState, at: int) -> bool:
    mark = self.mark_of(source.slot)
    return mark is not None and (mark.read_to >= at)


def _produced_is_kept(state: GroupState, reached: Any, committed: Any) -> Any:
    """Gates come down for good by what is produced, although an abort takes that back."""
    from connector.topology.gates import blocking

    return blocking(state, reached, reached)


def _mutated_start(rule: Callable[..., Position | None]) -> tuple[Patch, ...]:
    return tuple((module, "start_of", rule) for module in (ledger, table_state, table_plan, commits))


def _start_at_mark_always(
    held: Ledger, stream: bytes, opened: int, closed: int | None, opened_known: bool = True
) -> Position | None:
    if held.mark is not None and stream not in held.positions:
        mark = held.mark
        alone = Ledger()
        alone.mark = Mark(mark.read_to, max(opened, mark.stream_set), mark.start, mark.owner)
        return start_of(alone, stream, opened, closed, opened_known)
    return start_of(held, stream, opened, closed, opened_known)


def _start_at_opening_always(
    held: Ledger, stream: bytes, opened: int, closed: int | None, opened_known: bool = True
) -> Position | None:
    start = start_of(held, stream, opened, closed, opened_known)
    if start is not None and stream not in held.positions:
        assert held.mark is not None
        return Position(max(opened, held.mark.start))
    return start


def _start_without_mark_start(
    held: Ledger, stream: bytes, opened: int, closed: int | None, opened_known: bool = True
) -> Position | None:
    if held.mark is not None and stream not in held.positions and opened > held.mark.stream_set:
        return Position(opened if closed is None else min(opened, closed))
    return start_of(held, stream, opened, closed, opened_known)


def _start_without_after(
    held: Ledger, stream: bytes, opened: int, closed: int | None, opened_known: bool = True
) -> Position | None:
    start = start_of(held, stream, opened, closed, opened_known)
    return None if start is None else Position(start.read_to)


def _marks_first(self: Planner, now: int, move_marks: bool = False, idle_ms: int = 0) -> Commit:
    commit = _real_commit_entries(self, now, move_marks, idle_ms)
    return Commit(tuple(sorted(commit.entries, key=lambda entry: "slots" not in entry.key)), commit.slots)


_real_commit_entries = Planner.commit_entries


def _without(keep: Callable[[Any], bool]) -> Patch:
    def mutated(self: Planner, now: int, move_marks: bool = False, idle_ms: int = 0) -> Commit:
        commit = _real_commit_entries(self, now, move_marks, idle_ms)
        return Commit(tuple(entry for entry in commit.entries if keep(entry)), commit.slots)

    return (Planner, "commit_entries", mutated)


def _fastest_rules(plan: TableReader, states: list[GroupState], old: Mark) -> int:
    return max([old.read_to, *(state.level for state in states if not state.drained)])


def _old_set_kept(plan: TableReader, now: int, move_marks: bool, idle_ms: int = 0) -> Any:
    staged = _real_stage(plan, now, move_marks, idle_ms)
    for slot, mark in staged.marks.items():
        before = plan.mark_of(slot)
        if before is not None:
            staged.marks[slot] = Mark(mark.read_to, before.stream_set, mark.start, mark.owner)
    return staged


_real_stage = commits.stage


def _everybody_starts(self: TableReader, slot: int, now: int) -> Mark | None:
    real = _real_first_mark(self, slot, now)
    newest = self.lineage.newest
    if real is None and newest is not None and self.lineage.oldest_listed is not None:
        start = now - self.lookback_ms if self.lookback_ms else self.lineage.oldest_listed
        return Mark(start, newest.timestamp, start, self.book.owner)
    return real


_real_first_mark = claims.first_mark


def _claims_forgotten(self: TableReader) -> list[int]:
    """Slots are used as soon as they are restored, their claim is written with whatever comes next."""
    waiting = [slot for slot in sorted(self.book.own) if slot not in self.active]
    ready = [slot for slot in waiting if self.mark_of(slot) is not None]
    if ready and self._staged is None:
        self._activate(ready)
    return [slot for slot in waiting if slot not in ready]


def _abort_keeps_positions(self: TableReader) -> None:
    self._undo, self._undo_later = {}, {}
    _real_aborted(self)


_real_aborted = TableReader.aborted


def _batch_counts_as_read(self: GroupState, stream: bytes, time: bytes) -> None:
    _real_delivered_row(self, stream, time)
    self.apart[stream] = Position(self.apart[stream].read_to + 1)


_real_delivered_row = GroupState.delivered_row


def _all_together(self: GroupState, cap: int) -> Any:
    """One query for all streams of a group, from the lowest position, nothing filtered."""
    return self.group.streams, Position(self.read_to), cap


def _all_from_highest(self: GroupState, cap: int) -> Any:
    highest = max(self.position(stream).read_to for stream in self.group.streams)
    return self.group.streams, Position(min(highest, cap)), cap


def _whole_group_ends(self: GroupState, streams: tuple[bytes, ...], read_to: int) -> None:
    """A read of some streams of a group counts for all of them."""
    _real_read_ended(self, self.group.streams, read_to)


_real_read_ended = GroupState.read_ended


def _horizon_without_sets(self: TableReader, now: int) -> int | None:
    marks = [held.mark for held in self.book.ledgers(self.table) if held.mark is not None]
    return max((mark.read_to for mark in marks), default=None)


def _start_at_poll(self: lineage.Lineage, group: Any, opened: int, opened_known: bool) -> GroupState:
    """Streams of a set learnt late start where the log has got to, not where they opened."""
    return _real_add(self, group, opened + 15 if opened_known else opened, opened_known)


_real_add = lineage.Lineage._add


def _owes_nothing(plan: TableReader, slot: int, before: int) -> int:
    assert plan.newest is not None
    return max(before, plan.newest.timestamp)


def _heirs_go_on(plan: TableReader, read: Any, now: int) -> Any:
    held = _real_hold(plan, read, now)
    looks.let_go(plan, read)
    return held


def _only_own_are_searched(plan: TableReader, read: Any, now: int) -> Any:
    held = _real_hold(plan, read, now)
    own = tuple(one for one in held.relatives if one.upto is not None) if held else ()
    return held and looks.Held(own, held.within_ms)


_real_hold = looks.hold


def _looked_only(state: GroupState, ledger: Ledger, mark: Mark, close: int) -> None:
    state.looked, state.late = close <= mark.rechecked, {}


# What a transaction of the dead holds up would otherwise only be late, by the transaction's timeout.
IMPATIENT = Rules(transactions_time_out=False)

MUTANTS: dict[str, Mutant] = {
    "nobody waits": Mutant(_waits(lambda real: ())),
    "waits only for closed streams": Mutant(_waits(_only_closed)),
    "only opened streams wait": Mutant(_waits(_only_opened_wait)),
    "a merged stream waits for one parent": Mutant(_waits(_first_source_only)),
    "no confidence window": Mutant((TableReader, "limit", _limit_without_confidence)),
    "an unknown slot counts as delivered": Mutant((TableReader, "committed_to", _unknown_is_reached)),
    "a position below the mark is overlooked": Mutant((TableReader, "committed_to", _mark_alone_counts)),
    "gates open for good by what is only produced": Mutant((table_state, "blocking", _produced_is_kept)),
    "streams opened later start at the mark": Mutant(*_mutated_start(_start_at_mark_always)),
    "streams start at their opening": Mutant(*_mutated_start(_start_at_opening_always)),
    "streams opened later ignore the table's start": Mutant(*_mutated_start(_start_without_mark_start), lookback=60),
    "a read is resumed at its beginning": Mutant(*_mutated_start(_start_without_after)),
    "marks before positions": Mutant((Planner, "commit_entries", _marks_first)),
    "no positions": Mutant(_without(lambda entry: "slots" in entry.key or entry.value is None)),
    "no tombstones": Mutant(_without(lambda entry: entry.value is not None)),
    "the fastest stream moves the mark": Mutant(
        (commits, "_next_mark", _fastest_rules), (commits, "_stage_under", lambda *a: None)
    ),
    "stream_set is not raised": Mutant((commits, "stage", _old_set_kept)),
    "every slot decides where a table starts": Mutant((claims, "first_mark", _everybody_starts)),
    "reading before the claim is committed": Mutant((TableReader, "claimable", _claims_forgotten), rules=IMPATIENT),
    "an abort keeps the positions": Mutant((TableReader, "aborted", _abort_keeps_positions)),
    "a batch counts as its whole millisecond": Mutant((GroupState, "delivered_row", _batch_counts_as_read)),
    "a torn group is read from its lowest position": Mutant((GroupState, "next_read", _all_together)),
    "a torn group is read from its highest position": Mutant((GroupState, "next_read", _all_from_highest)),
    "a read of some streams counts for the group": Mutant((GroupState, "read_ended", _whole_group_ends)),
    "old sets are left out too early": Mutant((claims, "horizon", _horizon_without_sets)),
    "late sets start where the log has got to": Mutant((lineage.Lineage, "_add", _start_at_poll)),
    "nobody looks beyond the end of a stream": Mutant((looks, "due", lambda plan, now: ())),
    "a look is not owed by the next worker": Mutant((looks, "rechecked", _owes_nothing)),
    "heirs go on while a look delivers": Mutant((looks, "hold", _heirs_go_on)),
    "heirs of other workers are not searched": Mutant((looks, "hold", _only_own_are_searched)),
    "heirs may be behind the look": Mutant((looks, "_delivered_by", lambda plan, heirs, limit: limit)),
    "looks forget what the last one delivered": Mutant((GroupState, "delivered_late", lambda *a: None)),
    "what a look delivered is not restored": Mutant((looks, "place", _looked_only)),
    "heirs are not searched": Mutant(rules=Rules(search_heirs=False)),
    "dead owners are not fenced": Mutant(rules=Rules(fence_owners=False, transactions_time_out=False)),
    "the high watermark is not awaited": Mutant(rules=Rules(wait_for_high_watermark=False)),
    "a commit names no slots": Mutant(rules=Rules(name_touched_slots=False)),
    "pages of void reads are produced": Mutant(rules=Rules(drop_old_pages=False)),
    "an unknown outcome is taken for an abort": Mutant(rules=Rules(release_after_unknown=False)),
}
