"""``changes`` and ``ChangeReader``: the changes of tables as an iterator, without Kafka.

In: where ScyllaDB is, which tables, from when to when. Out: ``Change`` by ``Change``, each key's in order.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from types import TracebackType

from connector.changes import changes_of
from connector.config import Invalid, parse_contact_points
from connector.errors import CdcError
from connector.source import ChangeReader as BatchReader
from connector.source import ConnectionSettings, ReadingSettings
from scylla_cdc.change import Change, change_of

#: A moment: a datetime (one without a zone is local time), or milliseconds since 1970.
Moment = datetime | int


class ChangeReader:
    """A context manager that iterates over changes; ``async with`` and ``async for`` work as well.

    ``address``: ``host:port`` of a node, or several with commas. ``tables``: ``keyspace.table``, one or more.
    ``since``: begin there (default: with the oldest change that the log has). ``until``: end when everything before it
    was read (default: now). ``follow``: never end. ``checkpoint``: go on where an earlier reader was.
    ``confidence_ms``: changes younger than this are left for later, since an older one may still become visible: as
    long as the slowest write may take, 30 s unless you know better. A change counts as handled when the next one is
    asked for.
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
    ) -> None:
        if follow and until is not None:
            raise CdcError("follow and until contradict each other")
        try:
            points = parse_contact_points(address)
        except Invalid as error:
            raise CdcError(f"address {address!r}: {error}") from None
        self._stopping = threading.Event()
        self._reader = BatchReader(
            ConnectionSettings(
                tuple((point.host, point.port) for point in points),
                user=user,
                password=password,
                tls=tls,
                verify_host_name=tls is not None and tls.check_hostname,
                local_dc=local_dc,
                consistency=consistency.upper(),
            ),
            [tables] if isinstance(tables, str) else tables,
            reading=ReadingSettings(confidence_ms=confidence_ms),
            checkpoint=checkpoint,
            from_ms=_milliseconds(since),
            until_ms=_milliseconds(until),
            follow=follow,
        )

    def __enter__(self) -> ChangeReader:
        self._reader.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._reader.close()

    def __iter__(self) -> Iterator[Change]:
        for batch in self._reader.batches(self._stopping.is_set):
            for found in changes_of(batch):
                yield change_of(found)

    def stop(self) -> None:
        """Ends the iteration within a fraction of a second; may be called from any thread."""
        self._stopping.set()

    def checkpoint(self) -> str:
        """Text to give as ``checkpoint`` to a later reader, which goes on with the change that is being looked at."""
        return self._reader.checkpoint()

    async def __aenter__(self) -> ChangeReader:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, *why: object) -> None:
        self.stop()
        await asyncio.to_thread(self._reader.close)

    async def __aiter__(self) -> AsyncIterator[Change]:
        """Waiting happens in a thread. Leaving the loop, also by cancellation, ends that thread."""
        iterator = iter(self)
        try:
            while (change := await asyncio.to_thread(next, iterator, None)) is not None:
                yield change
        finally:
            self.stop()


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
    ) as reader:
        yield from reader


def _milliseconds(moment: Moment | None) -> int | None:
    return round(moment.timestamp() * 1000) if isinstance(moment, datetime) else moment
