"""Claims: the mark with which a worker takes over one table in one slot, and how far back that makes it look.

A `TableState` with what is committed about its slots goes in; the mark, or None while it cannot be known, comes out.
"""

from __future__ import annotations

from dataclasses import replace

from connector.topology.offsets import Mark
from connector.topology.table_state import TableState

# Before a table has its first mark, whoever writes that computes the start by its own clock: sets older than
# our own idea of the lookback are fetched for this much longer.
LOOKBACK_MARGIN_MS = 86_400_000


def first_mark(plan: TableState, slot: int, now: int, home: Mark | None = None) -> Mark | None:
    """The mark that claims ``slot``: what was restored, under our name, or the very first one. None: not yet. ``home``:
    that of the home slot, if it is claimed in the same transaction.

    One worker alone decides where a table starts, the owner of its home slot. Were every owner to compute "now minus
    the lookback" for itself, two slots would start at different times, and what a split moves from one to the other
    in between would be missed or read although it should not.
    """
    ledger, newest, owner = plan.own_ledger(slot), plan.newest, plan.book.owner
    assert ledger is not None
    if ledger.broken:
        return None
    if ledger.mark is not None:
        # Whose sets we know decides by which of them the mark is to be read.
        return replace(ledger.mark, owner=owner)
    if newest is None:
        return None
    if slot == plan.home:
        start, began = table_start(plan, now), now if is_new(plan) else None
    else:
        home = home or plan.mark_of(plan.home)
        start = None if home is None else home.start
        began = None if home is None else home.began
    return None if start is None else Mark(start, newest.timestamp, start, owner, start, log=plan.log, began=began)


def table_start(plan: TableState, now: int) -> int | None:
    """Where the table starts, for the owner of its home slot to say.

    A mark in any slot tells that it was started before, and only all slots together can tell that it was not: without
    looking, a home slot whose mark was lost would start the table a second time, at today's time.
    """
    if not plan.book.all_known:
        return None
    if any(ledger.broken for ledger in plan.book.ledgers(plan.table)):
        return None
    starts = [ledger.mark.start for ledger in plan.book.ledgers(plan.table) if ledger.mark is not None]
    if starts:
        return min(starts)
    return now - plan.lookback_ms if plan.lookback_ms > 0 else plan.lineage.oldest_listed


def is_new(plan: TableState) -> bool:
    """No slot has a mark of the table: it is about to be started."""
    return plan.book.all_known and all(ledger.mark is None for ledger in plan.book.ledgers(plan.table))


def horizon(plan: TableState, now: int) -> int | None:
    """Nothing before this ms is needed any more, neither rows nor who followed whom; None: that is not known.

    Below every mark's set as well: a stream that looks as if it had been opened in the first set we know, while a
    mark's writer had long read it, would be read again from there. And below every end that a look is owed beyond.
    """
    if not plan.book.all_known:
        return None
    ledgers = plan.book.ledgers(plan.table)
    if any(ledger.broken for ledger in ledgers):
        return None
    marks = [ledger.mark for ledger in ledgers if ledger.mark is not None]
    if not marks:
        return now - plan.lookback_ms - LOOKBACK_MARGIN_MS if plan.lookback_ms > 0 else None
    bounds = [min(mark.read_to, mark.stream_set, mark.rechecked) for mark in marks]
    bounds += [at.read_to for ledger in ledgers for at in ledger.positions.values()]
    if len(marks) < plan.book.slots:
        bounds.append(min(mark.start for mark in marks))
    return min(bounds)
