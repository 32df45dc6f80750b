"""The state of one table's plan: what is known of its streams and slots, and the questions that this alone answers.

`claims`, `commits`, `looks`, `waiting` and `standing` work on it; `TableReader` is the state with what changes it.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from connector.table_name import TableName
from connector.topology.book import SlotBook
from connector.topology.gates import blocking
from connector.topology.groups import Gate, GroupState, Read, Saved, Silence, Sweep
from connector.topology.kept import Kept
from connector.topology.ledger import Ledger, start_of
from connector.topology.lineage import Lineage
from connector.topology.offsets import Mark, Position
from connector.topology.sets import StreamGroup, StreamSet
from connector.topology.slots import home_slot
from connector.topology.snapshot_state import SnapshotState, StagedSnapshots
from connector.topology.streams import RING, arcs_of, token_of

# The least time between the end of a stream and the look beyond it, and between two looks: gossip of a new stream set
# takes seconds where a node is busy, and clocks are off by less.
LEAST_GRACE_MS = 10_000


@dataclass(slots=True)
class Staged:
    """The part of a commit that concerns one table."""

    positions: list[tuple[int, GroupState | None, bytes, Position | None]] = field(default_factory=list)
    marks: dict[int, Mark] = field(default_factory=dict)
    claimed: set[int] = field(default_factory=set)
    snapshots: StagedSnapshots = field(default_factory=StagedSnapshots)


class TableState:
    """Times are ms since 1970 by one clock, which may step.

    A group more than ``laggard_ms`` behind does not hold the mark of its slot back, as long as the streams that then
    need a position of their own are no more than ``laggard_streams``, or a tenth of the slot's. ``grace_ms`` after its
    end a closed stream is looked at once more, and for the last time after ``last_look`` times as long; every
    ``search_ms`` somebody asks whether that is due. ``until_ms``: nothing from there on is read at all.

    ``oldest_mark``: of all slots, seen when nothing but the time was there to move one; None: look at each.
    ``silent_to``: where the least of the silent groups stands, as long as all are.
    ``refused``: groups that sweeps leave out, since they were refused; ``pieces``: see `arcs.py`.
    """

    laggard_ms = 10_000
    laggard_streams = 256
    search_ms = 500
    last_look = 4

    def __init__(
        self,
        table: TableName,
        book: SlotBook,
        confidence_ms: int,
        lookback_ms: int = 0,
        grace_ms: int | None = None,
        initial_snapshot: bool = False,
    ) -> None:
        self.table = table
        self.snapshots = SnapshotState(initial_snapshot)
        self.book = book
        self.confidence_ms = confidence_ms
        self.lookback_ms = lookback_ms
        self.until_ms: int | None = None
        self.home = home_slot(table, book.slots)
        self.lineage = Lineage(table, book.slots)
        self.polled_at: int | None = None
        self.last_limit: int | None = None
        self.failure: str | None = None
        self.gone = False
        self.kept = Kept()
        # Of which log the sets are; ``anew``: they are of another one, and cannot follow those that are known.
        self.log: str | None = None
        self.anew = False
        self.active: set[int] = set()
        self.announced: set[GroupState] = set()
        self.fresh: dict[GroupState, set[bytes]] = {}
        self.orphans: dict[int, set[bytes]] = {}
        self._finished: list[StreamGroup] = []
        self._heap: list[tuple[int, int, GroupState]] = []
        self._parked: dict[int, set[GroupState]] = {}
        self._numbers = itertools.count(1)
        self._undo: dict[GroupState, Saved] = {}
        self._taken_down: list[tuple[GroupState, Gate]] = []
        self._staged: Staged | None = None
        self._undo_later: dict[GroupState, Saved] = {}
        self.grace_ms = max(confidence_ms, LEAST_GRACE_MS) if grace_ms is None else grace_ms
        self.holding: dict[Read, list[GroupState]] = {}
        self.look_at = 0
        self.silences: dict[int, Silence] = {}
        self.sweep: Sweep | None = None
        self.sweep_due = 0
        # Of slots in which there are any.
        self._awake: dict[int, dict[GroupState, None]] = {}
        self._enough: frozenset[int] | None = None
        self._groups: int | None = None
        self.silent_to: int | None = None
        self.oldest_mark: int | None = None
        self._arcs: tuple[tuple[int, int], ...] | None = None
        self.refused: set[GroupState] = set()
        self.pieces: list[tuple[int, int, GroupState]] | None = None

    @property
    def newest(self) -> StreamSet | None:
        return self.lineage.newest

    def claimable(self) -> list[int]:
        """Slots that were restored and in which this table is not claimed yet."""
        if len(self.active) == len(self.book.own):
            return []
        return [slot for slot in sorted(self.book.own) if slot not in self.active]

    def own_ledger(self, slot: int) -> Ledger | None:
        own = self.book.own.get(slot)
        return None if own is None else own.table(self.table)

    def mark_of(self, slot: int) -> Mark | None:
        ledger = self.book.ledger(slot, self.table)
        return None if ledger is None or ledger.mark is None else self.as_ours(ledger.mark)

    def as_ours(self, mark: Mark) -> Mark:
        """What a mark says of this table, if its writer read one that had the name before: how far he has read, as
        nobody reads on without knowing whose sets he knows; of our sets nothing, and his may lie ahead of them all."""
        newest, before = self.lineage.newest, self.lineage.base - 1
        if newest is None or mark.log is None or mark.log == self.log:
            return mark
        stream_set, looked = min(mark.stream_set, newest.timestamp), min(mark.looked, before)
        return replace(mark, stream_set=stream_set, rechecked=min(mark.rechecked, before), looked=looked)

    def limit(self, now: int) -> int | None:
        """Nothing at or after this ms is read yet; None: nothing at all, until a poll answers.

        Behind ``now - confidence`` rows may still arrive out of order. Behind the start of the last good poll
        there may be a stream set that we do not know: a stream that grows at T and is read past T before T is
        learnt delivers rows of keys whose earlier rows still wait in the stream that closed. A quarter of the
        confidence window is left to nodes that learn of a set late; while polls succeed at their usual pace (every
        half of it) the first bound is the lower one, and this costs no latency.
        """
        # A poll that started "later than now" was timed by a clock that has since stepped back: it vouches for nothing.
        if self.polled_at is None or self.polled_at > now or self.anew:
            return None
        limit = min(now - self.confidence_ms, self.polled_at - self.confidence_ms // 4)
        return limit if self.until_ms is None else min(limit, self.until_ms)

    def knows_enough(self, slot: int) -> bool:
        """What we know of the stream sets suffices to go on where the slot's mark stands.

        Not while its ``stream_set`` is newer than all we know: the predecessor knew a set that the nodes
        asked so far hide from us. We do not know the streams it opened; were we to move the mark on, they
        would later start at it, and their rows below would be lost.
        """
        mark, newest = self.mark_of(slot), self.lineage.newest
        if mark is None or newest is None or newest.timestamp < mark.stream_set:
            return False
        # Older sets were left out by our own idea of the lookback, and the table was started further back.
        return not self.lineage.trimmed or mark.read_to >= self.lineage.base

    def readable(self, slot: int) -> bool:
        """The slot is ours, the claim is committed, and nothing stands against reading the table in it."""
        return slot in self.active and self.failure is None and self.knows_enough(slot)

    def readable_slots(self) -> frozenset[int]:
        """All that are `readable`. What we know suffices for good, until the sets are others, or the slots."""
        if self._enough is None:
            self._enough = frozenset(slot for slot in self.active if self.knows_enough(slot))
        return self._enough if self.failure is None else frozenset()

    def blocking(self, state: GroupState) -> tuple[Gate, GroupState] | None:
        """The first gate in front of a group that is still shut, and one group that keeps it shut."""
        before = state.gates
        shut = blocking(state, self.reached, self.committed_to)
        if len(state.gates) < len(before):
            self._taken_down += [(state, gate) for gate in before if gate not in state.gates]
        return shut

    def reached(self, source: GroupState, at: int) -> bool:
        """``source`` is delivered up to ``at``: produced by us, in front of whatever waits for it, or
        committed by others.

        What others have produced is not enough: their transaction may yet abort, and come again behind our
        rows.
        """
        if source.slot in self.active:
            return source.read_to >= at
        return self.committed_to(source, at)

    def committed_to(self, source: GroupState, at: int) -> bool:
        """All streams of ``source`` start at ``at`` or later by what is committed. Only ``read_to`` counts,
        not ``after``."""
        return self.committed_up_to(source) >= at

    def committed_up_to(self, source: GroupState) -> int:
        """Where the lowest stream of ``source`` starts by what is committed; -1: nothing is known."""
        ledger = self.book.ledger(source.slot, self.table)
        if ledger is None:
            return -1
        # Without positions all streams of a group start at the same place.
        streams = source.group.streams if ledger.positions else source.group.streams[:1]
        starts = [start_of(ledger, stream, source.opened, source.close, source.opened_known) for stream in streams]
        return min(-1 if start is None else start.read_to for start in starts)

    def states(self) -> Iterator[GroupState]:
        return itertools.chain.from_iterable(self.lineage.by_slot.values())

    def awake_in(self, slot: int) -> tuple[GroupState, ...]:
        """The groups of one of our slots, but for the silent ones, about which there is nothing to say."""
        return tuple(self._awake.get(slot, ()))

    @property
    def groups(self) -> int:
        """How many there are in our slots."""
        if self._groups is None:
            self._groups = sum(len(self.lineage.groups(slot)) for slot in self.active)
        return self._groups

    def all_awake(self) -> Iterator[GroupState]:
        """Those of all slots."""
        return itertools.chain.from_iterable(self._awake.values())

    @property
    def asleep(self) -> bool:
        """All groups of our slots are silent."""
        return not self._awake

    @property
    def awake(self) -> int:
        """How many groups are read one by one."""
        ended = sum(len(self.lineage.closed(slot)) for slot in self._awake) if self.lineage.any_closed else 0
        return sum(map(len, self._awake.values())) - ended

    def wake(self, state: GroupState) -> bool:
        """From here on the group is read by itself, once it is settled; whether it was not before."""
        if state.silence is None and state.swept is None:
            return False
        state.swept = None
        if state.silence is not None:
            state.stir()
            self.silent_to = None
            self._awake.setdefault(state.slot, {})[state] = None
        return True

    def hush(self, state: GroupState, silence: Silence) -> None:
        """The group moves with the others of its slot in which nothing happens."""
        state.hush(silence)
        self._no_more_awake(state)

    def _no_more_awake(self, state: GroupState) -> None:
        awake = self._awake.get(state.slot, {})
        awake.pop(state, None)
        if not awake:
            self._awake.pop(state.slot, None)

    def is_uncommitted(self, state: GroupState) -> bool:
        """An abort would take something of it back, or a commit has something to say of it."""
        return state in self._undo or state in self._undo_later or state in self.fresh or state in self.announced

    def arcs(self) -> tuple[tuple[int, int], ...]:
        """Where on the ring the streams of our slots are, see `sweeps.arcs_of`."""
        if self._arcs is None:
            elsewhere = any(states for slot, states in self.lineage.by_slot.items() if slot not in self.active)
            groups = (state.group for slot in self.active for state in self.lineage.groups(slot))
            self._arcs = (
                arcs_of(token_of(stream) for group in groups for stream in group.streams) if elsewhere else RING
            )
        return self._arcs

    def _ready(self, state: GroupState) -> bool:
        if state.reading is not None or state.silence is not None or state.swept is not None or state.holds:
            return False
        stopped = state.failure is not None and not state.again
        return not stopped and self.readable(state.slot)

    def settle(self, state: GroupState) -> None:
        """Put a group where it belongs: into the queue, or behind the group that it waits for, or nowhere."""
        if state.queued or state.drained or not self._ready(state):
            return
        shut = self.blocking(state)
        if shut is not None and state.read_to >= shut[0].at:
            witness = shut[1]
            witness.waiters.append(state)
            if self.wake(witness):
                self.settle(witness)
            if witness.slot not in self.active:
                self._parked.setdefault(witness.slot, set()).add(witness)
            return
        state.queued = True
        self.book.stirs += 1
        heapq.heappush(self._heap, (state.turn, next(self._numbers), state))

    def passed(self, state: GroupState) -> int | None:
        """The newest change that others wait for and that the group has passed."""
        if not state.watched:
            return None
        read_to = state.read_to
        return max((at for at in state.watched if at <= read_to), default=None)

    def touch(self, state: GroupState) -> None:
        undo = self._undo if self._staged is None else self._undo_later
        if state not in undo:
            undo[state] = state.save()

    def touched(self) -> list[GroupState]:
        """Groups that have something to say in the next commit even where no mark moves."""
        return list(dict.fromkeys([*self.fresh, *self.announced]))

    def visible_to(self, state: GroupState) -> int:
        """Everything of the group before this ms is committed; its rows in the open transaction are not."""
        saved = self._undo.get(state) if state in self.fresh else None
        return state.read_to if saved is None else min(state.read_to, state.stood_at(saved))
