"""The groups of streams of a table, told to somebody who looks at it.

In: a worker. Out: a `StreamsMessage`. It is part of no report: a table may have thousands of groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from connector.topology import GroupState, TableState
from connector.worker.messages import GroupOfStreams, StreamsMessage
from connector.worker.worker import Worker

# A picture of more has no room for them.
MOST_GROUPS = 2_000


def told_streams(worker: Worker, table: str) -> StreamsMessage:
    plan = next((plan for name, plan in worker.planner.tables.items() if str(name) == table), None)
    groups = [] if plan is None else list(_groups(plan))
    return StreamsMessage(table=table, groups=tuple(groups[:MOST_GROUPS]), count=len(groups))


def _groups(plan: TableState) -> Iterator[GroupOfStreams]:
    ends = [] if plan.newest is None else [group.range_end for group in plan.newest.groups]
    starts = dict(zip(ends, [*ends[-1:], *ends[:-1]]))
    for slot in sorted(plan.active):
        for state in plan.lineage.groups(slot):
            yield GroupOfStreams(
                range_start=None if state.close is not None else starts.get(state.group.range_end),
                range_end=state.group.range_end,
                slot=slot,
                state=_state(plan, state),
                streams=len(state.group.streams),
                first=min(state.group.streams).hex(),
                read_to=state.read_to,
            )


def _state(plan: TableState, state: GroupState) -> Literal["reading", "silent", "waiting", "failed", "ended"]:
    if state.failure is not None:
        return "failed"
    if state.drained:
        return "ended"
    shut = plan.blocking(state) if state.gates else None
    if shut is not None and state.read_to >= shut[0].at:
        return "waiting"
    return "reading" if state.silence is None else "silent"
