"""The contract between landing and a table format, in few verbs.

In: folders and frames. Out: tables that readers see whole commits of. ``append`` and ``replace_buckets`` each are one
atomic commit; if they raise, nothing of them is visible, and the caller may do the same again. ``delta`` and
``iceberg`` are the implementations; ``formats`` knows them by name.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_jobs.model import quoted

Result = TypeVar("Result")

NOTE = "scylla-cdc"
"""The name of the note in a published table's commit."""
SEEN = "seen"
"""What a note says of the look before its commit."""
_ATTEMPTS = 8
_MOST_AT_ONCE, _OPENED = 1 << 30, 256 << 10
"""Bytes that are compacted at once, at least a partition's, and as how many a file counts that has to be opened: who
waits for it waits for a minute at most, and no commit takes so long that what it needs is forgotten."""
_LARGE = 128 << 20
"""Bytes of a file that nobody reads faster as a part of a larger one: Spark reads it in pieces of this size."""


class LostRaceError(Exception):
    """Another writer's commit was first: what was to be written may be made of rows that are no more."""


def merge_text(relation: str, source: str, on: str, columns: Sequence[str], gone: str) -> str:
    """See `Publisher.merge`."""
    names = [quoted(name) for name in columns]
    return (
        f"MERGE INTO {relation} AS t USING {source} AS s ON {on} "
        f"WHEN MATCHED AND s.{quoted(gone)} THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{name} = s.{name}' for name in names)} "
        f"WHEN NOT MATCHED AND NOT s.{quoted(gone)} THEN INSERT ({', '.join(names)}) "
        f"VALUES ({', '.join(f's.{name}' for name in names)})"
    )


class Sink(Protocol):
    """Tables are named by a short path inside the warehouse, such as ``ks/t/state``."""

    def exists(self, table: str) -> bool:
        """Whether the table was created."""

    def prepare(self, table: str, columns: Mapping[str, str], partition_by: str, sorted_by: Sequence[str] = ()) -> None:
        """Creates the table, or adds the columns it lacks. Called before the first write of every table version.

        Files tell the bounds of columns that their rows are ``sorted_by``, so that readers of few keys skip files.
        """

    def relation(self, table: str) -> str:
        """The table as SQL text names it; also inside a permanent view."""

    def append(self, table: str, frame: DataFrame) -> None:
        """Adds the rows in one commit."""

    def replace_buckets(self, table: str, frame: DataFrame) -> None:
        """Replaces, in one commit, exactly those partitions of the table that the frame has rows for.

        Files are of bounded size, in the frame's order. The frame may read the table. If another writer changed it
        meanwhile, either the frame is read anew or ``LostRaceError`` is raised.
        """

    def delete(self, table: str, condition: str) -> None:
        """Removes the rows that meet the SQL condition, in one commit."""

    def compact(self, table: str, after: int | None = None, through: int | None = None) -> int | None:
        """Makes few large files of many small ones; changes no row. It does so of partitions behind ``after``, up to
        ``through``: of as many as take no long time. Returns the last of these where there are more."""

    def vacuum(self, table: str, older_than_ms: int) -> None:
        """Deletes files that no snapshot younger than this needs."""

    def sizes(self, table: str) -> Mapping[int, int]:
        """The bytes of each partition of the current snapshot, without reading a row."""

    def files(self, table: str) -> tuple[int, int]:
        """Number and bytes of the files that the current snapshot consists of."""


class Publisher(Protocol):
    """Tables that others read, named by a short path as well: ``ks/t``. Each commit carries a note.

    ``replace``, ``merge``, ``overwrite`` and ``stay`` take a ``turn``, one more than that of the commit which the
    caller's rows go on from. Of two commits with one turn the table takes the first; for the other there is
    ``LostRaceError``: who was paused so long that somebody else has published since changes nothing any more.
    """

    session: SparkSession
    """Of its own: its settings are nobody else's. Frames given to the publisher are of this session."""
    retention_ms: int | None
    """For how long earlier versions can be read; None where nobody says."""

    def relation(self, table: str) -> str:
        """The table as SQL text names it."""

    def schema(self, table: str) -> StructType | None:
        """Its columns; None if there is no such table."""

    def stored(self, schema: StructType) -> StructType:
        """These columns as a table of the format has them."""

    def note(self, table: str) -> Mapping[str, Any] | None:
        """What the last commit with a note says."""

    def is_own(self, table: str) -> bool:
        """Whether it is there and landing has made it, also where no commit with a note is left."""

    def changed_by_others(self, table: str) -> str | None:
        """What somebody else has done to the table's rows since the last commit with a note; None where that is
        nothing, or other files with the same rows."""

    def turn(self, table: str) -> int:
        """The number of the last commit that had one; 0 if none had."""

    def replace(
        self, table: str, frame: DataFrame, note: Mapping[str, Any], indexed: int, rows_per_file: int, turn: int
    ) -> None:
        """Makes the table these rows and columns, in one commit. Files are sorted by the first columns, and tell their
        bounds."""

    def widen(self, table: str, columns: StructType) -> None:
        """Adds columns, and further fields to those that are there."""

    def merge(
        self,
        table: str,
        frame: DataFrame,
        on: str,
        columns: Sequence[str],
        gone: str,
        note: Mapping[str, Any],
        turn: int,
    ) -> None:
        """Takes over rows ``s`` of the frame, which is a checkpointed one, that belong to the table's rows ``t`` by the
        condition ``on``, in one commit; rows with a true ``gone`` are removed."""

    def overwrite(self, table: str, frame: DataFrame, note: Mapping[str, Any], turn: int) -> None:
        """Makes the table's rows these, which have its columns, in one commit; all else of it stays."""

    def stay(self, table: str, note: Mapping[str, Any], turn: int) -> None:
        """A commit of its note alone: what has landed since changes no row."""

    def tidy(self, table: str) -> None:
        """Makes larger files of small ones, where there are many; changes no row, and writes little."""

    def enroll(self, table: str, name: str) -> None:
        """Makes the table known by a name in a catalog of the session, unless it is."""

    def compact(self, table: str) -> None:
        """Makes larger files of small ones, sorted again where much has changed; changes no row."""

    def vacuum(self, table: str, older_than_ms: int) -> None:
        """Deletes files that no snapshot younger than this needs."""


@dataclass(frozen=True)
class TableFormat:
    """What a session must have for a sink, and how the sink of a warehouse is opened in it.

    ``jar_sets`` are the pinned sets of jars that land with this format, by the names that set-up fetches them by.
    ``beside`` a published table ``t`` are those that landing keeps for itself, named ``t__`` and one of these. No
    published table can have a column with a ``reserved`` name. ``feedless`` says why one with columns and fields of
    certain names tells nobody of its changes; None if it does, or the format never does.
    """

    name: str
    jar_sets: tuple[str, ...]
    settings: Mapping[str, str]
    needs_class: str
    coordinate: str
    open: Callable[[SparkSession, str], Sink]
    publisher: Callable[[SparkSession, str], Publisher] | None = None
    beside: tuple[str, ...] = ()
    reserved: frozenset[str] = frozenset()
    feedless: Callable[[Iterable[str]], str | None] = lambda names: None


NOT_OURS = (
    "{place} is there already, and not by landing, so it is not replaced: move it away, or land into another warehouse"
)


def note_text(note: Mapping[str, Any]) -> str:
    """A note as a commit carries it."""
    return json.dumps({NOTE: dict(note)})


def with_seen(note: Mapping[str, Any], seen: int | None) -> Mapping[str, Any]:
    """With what was the table's newest commit at the look at what others did. They may commit between that look and the
    note's commit, which then goes on from theirs: the next look begins where this one did."""
    return note if seen is None else {**note, SEEN: seen}


def noted_in(text: str) -> Mapping[str, Any] | None:
    """Our note in a commit; None for a commit of somebody else."""
    try:
        noted = json.loads(text)[NOTE]
    except (LookupError, RecursionError, TypeError, ValueError):
        return None
    return noted if isinstance(noted, Mapping) else None


def retried(work: Callable[[], Result], lost_race: Callable[[Exception], bool]) -> Result:
    """Does the work again while others' commits are first."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return work()
        except Exception as error:
            if not lost_race(error):
                raise
    return work()


def portion(files: Iterable[tuple[int, int]], after: int | None, through: int | None) -> tuple[list[int], bool]:
    """Of files, each by its partition and its bytes: the first partitions with several small ones that are compacted at
    once, and whether there are more. What is compacted and has more than one file since would be in their way for good.

    >>> portion([(1, 5), (1, 5), (2, 5), (4, 1), (4, 1), (4, 1 << 30), (7, 1), (7, 1)], None, None)
    ([1], True)
    >>> portion([(1, 5), (1, 5), (2, 5), (4, 1), (4, 1), (4, 1 << 30), (7, 1), (7, 1)], 1, 4)
    ([4], False)
    >>> portion([(1, 1 << 30), (1, 1 << 29), (4, 1), (4, 1)], None, None)
    ([4], False)
    """
    found, small = Counter[int](), Counter[int]()
    for part, size in files:
        if (after is None or part > after) and (through is None or part <= through):
            found[part] += size + _OPENED
            small[part] += size < _LARGE
    several = [part for part in sorted(found) if small[part] > 1]
    taken, room = list[int](), _MOST_AT_ONCE
    for part in several:
        room -= found[part]
        if taken and room < 0:
            break
        taken.append(part)
    return taken, len(taken) < len(several)


def compact_all(sink: Sink, table: str) -> None:
    """Compacts a portion after the other."""
    after = sink.compact(table)
    while after is not None:
        after = sink.compact(table, after)


def replace_made(sink: Sink, table: str, made: Callable[[], DataFrame]) -> None:
    """Replaces buckets by what is made of the table's rows, made anew if another writer was first."""
    retried(lambda: sink.replace_buckets(table, made()), lambda error: isinstance(error, LostRaceError))
