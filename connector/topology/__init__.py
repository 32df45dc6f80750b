"""Stream ids, stream sets, their succession; the planner that decides what may be read when. Pure: no clock, no I/O.

In: what nodes say about stream sets, what the offsets topic says about slots, progress, the time. Out:
permissions to read, and the entries that a transaction must contain. One `Planner` per worker is the only way to
change anything; `roles.py` says who may change what. Owned by one thread; all times are ms since 1970 by one clock.
How and why is told in ``docs/reading.md``.

A worker's life with it::

    planner = Planner(tables, slots=P, owner=client_id, confidence_ms=…, lookback_ms=…)

    # every few hundred ms, per table (vnode tables share one answer); started = when the poll was sent
    wanted = planner.wanted(table, timestamps, now)   # which of the listed sets to fetch
    sets = {t: tablet_set(t, ids) for t in wanted}    # or vnode_set(t, {range_end: ids})
    planner.observe(table, View(timestamps, sets), started)

    planner.follow(records, caught_up)                # what other workers committed, as it becomes visible
    planner.restore(slot, records)                    # a slot that we were assigned, read to its end
    planner.commit_due(now)                           # a claim can be made, or others wait: open a transaction

    for read in planner.plan(now, count):             # streams, read_to or after, limit
        …query rows with time > after, or >= lowest_uuid(read_to), and < lowest_uuid(limit)…
        planner.is_current(read)                      # asked before anything of a page is produced
        planner.advance(read, stream, cdc_time)       # after each whole batch was produced
        planner.finish(read)                          # the paged query has ended
        planner.interrupt(read)                       # … or broke off: it is planned again from where it stood
        planner.fail(read, reason)                    # … or can never go on

    for sweep in planner.sweeps(now, every_ms):       # instead of many such reads: arcs of the ring, lower, upper
        …query the first row of each stream in the arcs with lower <= time < upper…
        planner.swept(sweep, {stream: ms})            # the paged queries have ended; who has rows is read next
        planner.swept(sweep, {…}, through=arcs)       # … or some of them: who has streams elsewhere is read
        planner.parts(sweep, arc)                     # what to ask for in place of an arc that was refused
        planner.unswept(sweep)                        # … or broke off: all of them are read

    for opening in planner.openings(now):             # rows of a snapshot: tokens opening.left, of opening.state
        …read rows from now on, note the changes delivered meanwhile…
        planner.stands(opening)                       # the ms as of which they are to be shown, if it is time
        planner.placed(opening, span)                 # after all rows of the tokens in the span were produced

    commit = planner.commit_entries(now, move_marks)  # produce commit.entries in order, name commit.slots
    planner.committed()                               # or aborted(), after a *confirmed* abort
    planner.forget()                                  # unknown outcome, fenced: restore the returned slots again
    planner.release(slots)                            # revoked or lost, after committed() or aborted()
"""

from __future__ import annotations

from connector.topology.groups import GroupState, Read, Sweep
from connector.topology.kept import ttl_of_unread
from connector.topology.lineage import Observed, View
from connector.topology.looks import Held, beyond
from connector.topology.offsets import (
    Inside,
    Mark,
    MarkKey,
    Position,
    PositionKey,
    ProgressKey,
    Snapshot,
    SnapshotKey,
    check_entry,
    known_key,
    mark_entry,
    noted_slots,
    parse_key,
    parse_mark,
    parse_position,
    parse_snapshot,
    position_entry,
    progress_entry,
    snapshot_entry,
    told_apart,
)
from connector.topology.planner import Planner
from connector.topology.roles import (
    CommitsPlan,
    KeptPlan,
    LooksPlan,
    Plan,
    ReadsPlan,
    SetsPlan,
    SlotsPlan,
    SnapshotsPlan,
    TablesPlan,
    WishesPlan,
)
from connector.topology.sets import StreamSet, tablet_set, vnode_set
from connector.topology.slots import slot_of
from connector.topology.snapshot_state import Action, Event, Opening, Span, Wish
from connector.topology.snapshots import forgotten, joined, last_snapshot, last_snapshots, share_done, without
from connector.topology.snapshots import over as snapshot_over
from connector.topology.snapshots import passed_over as snapshot_passed_over
from connector.topology.snapshots import running as running_snapshot
from connector.topology.standing import committed_in, slots_stand, visible_to
from connector.topology.streams import MAX_TOKEN, MIN_TOKEN, StreamId, token_of
from connector.topology.table_state import TableState
from connector.topology.tenure import (
    TENURE_SLOT,
    InTheWay,
    Look,
    Members,
    Tenure,
    Unrecorded,
    Write,
    holder,
    parse_tenure,
    take,
    tenure_entry,
)
from connector.topology.transitions import forget_transitions
from connector.topology.waiting import Reason, Waiting

__all__ = [
    "MAX_TOKEN",
    "MIN_TOKEN",
    "TENURE_SLOT",
    "Action",
    "CommitsPlan",
    "Event",
    "GroupState",
    "Held",
    "InTheWay",
    "Inside",
    "KeptPlan",
    "Look",
    "LooksPlan",
    "Mark",
    "MarkKey",
    "Members",
    "Observed",
    "Opening",
    "Plan",
    "Planner",
    "Position",
    "PositionKey",
    "ProgressKey",
    "Read",
    "ReadsPlan",
    "Reason",
    "SetsPlan",
    "SlotsPlan",
    "Snapshot",
    "SnapshotKey",
    "SnapshotsPlan",
    "Span",
    "StreamId",
    "StreamSet",
    "Sweep",
    "TableState",
    "TablesPlan",
    "Tenure",
    "Unrecorded",
    "View",
    "Waiting",
    "Wish",
    "WishesPlan",
    "Write",
    "beyond",
    "check_entry",
    "committed_in",
    "forget_transitions",
    "forgotten",
    "holder",
    "joined",
    "known_key",
    "last_snapshot",
    "last_snapshots",
    "mark_entry",
    "noted_slots",
    "parse_key",
    "parse_mark",
    "parse_position",
    "parse_snapshot",
    "parse_tenure",
    "position_entry",
    "progress_entry",
    "running_snapshot",
    "share_done",
    "slot_of",
    "slots_stand",
    "snapshot_entry",
    "snapshot_over",
    "snapshot_passed_over",
    "tablet_set",
    "take",
    "tenure_entry",
    "token_of",
    "told_apart",
    "ttl_of_unread",
    "visible_to",
    "vnode_set",
    "without",
]
