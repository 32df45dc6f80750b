"""Snapshots of tables: rows are read in chunks, held until the changes have caught up, and placed among them.

In: a planner that says which tokens lack their rows, every batch that `Reading` delivers. Out: whole rows, handed to a
consumer at a moment when everything before it is delivered and nothing behind it. Queries wait in chore threads;
everything that changes state runs in the owner thread.

A chunk is read some time in [T0, T1]. Changes that are delivered from T0 on are noted. Once its group is delivered up
to a time P ≥ T1, every change before P is either in what was read or noted: a write is visible within the confidence
window, and reading stays behind by that. So what was read, with the noted changes applied in order, is the row at P,
and goes out there. Where that cannot be computed (`Doubtful`) the partition is read again, with its own T0 and T1.

What was read must not be younger than P either: a consumer would see the changes up to it once more, and the row go
back. So T1 is not where the slowest clock stands, as for changes, but behind the fastest one of who writes: a server is
asked for its time after each read, as clocks step, and clients' own are given a quarter of the confidence window.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Protocol

from connector.changes import Batch, LogLayout, Row
from connector.errors import PoisonRow, ReplicasAway, RetriableSourceError
from connector.pauses import doubled
from connector.source.background import Background
from connector.source.chores import Chores
from connector.source.chunks import Chunk, Question, read_chunk, read_part, read_partitions, token_of_key
from connector.source.connection import Connection
from connector.source.consumer import Postponed
from connector.source.held_chunk import HeldChunk
from connector.source.lagging import OtherSchema
from connector.source.limits import SnapshotPace
from connector.source.refused_rows import RefusedRows
from connector.source.settings import SnapshotSettings
from connector.source.tables import Tables
from connector.table_name import TableName
from connector.topology import GroupState, Opening, Read, SnapshotsPlan, Span, joined, without

log = logging.getLogger(__name__)

# Chore threads are few, and stream sets and claims need them as well.
CHUNKS_AT_ONCE = 2

CHUNK, AGAIN = "chunk", "again"

# What a window has held back is ripe all at once; changes do not wait until all of it is placed.
ROWS_A_ROUND = 2_000

# How often groups are looked for that can begin.
OPENINGS_SECONDS = 0.5

# What is in doubt is looked at so often, and read again with growing pauses; each so many times are told.
DOUBT_SECONDS = 0.05

# So many partitions of a group may wait while those behind them are placed: each is a hole in what is done, and an
# entry of the offsets topic. If there are more, what is behind them waits as well.
MOST_ASIDE = 100
LONGEST_PAUSE_SECONDS = 5.0
TRIES = 8

# What cannot be delivered is tried again after so long.
POISON_SECONDS = 60.0


class SnapshotConsumer(Protocol):
    """Whoever delivers."""

    def place(self, read: Opening, batches: Sequence[Batch]) -> int:
        """Called with whole partitions. How many of them, from the first, now count as produced; raises as
        `Consumer.deliver`."""


@dataclass(slots=True)
class SnapshotCounters:
    """What `status` and metrics show, by table and snapshot."""

    rows: Counter[tuple[TableName, str]] = field(default_factory=Counter)
    chunks: Counter[tuple[TableName, str]] = field(default_factory=Counter)
    rereads: Counter[tuple[TableName, str]] = field(default_factory=Counter)


class Snapshots:
    """Of one process."""

    doubt_seconds = DOUBT_SECONDS

    def __init__(
        self,
        *,
        planner: SnapshotsPlan,
        connection: Connection,
        settings: SnapshotSettings,
        chores: Chores,
        tables: Tables,
        consumer: SnapshotConsumer,
        background: Background,
        takes_uncut: Callable[[LogLayout], bool] | None = None,
    ) -> None:
        """``takes_uncut``: whether the consumer has a use for batches of a layout that nobody has made objects of."""
        self._planner = planner
        self._connection = connection
        self._settings = settings
        self._chores = chores
        self._tables = tables
        self._consumer = consumer
        self._takes_uncut = takes_uncut
        self._refused = RefusedRows(background)
        self._pace = SnapshotPace(settings.max_queries_per_second, time.monotonic())
        self._openings: list[Opening] = []
        self._openings_due = 0.0
        # In the order of tokens: they are placed in that order, so that progress is one token.
        self._held: dict[GroupState, deque[HeldChunk]] = {}
        # What is left of those that are placed but for partitions in doubt.
        self._aside: dict[GroupState, list[HeldChunk]] = {}
        self._under_way: Counter[str] = Counter()
        self._turn = 0
        self.counters = SnapshotCounters()

    @property
    def held_bytes(self) -> int:
        return sum(held.bytes for held in self._all())

    def _all(self) -> Iterator[HeldChunk]:
        return chain.from_iterable((*self._held.values(), *self._aside.values()))

    @property
    def busy(self) -> bool:
        """There is something to be read or placed."""
        return bool(self._openings or self._held or self._aside)

    def undecided(self, table: TableName) -> int:
        """Partitions that are read again, as what was read does not tell what they are."""
        return sum(len(held.doubted) for held in self._all() if held.opening.table == table)

    def refused(self, table: TableName) -> int:
        """Of how many groups of streams rows are refused now, or cannot be delivered."""
        return self._refused.count(table)

    def held_bytes_of(self, table: TableName) -> int:
        return sum(held.bytes for held in self._all() if held.opening.table == table)

    # -- noting ----------------------------------------------------------------------------------------------

    def delivered(self, read: Read, batches: Sequence[Batch]) -> None:
        """`Reading` has handed these on."""
        concerned = [*self._held.get(read.state, ()), *self._aside.get(read.state, ())]
        if not concerned:
            return
        for batch in batches:
            layout = batch.layout
            row = batch.rows[0]
            key = tuple(row[place.value or 0] for place in layout.partition_key)
            token = token_of_key(key)
            for held in concerned:
                if held.concerns(token):
                    held.follow(key, batch)

    # -- the owner's round -----------------------------------------------------------------------------------

    def pump(self, now_ms: int) -> bool:
        """Place what can be placed, read what there is room for. Exceptions of the consumer go through, all but
        Postponed and PoisonRow. True if there is more to be placed at once: changes have their turn in between."""
        now = time.monotonic()
        self._forget_void()
        if now >= self._openings_due:
            self._openings_due = now + OPENINGS_SECONDS
            self._openings = self._planner.openings(now_ms)
            self._refused.keep(self._openings)
        self._place_aside(now)
        left = ROWS_A_ROUND
        for state in list(self._held):
            left -= self._place_of(state, now, left)
            if left <= 0:
                # The next round begins with the others.
                if state in self._held:
                    self._held[state] = self._held.pop(state)
                break
        self._read_more(now)
        return left <= 0

    def _forget_void(self) -> None:
        for state, queue in list(self._held.items()):
            if not queue or not self._planner.is_open(queue[0].opening):
                del self._held[state]
        for state, aside in list(self._aside.items()):
            if not aside or not self._planner.is_open(aside[0].opening):
                del self._aside[state]

    # -- reading ---------------------------------------------------------------------------------------------

    def _read_more(self, now: float) -> None:
        reading = self._under_way[CHUNK]
        if not self._openings or reading >= CHUNKS_AT_ONCE:
            return
        room = self._settings.max_bytes - self.held_bytes - reading * self._settings.chunk.bytes
        for number in range(len(self._openings)):
            opening = self._openings[(self._turn + number) % len(self._openings)]
            if self._under_way[CHUNK] >= CHUNKS_AT_ONCE or room <= 0 or not self._pace.take(now):
                return
            if self._begin(opening, now):
                self._turn += number + 1
                room -= self._settings.chunk.bytes
            else:
                self._pace.give_back()

    def _begin(self, opening: Opening, now: float) -> bool:
        if self._refused.rests(opening, now):
            return False
        if not self._planner.is_open(opening) or self._tables.stopped(opening.table):
            return False
        queue = self._held.get(opening.state, deque())
        before = queue[-1] if queue else None
        if before is not None and before.upto is None:
            return False
        aside = [(token - 1, token) for held in self._aside.get(opening.state, ()) for token in held.holes]
        span = _next_span(without(opening.left, joined(aside)), before.upto if before is not None else None)
        if span is None:
            return False
        description = self._tables[opening.table].description
        table_id = description.table_id
        start = opening.start(span[0], table_id) if before is None or before.upto != span[0] else before.stop
        question = Question(description, opening.where, self._settings.dated)
        held = HeldChunk(opening, question.shape, span[0], start)
        self._held.setdefault(opening.state, queue).append(held)
        read = partial(read_chunk, self._connection, question, span, start, self._settings.chunk)
        self._refused.begun(opening)
        self._ask(CHUNK, held, read, self._arrived)
        return True

    def _ask(self, what: str, held: HeldChunk, call: Callable[[], object], then: Callable[..., None]) -> None:
        self._under_way[what] += 1

        def done(result: object, error: BaseException | None) -> None:
            self._under_way[what] -= 1
            if what is CHUNK:
                self._refused.ended(held.opening)
            state = held.opening.state
            there = held in self._held.get(state, ()) or held in self._aside.get(state, ())
            if not there or not self._planner.is_open(held.opening):
                return
            if error is not None:
                self._failed(held, error)
                self._drop_from(held)
                return
            if what is CHUNK:
                # Of a group of which a chunk is refused others may be read again all the time.
                self._refused.worked(held.opening)
            then(held, result)

        self._chores.submit(partial(self._read, call), done)

    def _failed(self, held: HeldChunk, error: BaseException) -> None:
        now, passes = time.monotonic(), isinstance(error, RetriableSourceError) and not isinstance(error, OtherSchema)
        self._refused.failed(held.opening, held.asked_for if passes else None, error, now)
        if passes and not isinstance(error, ReplicasAway):
            # Only who is asked too much answers better when asked less.
            self._pace.failed(now)
        self._tables.ask(held.opening.table)

    def _read(self, call: Callable[[], object]) -> object:
        """In a chore thread."""
        found = call()
        *_, refused = self._connection.ask_a_clock().values()
        if refused is not None:
            raise refused
        return found

    def _arrived(self, held: HeldChunk, chunk: Chunk) -> None:
        self._pace.answered(chunk.seconds, chunk.pages, time.monotonic())
        held.arrived(chunk, self._behind_all_written())
        self.counters.chunks[held.of] += 1

    def _drop_from(self, held: HeldChunk) -> None:
        """Read it again, and with it what comes behind it."""
        if held in (aside := self._aside.get(held.opening.state, [])):
            aside.remove(held)
            return
        queue = self._held[held.opening.state]
        while queue and queue[-1] is not held:
            queue.pop()
        if queue:
            queue.pop()
        if not queue:
            del self._held[held.opening.state]

    # -- placing ---------------------------------------------------------------------------------------------

    def _place_of(self, state: GroupState, now: float, most: int) -> int:
        """How many rows were placed."""
        queue, count = self._held[state], 0
        while queue and count < most:
            held = queue[0]
            if held.upto is None or now < held.not_before:
                return count
            if self._is_outdated(held):
                self._drop_from(held)
                return count
            at = self._planner.stands(held.opening)
            if at is None or at < held.since:
                return count
            before = self.counters.rows[held.of]
            is_placed = self._place(held, at, now)
            count += self.counters.rows[held.of] - before
            if not is_placed or (held.holes and not self._is_left_aside(held)):
                return count
            queue.popleft()
            while queue and held.holes and held.is_part and queue[0].start is not None:
                # The rest of its partition is read again when this part is placed.
                queue.popleft()
        if not queue:
            del self._held[state]
        return count

    def _is_outdated(self, held: HeldChunk) -> bool:
        """A row is never shown by a description that is older than its columns."""
        table = held.opening.table
        return self._tables[table].description != held.description or self._tables.stopped(table)

    def _is_left_aside(self, held: HeldChunk) -> bool:
        """What is behind its holes does not wait for them."""
        aside = self._aside.setdefault(held.opening.state, [])
        if sum(len(each.holes) for each in (*aside, held)) > MOST_ASIDE:
            return False
        held.keep_holes()
        aside.append(held)
        return True

    def _place_aside(self, now: float) -> None:
        for state, aside in list(self._aside.items()):
            for held in list(aside):
                if now < held.not_before:
                    continue
                at = self._planner.stands(held.opening)
                if self._is_outdated(held) or (at is not None and self._place(held, at, now) and not held.holes):
                    aside.remove(held)
            if not aside:
                del self._aside[state]

    def _place(self, held: HeldChunk, at: int, now: float) -> bool:
        """All that is known of it as of ``at`` ms; what is not becomes its holes. False: not now, or only a part."""
        held.settle(at)
        table = held.opening.table
        waiting = held.ready(at, self._takes_uncut)
        while waiting:
            try:
                count = self._consumer.place(held.opening, waiting.batches)
            except Postponed:
                return False
            except PoisonRow as poison:
                log.error("%s: a row of the snapshot cannot be delivered: %s", table, poison)
                self._refused.not_delivered(held.opening, token_of_key(waiting.keys[0]), poison)
                held.not_before = now + POISON_SECONDS
                return False
            self.counters.rows[held.of] += sum(waiting.rows[:count])
            held.placed(waiting.keys[:count])
            if not held.is_part:
                self._done(held, token_of_key(waiting.keys[count - 1]))
            waiting = waiting.behind(count)
        assert held.upto is not None
        self._refused.delivered(held.opening, held.concerns)
        self._done(held, held.upto)
        if held.holes:
            held.not_before = now + self.doubt_seconds
            self._read_again(held, now)
        elif held.stop is not None:
            self._planner.placed(held.opening, (held.upto, held.upto), held.stop)
        return True

    def _done(self, held: HeldChunk, last: int) -> None:
        for span in held.done(last):
            self._planner.placed(held.opening, span)

    def _read_again(self, held: HeldChunk, now: float) -> None:
        """What no SELECT has told, another one may."""
        if held.reading or held.renewed or now < held.again_at or self._under_way[AGAIN] >= CHUNKS_AT_ONCE:
            return
        keys, table = held.ask_again(), held.opening.table
        held.again_at = now + doubled(self.doubt_seconds, held.tries + 1, LONGEST_PAUSE_SECONDS)
        self.counters.rereads[held.of] += len(keys)
        if held.tries % TRIES == 0:
            log.warning(
                "%s: the snapshot waits for %d partitions that change all the time, read %d times: %s",
                table, len(keys), held.tries, next(iter(held.doubted.values())),
            )  # fmt: skip
        question = Question(held.description, held.opening.where, self._settings.dated)
        if not held.is_part:
            ask = partial(read_partitions, self._connection, question, sorted(keys, key=token_of_key))
        else:
            (key,) = keys
            ask = partial(read_part, self._connection, question, key, held.start, held.stop)
        self._ask(AGAIN, held, ask, self._arrived_again)

    def _arrived_again(self, held: HeldChunk, found: dict[Row, list[Row]]) -> None:
        held.arrived_again(found, self._behind_all_written())

    def _behind_all_written(self) -> int:
        return self._connection.clock.latest_ms() + self._settings.clocks_apart_ms


def _next_span(left: Sequence[Span], behind: int | None) -> Span | None:
    """The tokens to be read next."""
    for low, high in left:
        if behind is None or behind < high:
            return (low if behind is None else max(low, behind)), high
    return None
