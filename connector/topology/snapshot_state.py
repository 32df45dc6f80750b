"""What a table's plan knows of its snapshot beyond what is committed: openings, and what the open transaction has.

In: nothing. Out: plain state; the rules are in `snapshots.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from connector.table_name import TableName
from connector.timeuuid import TICKS_PER_MS, made_ticks
from connector.topology.groups import GroupState
from connector.topology.offsets import Inside, Reached, Snapshot
from connector.topology.sets import StreamSet

Action = Literal["start", "stop", "pause", "resume"]

#: Tokens behind the first, up to and with the second. No key has the first token of the ring.
Span = tuple[int, int]

#: How far a snapshot got in a slot, behind a token.
Progress = dict[tuple[int, str, int], Reached]


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants of a table's snapshots."""

    number: int
    action: Action
    id: str
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """An entry of a snapshot was committed here. ``before``: what it was; None: it is new."""

    table: TableName
    name: str
    before: Snapshot | None
    after: Snapshot


@dataclass(slots=True, eq=False)
class Opening:
    """A group's part of a snapshot, which is made since ``since`` (ms). ``left``: what is not placed yet, in the order
    of tokens; ``began``: where each interval that is placed began, by its last token; ``inside``, by the token in front
    of them, partitions of which a part is placed."""

    state: GroupState
    table: TableName
    snapshot: str
    kind: str
    where: str | None
    since: int
    left: list[Span]
    inside: dict[tuple[int, str | None], Inside]
    began: dict[int, int] = field(default_factory=dict)

    def start(self, behind: int, table_id: str) -> Inside | None:
        """Where to go on in the partition behind a token. What was placed of a table that had the name before is no
        part of this one's; nor is what names no table, where this one is younger than the snapshot."""
        made = made_ticks(table_id)
        unnamed = None if made is not None and made > self.since * TICKS_PER_MS else self.inside.get((behind, None))
        return self.inside.get((behind, table_id), unnamed)


@dataclass(slots=True)
class StagedSnapshots:
    """The part of a commit that is about snapshots."""

    changed: dict[tuple[int, str], Snapshot | None] = field(default_factory=dict)
    progress: Progress = field(default_factory=dict)
    outdated: list[tuple[int, str, int]] = field(default_factory=list)


@dataclass(slots=True)
class SnapshotState:
    """``initial``: a table that is started gets a snapshot; ``start``: so does one whose connector is, under this name;
    ``when_needed``: so does one of which changes expired unread, in slots that are ``needed``. ``hears_from``: the
    number of the first of the ``wishes`` that count if none is noted, None: none are heard yet; ``hears``: of which
    topic, its name and what it is told from others of that name by, if that is known. ``openings`` by group
    stand until an abort, or until their group's range or owner changes."""

    initial: bool
    start: str | None = None
    when_needed: bool = False
    needed: set[int] = field(default_factory=set)
    hears_from: int | None = None
    hears: str | None = None
    wishes: list[Wish] = field(default_factory=list)
    openings: dict[GroupState, Opening] = field(default_factory=dict)
    produced: Progress = field(default_factory=dict)
    staged: StagedSnapshots | None = None
    events: list[Event] = field(default_factory=list)
    spans: tuple[StreamSet, dict[bytes, list[Span]]] | None = None
