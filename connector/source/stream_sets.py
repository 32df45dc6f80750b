"""Stream sets, asked of the server.

In: which sets are wanted of those that a node lists. Out: a node's `View`. Tablets are asked of one node at a time
(each node answers from its own memory and may lag), vnode generations at a quorum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from connector.errors import FatalSourceError, RetriableSourceError, TableMissing, UnsupportedServer
from connector.source.connection import Connection
from connector.topology.lineage import View
from connector.topology.sets import StreamSet, tablet_set, vnode_set
from connector.topology.slots import TableName

CURRENT = 0

Wanted = Callable[[Iterable[int]], tuple[int, ...]]


class VnodeGenerations:
    """The generations of the whole cluster; one answer serves every table in a vnodes keyspace."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._sets: dict[int, StreamSet] = {}

    def view(self, wanted: Wanted) -> View:
        """All listed generations, with the streams of those that are wanted. Streams never change: asked for once."""
        try:
            rows = self._connection.query(
                "SELECT time FROM system_distributed.cdc_generation_timestamps WHERE key = 'timestamps'",
                consistency=self._consistency,
            )
        except (TableMissing, FatalSourceError) as error:
            raise UnsupportedServer(
                f"the server has no system_distributed.cdc_generation_timestamps (ScyllaDB 4.4 has): {error}"
            ) from None
        timestamps = tuple(sorted(_ms(row["time"]) for row in rows))
        needed = wanted(timestamps)
        for timestamp in needed:
            if timestamp not in self._sets:
                self._sets[timestamp] = self._set(timestamp)
        return View(timestamps, {timestamp: self._sets[timestamp] for timestamp in needed})

    @property
    def _consistency(self) -> str:
        # A single node has nobody to agree with, and its system_distributed may be replicated three times on paper.
        return "QUORUM" if self._connection.host_count() > 1 else "ONE"

    def _set(self, timestamp: int) -> StreamSet:
        rows = self._connection.query(
            "SELECT range_end, streams FROM system_distributed.cdc_streams_descriptions_v2 WHERE time = ?",
            [timestamp],
            consistency=self._consistency,
        )
        return vnode_set(timestamp, {row["range_end"]: tuple(row["streams"] or ()) for row in rows})


class TabletStreams:
    """The stream sets of one tablets table, asked of the nodes in turn."""

    def __init__(self, connection: Connection, table: TableName) -> None:
        self._connection = connection
        self._table = table
        self._turn = 0
        self._sets: dict[int, StreamSet] = {}

    def view(self, wanted: Wanted) -> View:
        """The next node's answer. One that lacks a set which it lists itself is asked again later."""
        host = self._next_host()
        names: list[Any] = [self._table.keyspace, self._table.name]
        try:
            rows = self._connection.query(
                "SELECT timestamp FROM system.cdc_timestamps WHERE keyspace_name = ? AND table_name = ?",
                names,
                host=host,
            )
        except TableMissing as error:
            raise UnsupportedServer(
                f"{self._table} uses tablets, whose streams ScyllaDB lists from 2025.4 on: {error}"
            ) from None
        timestamps = tuple(sorted(_ms(row["timestamp"]) for row in rows))
        needed = wanted(timestamps)
        for timestamp in needed:
            if timestamp not in self._sets:
                self._sets[timestamp] = self._set(names, timestamp, host)
        return View(timestamps, {timestamp: self._sets[timestamp] for timestamp in needed})

    def _next_host(self) -> Any:
        hosts = self._connection.hosts()
        if not hosts:
            raise RetriableSourceError("no node is known to be up")
        self._turn = (self._turn + 1) % len(hosts)
        return hosts[self._turn]

    def _set(self, names: list[Any], timestamp: int, host: Any) -> StreamSet:
        rows = self._connection.query(
            "SELECT stream_id FROM system.cdc_streams "
            "WHERE keyspace_name = ? AND table_name = ? AND timestamp = ? AND stream_state = ?",
            [*names, timestamp, CURRENT],
            host=host,
            # In one page: the virtual table goes on after a page by unsigned id, while its rows come by signed token.
            fetch_size=0,
        )
        return tablet_set(timestamp, [row["stream_id"] for row in rows])


def _ms(moment: datetime) -> int:
    return round(moment.replace(tzinfo=UTC).timestamp() * 1000)
