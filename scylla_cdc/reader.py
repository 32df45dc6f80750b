"""``ChangeReader`` and ``changes``: the changes of tables as an iterator, without Kafka.

In: where ScyllaDB is, which tables, from when to when. Out: ``Change`` by ``Change``, each key's in order.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from types import TracebackType

from connector import changes as found_changes
from connector.changes import Batch, changes_of
from connector.errors import CdcError
from connector.source import PATIENCE_SECONDS, ReadingSettings
from connector.source import ChangeReader as BatchReader
from scylla_cdc.arguments import Moment, checked_confidence, connection, milliseconds, table_names
from scylla_cdc.change import Change, change_of


class ChangeReader:
    """A context manager that iterates over changes; ``async with`` and ``async for`` work as well.

    ``address``: ``host:port`` of a node, or several with commas. ``tables``: ``keyspace.table``, one or more.
    ``since``: begin there (default: with the oldest change that the log has). ``until``: end when everything before it
    was read (default: now). ``follow``: never end. ``checkpoint``: go on where an earlier reader was.
    ``confidence_ms``: changes younger than this are left for later, since an older one may still become visible: as
    long as the slowest write may take, 30 s unless you know better. A change counts as handled when the next one is
    asked for. ``patience``: for so many seconds what the reader needs may fail (``failing`` says what does), then
    ``RetriableSourceError`` says what and why; ``math.inf`` waits for ever.

    A loop that was left, for whatever reason, goes on in the next loop over the same reader, behind the last change
    that it was given. A reader is opened once.
    """

    def __init__(
        self,
        address: str,
        tables: str | Sequence[str],
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        follow: bool = False,
        checkpoint: str | None = None,
        user: str | None = None,
        password: str | None = None,
        tls: ssl.SSLContext | None = None,
        local_dc: str | None = None,
        consistency: str = "QUORUM",
        confidence_ms: int = 30_000,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        if follow and until is not None:
            raise CdcError("follow and until contradict each other")
        self._stopping = threading.Event()
        self._reader = BatchReader(
            connection(address, user, password, tls, local_dc, consistency),
            table_names(tables),
            reading=ReadingSettings(confidence_ms=checked_confidence(confidence_ms)),
            checkpoint=checkpoint,
            from_ms=milliseconds("since", since),
            until_ms=milliseconds("until", until),
            follow=follow,
            patience=patience,
        )
        self._opened = self._closed = False
        # One loop at a time: the thread of an `async for` that was cancelled may still wait for a moment.
        self._turn = threading.Lock()
        self._over: Callable[[], bool] = self._stopping.is_set
        self._batches = self._new_batches()
        self._batch: Batch | None = None
        # What of the newest batch was not handed out yet.
        self._rest: deque[found_changes.Change] = deque()

    def __enter__(self) -> ChangeReader:
        if self._opened:
            raise CdcError("a ChangeReader is opened once: make another one, with the checkpoint of this one")
        self._opened = True
        self._reader.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._closed = True
        self._reader.close()

    def __iter__(self) -> Iterator[Change]:
        self._require_open()
        while self._wait_for_some(self._stopping.is_set):
            while self._rest and not self._stopping.is_set():
                yield self._taken()

    def stop(self) -> None:
        """Ends the iteration within a fraction of a second; may be called from any thread."""
        self._stopping.set()

    def checkpoint(self) -> str:
        """Text to give as ``checkpoint`` to a later reader, which goes on with the change that is being looked at, or
        with the first of those that were written in one batch with it."""
        return self._reader.checkpoint()

    async def __aenter__(self) -> ChangeReader:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, *why: object) -> None:
        self.stop()
        self._closed = True
        await asyncio.to_thread(self._reader.close)

    async def __aiter__(self) -> AsyncIterator[Change]:
        """Waiting happens in a thread. Leaving the loop, also by cancellation, ends that thread."""
        self._require_open()
        left = threading.Event()

        def over() -> bool:
            return left.is_set() or self._stopping.is_set()

        try:
            while await asyncio.to_thread(self._wait_for_some, over):
                while self._rest and not over():
                    yield self._taken()
        finally:
            left.set()

    def failing(self) -> list[str]:
        """What does not work at the moment, since when and why, the longest first; empty while all is well."""
        return [str(each) for each in self._reader.failing()]

    # -- inside ----------------------------------------------------------------------------------------------

    def _require_open(self) -> None:
        if self._closed:
            raise CdcError("this ChangeReader is closed: make another one, with the checkpoint of this one")
        if not self._opened:
            raise CdcError("a ChangeReader has to be opened: with ChangeReader(…) as reader: for change in reader: …")

    def _wait_for_some(self, over: Callable[[], bool]) -> bool:
        """Whether there are changes to take; False at the end, and when ``over`` says so."""
        with self._turn:
            self._over = over
            while not self._rest and not over():
                if self._batch is None:
                    self._batch = self._next_batch()
                if self._batch is None:
                    return False
                # A batch that raises stays: the next loop says so again, and none goes on behind it in silence.
                self._rest.extend(changes_of(self._batch))
                self._batch = None
        return not over()

    def _taken(self) -> Change:
        change = change_of(self._rest[0])
        self._rest.popleft()
        return change

    def _new_batches(self) -> Iterator[Batch]:
        return self._reader.batches(lambda: self._over())

    def _next_batch(self) -> Batch | None:
        """Of one iterator as long as it lives: a batch counts as handed out when the next is asked of it."""
        batch = None
        try:
            batch = next(self._batches, None)
        finally:
            if batch is None:  # at its end, told to end, or interrupted
                self._batches = self._new_batches()
        return batch


def changes(
    address: str,
    tables: str | Sequence[str],
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    follow: bool = False,
    user: str | None = None,
    password: str | None = None,
    tls: ssl.SSLContext | None = None,
    confidence_ms: int = 30_000,
    patience: float = PATIENCE_SECONDS,
) -> Iterator[Change]:
    """The changes of tables, from the oldest that the log has up to now; with ``follow`` for ever.

    ``ChangeReader`` explains the parameters, and has checkpoints and asyncio besides.
    """
    with ChangeReader(
        address,
        tables,
        since=since,
        until=until,
        follow=follow,
        user=user,
        password=password,
        tls=tls,
        confidence_ms=confidence_ms,
        patience=patience,
    ) as reader:
        yield from reader
