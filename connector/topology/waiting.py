"""Held back: which groups are not being read, why, and whom they wait for; as data for `status`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from connector.table_name import TableName
from connector.topology import claims
from connector.topology.table_state import TableState


class Reason(Enum):
    """Why something is held back. The value is the wording of `status`."""

    NO_SETS = "no stream set is known yet"
    NO_POLL = "no recent answer to a poll of the stream sets"
    NOT_CLAIMED = "the claim of the slot is not committed yet"
    HOME_SLOT = "the worker of the table's home slot has not committed the table's start yet"
    OLDER_VIEW = "the nodes polled so far do not return the newest stream set that was already read"
    OLDER_START = "the table was started further back than this worker's lookback; restart the worker"
    PREDECESSOR = "an earlier stream of the same keys is not delivered yet"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Waiting:
    """One thing that waits: the whole table (``slot`` None), a slot of it, or one group (``range_end``
    given).

    For a wait at a stream change ``at`` is the change, ``waits_for`` the streams in front, ``waits_for_slot``
    where they live, and ``note`` their failure where that is the cause.
    """

    table: TableName
    reason: Reason
    slot: int | None = None
    range_end: int | None = None
    streams: tuple[bytes, ...] = ()
    read_to: int | None = None
    at: int | None = None
    waits_for: tuple[bytes, ...] = ()
    waits_for_slot: int | None = None
    note: str | None = None


def waiting_in(plan: TableState, now: int) -> Iterator[Waiting]:
    """Everything of the table that this worker should read and does not."""
    everywhere = len(plan.book.own) == len(plan.active) == len(plan.readable_slots())
    if plan.asleep and everywhere and plan.limit(now) is not None:
        return
    table = plan.table
    if plan.failure is not None:
        yield Waiting(table, Reason.FAILED, note=plan.failure)
    if plan.newest is None:
        yield Waiting(table, Reason.NO_SETS)
    elif plan.limit(now) is None:
        yield Waiting(table, Reason.NO_POLL)
    for slot in sorted(plan.book.own):
        broken = plan.book.own[slot].table(table).broken
        if broken:
            yield Waiting(table, Reason.FAILED, slot=slot, note=next(iter(broken.values())))
        elif slot not in plan.active:
            if plan.newest is not None:
                first = claims.first_mark(plan, slot, now)
                yield Waiting(table, Reason.HOME_SLOT if first is None else Reason.NOT_CLAIMED, slot=slot)
        elif plan.newest is not None and not plan.knows_enough(slot):
            mark = plan.mark_of(slot)
            older = mark is not None and plan.newest.timestamp < mark.stream_set
            yield Waiting(
                table,
                Reason.OLDER_VIEW if older else Reason.OLDER_START,
                slot=slot,
                at=mark.stream_set if mark is not None else None,
            )
        else:
            yield from _waiting_groups(plan, slot)


def _waiting_groups(plan: TableState, slot: int) -> Iterator[Waiting]:
    for state in plan.awake_in(slot):
        if state.failure is not None:
            yield Waiting(
                plan.table,
                Reason.FAILED,
                slot=slot,
                range_end=state.group.range_end,
                streams=state.group.streams,
                read_to=state.read_to,
                note=state.failure,
            )
            continue
        shut = None if state.drained or not state.gates else plan.blocking(state)
        if shut is not None and state.read_to >= shut[0].at:
            gate, witness = shut
            yield Waiting(
                plan.table,
                Reason.PREDECESSOR,
                slot=slot,
                range_end=state.group.range_end,
                streams=state.group.streams,
                read_to=state.read_to,
                at=gate.at,
                waits_for=witness.group.streams,
                waits_for_slot=witness.slot,
                note=witness.failure,
            )
