"""A chunk of a table's rows from when it is asked for until its rows are placed, with every change since.

In: the rows of one read, the changes of its group as they are delivered, rows of partitions that were read again. Out:
whole rows as of a moment; which partitions no SELECT has told enough of yet. Knows no planner, no connection.

Of a partition that is in doubt nothing is thrown away: it goes on being folded, and what it knows is taken over by the
fold of what was read again. A row's marker, or the keys of a list, need to be seen once in all that time. The others do
not wait for it: it is a hole in what is done, as wide as its token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from connector.changes import (
    Batch,
    Doubtful,
    FoldedPartition,
    Left,
    LogLayout,
    Row,
    TableDescription,
    UncutPartitions,
    WholeBatches,
    WholeRows,
    straight_layout,
)
from connector.cql_names import quote_identifier
from connector.errors import PoisonRow
from connector.source.chunks import BYTES_OF_A_ROW, Chunk, Partitions, token_of_key
from connector.table_name import TableName
from connector.timeuuid import time_uuid
from connector.topology import Inside, Opening, Span

_WHEN = 10  # ticks of a time UUID in a microsecond

Rows = Mapping[Row, Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Ready:
    """Partitions that may be placed: their keys, how many rows each has, and their batches."""

    keys: list[Row] | Left
    rows: list[int]
    batches: Sequence[Batch]

    def __bool__(self) -> bool:
        return bool(self.keys)

    def behind(self, count: int) -> Ready:
        """Without the first ones."""
        return Ready(self.keys[count:], self.rows[count:], self.batches[count:])


@dataclass(slots=True, eq=False)
class HeldChunk:
    """``low``: the token behind which it begins, or ``start`` inside the partition behind it. Once it is read:
    ``upto``, its last token, or in the partition behind that ``stop``; ``tokens``: the first and the last one of its
    rows; ``since``: T1. Once some of it is placed:
    ``low``, up to which it is done but for the tokens in ``holes``.

    ``noted``: changes since T0 of partitions that are being read. What came since is in ``folded``; what is in the
    fold of a later read, in ``renewed``, counts once its own T1 has passed."""

    opening: Opening
    shape: WholeRows
    low: int
    start: Inside | None = None
    upto: int | None = None
    tokens: Span = (0, 0)
    stop: Inside | None = None
    since: int = 0
    partitions: Partitions = field(default_factory=dict)
    noted: dict[Row, list[Batch]] = field(default_factory=dict)
    folded: dict[Row, FoldedPartition] = field(default_factory=dict)
    broken: set[Row] = field(default_factory=set)
    asked_again: frozenset[Row] = frozenset()
    renewed: dict[Row, FoldedPartition | None] = field(default_factory=dict)
    renewed_since: int = 0
    doubted: dict[Row, str] = field(default_factory=dict)
    holes: set[int] = field(default_factory=set)
    tries: int = 0
    bytes: int = 0
    reading: bool = True
    not_before: float = 0.0
    again_at: float = 0.0

    @property
    def of(self) -> tuple[TableName, str]:
        """Whose it is: a table, and which snapshot of it."""
        return self.opening.table, self.opening.snapshot

    @property
    def is_part(self) -> bool:
        """Of a partition that is too large for one read."""
        return self.start is not None or self.stop is not None

    @property
    def description(self) -> TableDescription:
        return self.shape.description

    @property
    def asked_for(self) -> str:
        """Where its rows begin, for people, who may want to look at them."""
        token = f"token({', '.join(quote_identifier(column.name) for column in self.description.partition_key)})"
        if self.asked_again:
            # All else may be placed, up to far behind them.
            return f"rows of the partition with {token} = {min(map(token_of_key, self.asked_again))}"
        if self.start is not None:
            return f"rows of the partition with {token} = {self.low + 1}"
        return f"rows from {token} > {self.low} on"

    def concerns(self, token: int) -> bool:
        """Whether changes of partitions with a token may change it."""
        return self.upto is None or self.tokens[0] <= token <= self.tokens[1]

    def follow(self, key: Row, batch: Batch) -> None:
        """One more change of a partition is delivered."""
        if self.upto is None or key in self.asked_again:
            self.noted.setdefault(key, []).append(batch)
        if self.upto is None:
            return
        if (renewed := self.renewed.get(key)) is not None and not _apply(renewed, batch):
            del self.renewed[key]
        if key in self.broken or not (key in self.folded or self.partitions.get(key)):
            return
        if key not in self.folded:
            self.folded[key] = FoldedPartition(self.shape, self.partitions[key])
        if not _apply(self.folded[key], batch):
            del self.folded[key]
            self.broken.add(key)

    def arrived(self, chunk: Chunk, now_ms: int) -> None:
        self.since, self.reading = now_ms, False
        self.partitions, self.upto, self.stop, self.bytes = chunk.partitions, chunk.upto, chunk.inside, chunk.bytes
        # Of the partition behind the last token there is a part.
        self.tokens = self.low + 1, chunk.upto + (chunk.inside is not None)
        noted, self.noted = self.noted, {}
        for key, batches in noted.items():
            if not self.concerns(token_of_key(key)):
                continue
            for batch in batches:
                self.follow(key, batch)

    def ask_again(self) -> frozenset[Row]:
        """The partitions in doubt are read again from now on."""
        self.asked_again = frozenset(self.doubted)
        self.tries += 1
        self.reading = True
        return self.asked_again

    def arrived_again(self, found: Rows, now_ms: int) -> None:
        noted, self.noted = self.noted, {}
        self.renewed_since, self.reading = now_ms, False
        for key in self.asked_again:
            if key not in self.partitions:
                continue  # a change has told what it was, and it is placed
            rows = found.get(key)
            fold = FoldedPartition(self.shape, rows) if rows else None
            # Of a change that cannot be read nobody knows the effect: what counts is a read behind it.
            if fold is None or all(_apply(fold, batch) for batch in noted.get(key, ())):
                self.renewed[key] = fold
        self.asked_again = frozenset()

    def settle(self, at_ms: int) -> dict[Row, str]:
        """Bring what changed to a moment. What stays in doubt, and why."""
        self._renew(at_ms)
        self._let_end(at_ms)
        self.doubted = dict.fromkeys(self.broken, "a change of it cannot be read")
        for key, fold in self.folded.items():
            try:
                self.partitions[key] = fold.rows(at_ms * 1000)
            except Doubtful as doubt:
                self.doubted[key] = str(doubt)
        if self.doubted:
            # Some are placed and some stay: a matter of single ones.
            self._cut()
        return self.doubted

    def ready(self, at_ms: int, takes_uncut: Callable[[LogLayout], bool] | None = None) -> Ready:
        """After `settle`: what may be placed, in the order of tokens: all but what is in doubt, and has its token.
        ``takes_uncut``: whether somebody has a use for batches of a layout that nobody has made objects of."""
        shape, asked_for = self.shape, self.opening.kind == "incremental"
        # The last microsecond before: all that was delivered is as old or older, all that comes is younger.
        when = time_uuid((at_ms * 1000 - 1) * _WHEN, 0x7F7F7F7F7F7F7F7F)
        place = self.opening.state.group.streams[0], when
        straight = straight_layout(self.description, asked_for, bool(shape.timed))
        is_taken = takes_uncut is not None and takes_uncut(straight)
        if is_taken and isinstance(self.partitions, UncutPartitions):
            left = self.partitions.left()
            uncut = WholeBatches.as_selected(straight, shape, place, asked_for, left)
            return Ready(left, uncut.counts, uncut)
        doubted = self._doubted_tokens()
        known = (each for each in self._cut().items() if not doubted or token_of_key(each[0]) not in doubted)
        there = {key: rows for key, rows in known if rows}
        at_s = (at_ms * 1000 - 1) // 1_000_000
        if is_taken:
            # What shows nothing beside static values of which the part in front has told is no batch.
            if self.start is not None:
                there = {key: rows for key, rows in there.items() if any(shape.of_partition(rows, statics=False))}
            batches = WholeBatches(
                straight, shape, place, asked_for, list(there.values()), statics=self.start is None, at_s=at_s
            )
            return Ready(list(there), batches.counts, batches)
        keys: list[Row] = []
        made: list[Batch] = []
        ready = Ready(keys, [], made)
        for key, rows in there.items():
            logged = list(shape.of_partition(rows, self.start is None, asked_for, at_s))
            if logged:
                keys.append(key)
                ready.rows.append(len(logged))
                made.append(Batch(shape.layout, *place, logged))
        return ready

    def _doubted_tokens(self) -> set[int]:
        """Partitions that share a token are done together, or not at all."""
        return {token_of_key(key) for key in self.doubted}

    def done(self, last: int) -> list[Span]:
        """All that may be placed up to a token is placed: which tokens are done with that, and were not before."""
        doubted = self._doubted_tokens()
        if self.is_part and doubted:
            # A part of one partition: the tokens in front of it are done, the rest of it waits for this part.
            before, self.low = self.low, max(doubted) - 1
            self.holes = doubted
            return [(before, self.low)] if before < self.low else []
        if self.is_part:
            self.holes = set()
        found = [(token - 1, token) for token in sorted(self.holes - doubted) if token <= last]
        self.holes -= {token for _, token in found}
        for token in sorted(token for token in doubted if self.low < token <= last):
            found.append((self.low, token - 1))
            self.holes.add(token)
            self.low = token
        if self.low < last:
            found.append((self.low, last))
            self.low = last
        return [(low, high) for low, high in found if low < high]

    def keep_holes(self) -> None:
        """All else is done."""
        self.partitions = {key: rows for key, rows in self._cut().items() if token_of_key(key) in self.holes}
        self.folded = {key: fold for key, fold in self.folded.items() if key in self.partitions}
        rows = list(chain.from_iterable(self.partitions.values()))
        self.bytes = sum(BYTES_OF_A_ROW + sum(len(cell or b"") for cell in row) for row in rows)

    def placed(self, keys: list[Row] | Left) -> None:
        """The first ones of those that were ready."""
        if isinstance(keys, Left):
            assert isinstance(self.partitions, UncutPartitions)
            self.partitions.forget(keys.numbers[-1])
            self.folded = {key: fold for key, fold in self.folded.items() if key in self.partitions}
            return
        for key in keys:
            del self.partitions[key]
            self.folded.pop(key, None)
            self.renewed.pop(key, None)

    def _cut(self) -> dict[Row, list[Row]]:
        """All of them as objects, from now on."""
        if isinstance(self.partitions, UncutPartitions):
            self.partitions = self.partitions.cut()
            self.bytes += BYTES_OF_A_ROW * sum(map(len, self.partitions.values()))
        return self.partitions

    def _let_end(self, at_ms: int) -> None:
        """Where a cell's time to live ended meanwhile, only a fold tells what is left of its row."""
        if not self.shape.timed:
            return
        for key, rows in self._cut().items():
            known = key in self.folded or key in self.broken
            if not known and any(self.shape.ends_by(row, at_ms // 1000) for row in rows):
                self.folded[key] = FoldedPartition(self.shape, rows)

    def _renew(self, at_ms: int) -> None:
        if not self.renewed or at_ms < self.renewed_since:
            return
        for key, fold in self.renewed.items():
            older = self.folded.pop(key, None)
            self.broken.discard(key)
            if fold is None:
                self.partitions[key] = []
            else:
                if older is not None:
                    fold.learn(older)
                self.folded[key] = fold
        self.renewed = {}


def _apply(fold: FoldedPartition, batch: Batch) -> bool:
    try:
        fold.apply(batch)
    except PoisonRow:
        return False
    return True
