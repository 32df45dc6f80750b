"""What a table's plan knows of its snapshot beyond what is committed: openings, and what the open transaction has.

In: nothing. Out: plain state; the rules are in `snapshots.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from connector.table_name import TableName
from connector.topology.groups import GroupState
from connector.topology.offsets import Inside, Reached, Snapshot
from connector.topology.sets import StreamSet

#: Tokens behind the first, up to and with the second. No key has the first token of the ring.
Span = tuple[int, int]

#: How far a snapshot got in a slot, behind a token.
Progress = dict[tuple[int, str, int], Reached]


@dataclass(slots=True, eq=False)
class Opening:
    """A group's part of a snapshot. ``left``: what is not placed yet, in the order of tokens; ``behind``: where the
    first of it began; ``inside``, by the token in front of them, partitions of which a part is placed."""

    state: GroupState
    table: TableName
    snapshot: str
    kind: str
    left: list[Span]
    inside: dict[int, Inside]
    behind: int | None = None


@dataclass(slots=True)
class StagedSnapshots:
    """The part of a commit that is about snapshots."""

    changed: dict[str, Snapshot] = field(default_factory=dict)
    progress: Progress = field(default_factory=dict)
    outdated: list[tuple[int, str, int]] = field(default_factory=list)


@dataclass(slots=True)
class SnapshotState:
    """``initial``: a table that is started gets a snapshot. ``openings`` by group stand until an abort, or until their
    group's range or owner changes."""

    initial: bool
    openings: dict[GroupState, Opening] = field(default_factory=dict)
    produced: Progress = field(default_factory=dict)
    staged: StagedSnapshots | None = None
    spans: tuple[StreamSet, dict[bytes, list[Span]]] | None = None
