"""Reading the changes of tables from Python, without Kafka.

In: how to connect, tables, a checkpoint. Out: an iterator of complete batches in each stream's order, and a checkpoint
that can be saved at any time and resumed from::

    with ChangeReader(ConnectionSettings((("127.0.0.1", 9042),)), ["ks.orders"], follow=True) as reader:
        for batch in reader:
            for change in changes_of(batch):
                print(change.kind, change.key, change.columns)
            checkpoint = reader.checkpoint()  # plain JSON
"""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

from connector.changes import Batch
from connector.cql_names import LOG_SUFFIX
from connector.errors import (
    CdcError,
    ConfigurationError,
    FatalDeliveryError,
    Problem,
    RetriableSourceError,
    SourceError,
)
from connector.offsets_entry import OffsetsEntry
from connector.source.background import Background, Failing
from connector.source.chores import ChoreDone, Chores
from connector.source.connection import Connection
from connector.source.datacenters import loose_datacenter
from connector.source.describing import Describing
from connector.source.horizon import expired
from connector.source.late_changes import LateChanges
from connector.source.log_reader import ReadEvent
from connector.source.reading import Reading
from connector.source.schema_versions import describe_table
from connector.source.settings import ConnectionSettings, ReadingSettings
from connector.source.tables import Tables
from connector.source.unread import Unread
from connector.source.watch import Watch
from connector.table_name import TableName
from connector.timeuuid import micros_of
from connector.topology import (
    Mark,
    MarkKey,
    Planner,
    Position,
    PositionKey,
    Read,
    check_entry,
    mark_entry,
    position_entry,
    visible_to,
)

log = logging.getLogger(__name__)

# A node that restarts, or a cluster that is upgraded node by node, is back by then. Who has to act wants to know.
PATIENCE_SECONDS = 120.0

# Of the time of whoever iterates, what it may take to look at all streams, of which there may be tens of thousands: how
# far each is, and whether one is FAILED.
SHARE_OF_LOOKS = 0.1

# One process, one claim: all streams belong to one slot.
SLOTS = 1


class ChangeReader:
    """An iterator of batches. What was handed out counts as delivered once the next one is asked for.

    ``from_ms``: begin there (default: with the oldest that exists); ignored where the checkpoint knows better.
    ``until_ms``: end when everything before it was read. ``follow``: go on for ever. Without either: end at now.
    ``patience``: so many seconds the watch for new streams, a read, or whatever else the reader needs, may fail
    without an end; then `RetriableSourceError` says which and why. Meanwhile it is logged every half minute, and
    what is known to be complete is read on. ``math.inf`` waits for ever.
    """

    def __init__(
        self,
        connection: ConnectionSettings,
        tables: Iterable[str | TableName],
        *,
        reading: ReadingSettings | None = None,
        checkpoint: str | None = None,
        from_ms: int | None = None,
        until_ms: int | None = None,
        follow: bool = False,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._settings = reading or ReadingSettings()
        self._names = [table if isinstance(table, TableName) else _table_name(table) for table in tables]
        self._connection = Connection(connection)
        self._from_ms = from_ms
        self._until_ms = until_ms
        self._follow = follow
        self._patience = patience
        self._background = Background()
        self._saved: dict[str, OffsetsEntry] = _parse(checkpoint)
        self._events: queue.Queue[ReadEvent | ChoreDone] = queue.Queue()
        self._ready: deque[Batch] = deque()
        # What was handed out since positions were noted, by stream: the time of its newest batch.
        self._handed: dict[PositionKey, bytes] = {}
        self._look_due = float("-inf")
        self._opened = False
        self.tables = Tables([])

    # -- life ------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Connect and describe the tables. Raises what is wrong with them."""
        self._connection.open()
        if (loose := loose_datacenter(self._connection.settings, self._connection.datacenters())) is not None:
            log.warning("%s", loose)
        self._connection.sample_clocks()
        self.tables = Tables(describe_table(self._connection, name) for name in self._names)
        now = self._connection.clock.now_ms()
        if self._until_ms is None and not self._follow:
            self._until_ms = now
        if self._until_ms is not None:
            # A reader that ends asks every group how far it is, and does not wait for the next sweep.
            self._settings = replace(self._settings, sweeps=False)
        self._planner = Planner(
            self._names,
            slots=SLOTS,
            owner="reader",
            confidence_ms=self._settings.confidence_ms,
            grace_ms=self._settings.grace_ms,
            # What lies behind is not read: whoever goes on from the checkpoint would take it for handed out.
            until_ms=self._until_ms,
        )
        self._chores = Chores(self._events.put)
        self._watch = Watch(
            planner=self._planner,
            connection=self._connection,
            settings=self._settings,
            chores=self._chores,
            tables=self.tables,
            background=self._background,
            describing=Describing(
                self._planner, self._connection, self._settings, self._chores, self.tables, self._background
            ),
        )
        self._reading = Reading(
            planner=self._planner,
            connection=self._connection,
            settings=self._settings,
            sink=self._events.put,
            consumer=self,
            tables=self.tables,
            background=self._background,
        )
        self.late = LateChanges(self._planner, self._connection, self._chores, self.tables, self._reading, self)
        told = expired(self._saved.values(), self.tables, now)
        for gone in told:
            log.warning("%s", gone)
        # What is asked for from a certain time on may be long gone, and was never here to be read.
        never = {(name, 0, None) for name in self._unsaved()}
        self._unread = Unread(
            self._planner,
            self.tables,
            lambda gone: log.warning("%s", gone),
            {(gone.table, gone.slot, gone.stream) for gone in told} | never,
        )
        self._planner.follow([], range(SLOTS))
        self._planner.restore(0, [*self._beginnings(), *self._saved.values()])
        self._watch.start()
        self._opened = True

    def close(self) -> None:
        if self._opened:
            self._chores.close()
        self._connection.close()

    def __enter__(self) -> ChangeReader:
        try:
            self.open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def failing(self) -> list[Failing]:
        """What does not work at the moment, the longest first; empty while all is well."""
        return self._background.failing()

    @property
    def read_to(self) -> int | None:
        """Everything before this ms was read; None until something is known."""
        known = [visible_to(plan) for plan in self._planner.tables.values()] if self._opened else []
        return None if None in known else min((ms for ms in known if ms is not None), default=None)

    @property
    def queries(self) -> int:
        """How many queries were sent so far."""
        return self._connection.queries

    # -- reading ---------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()

    def batches(self, stopped: Callable[[], bool] = lambda: False) -> Iterator[Batch]:
        """The batches until the end, or until ``stopped`` says so (asked at least every 0.2 s)."""
        while not stopped():
            while self._ready:
                batch = self._ready.popleft()
                yield batch
                self._handed[PositionKey(_table_of(batch), batch.stream_id)] = batch.time
            if time.monotonic() >= self._look_due and self._look():
                return
            self._step()

    async def __aiter__(self) -> AsyncIterator[Batch]:
        """The same for asyncio: waiting happens in a thread. Leaving the loop, also by cancellation, ends that thread:
        a program that is over would wait for it otherwise."""
        import asyncio

        left = threading.Event()
        iterator = self.batches(left.is_set)
        try:
            while (batch := await asyncio.to_thread(next, iterator, None)) is not None:
                yield batch
        finally:
            left.set()

    def checkpoint(self) -> str:
        """Where to resume, as JSON text: behind every batch that was handed out before the newest one.

        The batch that is being looked at counts only when the next is asked for, so that a crash repeats it rather than
        losing it.
        """
        entries = dict(self._saved)
        for place, newest in self._handed.items():
            # Within a stream batches come in order of time: all before this one is delivered as well.
            entry = position_entry(0, place, Position(micros_of(newest) // 1000, newest))
            entries[_saved_key(entry)] = entry
        return json.dumps([{"key": dict(entry.key), "value": entry.value} for entry in entries.values()])

    def _beginnings(self) -> list[OffsetsEntry]:
        """Marks that know no stream set say of every stream: from here, or from its opening if that is later."""
        if self._from_ms is None:
            return []
        mark = Mark(read_to=self._from_ms, stream_set=0, start=self._from_ms, owner="reader", rechecked=self._from_ms)
        return [mark_entry(MarkKey(name, 0, SLOTS), mark) for name in self._unsaved()]

    def _unsaved(self) -> list[TableName]:
        """Tables of which the checkpoint knows nothing."""
        started = {TableName(entry.key["keyspace_name"], entry.key["table_name"]) for entry in self._saved.values()}
        return [name for name in self._names if name not in started]

    # -- inside ----------------------------------------------------------------------------------------------

    def _look(self) -> bool:
        """Whether all is read. Between two looks what was handed out is remembered by itself."""
        began = time.monotonic()
        self._raise_failures()
        self._note()
        is_done = self._done()
        ended = time.monotonic()
        self._look_due = ended + (ended - began) * (1 / SHARE_OF_LOOKS - 1)
        return is_done

    def forgive(self) -> None:
        """Nothing is remembered against anybody."""

    def deliver(self, read: Read, batches: Sequence[Batch]) -> int:
        """Called by `Reading`."""
        self._ready.extend(batches)
        return len(batches)

    def give_up(self, read: Read, batch: Batch, reason: str) -> bool:
        """Called by `LateChanges`: whoever reads on cannot take it any more."""
        log.error("%s: not read: %s", read.table, reason)
        return False

    takes_back = False

    def settle(self, by: float | None) -> None:
        """Called by `LateChanges`: what was handed out is noted when the next batch is asked for."""

    def _step(self) -> None:
        self._watch.tick()
        self.tables.put_in_force()
        self._background.tick()
        self._unread.tick(self._connection.clock.now_ms)
        self._lose_patience()
        now = self._connection.clock.now_ms()
        self.late.pump(now)
        pause = self._reading.pump(now)
        try:
            event = self._events.get(timeout=min(pause, 0.2))
        except queue.Empty:
            return
        if isinstance(event, ChoreDone):
            event.finish()
        else:
            self._reading.handle(event)

    def _note(self) -> None:
        """Everything handed out so far is delivered: move the checkpoint."""
        now = self._connection.clock.now_ms()
        commit = self._planner.commit_entries(now, move_marks=True)
        for entry in commit.entries:
            key = _saved_key(entry)
            if entry.value is None:
                self._saved.pop(key, None)
            else:
                self._saved[key] = entry
        self._planner.committed()
        self._handed.clear()

    def _done(self) -> bool:
        if self._until_ms is None:
            return False
        return all(self._reached(plan) for plan in self._planner.tables.values())

    def _reached(self, plan: Any) -> bool:
        if plan.newest is None or plan.polled_at is None or plan.polled_at < self._until_ms:
            return False
        groups = plan.lineage.groups(0)
        return 0 in plan.active and all(state.drained or state.read_to >= self._until_ms for state in groups)

    def _lose_patience(self) -> None:
        """A server that is away for long is told by an end: whoever follows would wait for changes in vain."""
        for failing in self._background.failing():
            if failing.lasting > self._patience and not failing.partial:
                raise RetriableSourceError(f"gave up after {failing.lasting:.0f} s: {failing}")

    def _raise_failures(self) -> None:
        for name, plan in self._planner.tables.items():
            failed = [plan.failure, *(state.failure for state in plan.lineage.groups(0))]
            for reason in failed:
                if reason is not None:
                    raise SourceError(f"{name}: {reason}")


def _table_name(text: str) -> TableName:
    keyspace, dot, name = text.partition(".")
    if not (keyspace and dot and name):
        raise ConfigurationError([Problem("table", "is not a table: it must be keyspace.table", text)])
    if name.endswith(LOG_SUFFIX):
        base = f"{keyspace}.{name.removesuffix(LOG_SUFFIX)}"
        problem = f"is a change log: name the table whose changes it holds, {base}"
        raise ConfigurationError([Problem("table", problem, text)])
    return TableName(keyspace, name)


def _parse(checkpoint: str | None) -> dict[str, OffsetsEntry]:
    if checkpoint is None:
        return {}
    try:
        entries = [OffsetsEntry(0, each["key"], each["value"]) for each in json.loads(checkpoint)]
        for each in entries:
            check_entry(each)
    except (AttributeError, FatalDeliveryError, KeyError, RecursionError, TypeError, ValueError):
        raise CdcError("the checkpoint is not one that was made by ChangeReader.checkpoint()") from None
    return {_saved_key(entry): entry for entry in entries}


def _table_of(batch: Batch) -> TableName:
    return TableName(batch.layout.description.keyspace, batch.layout.description.name)


def _saved_key(entry: OffsetsEntry) -> str:
    return json.dumps(entry.key, sort_keys=True)
