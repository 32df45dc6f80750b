"""Stream sets, asked of the server.

In: which of the listed sets are wanted. Out: timestamps, then sets, and of which log they are: a table that was dropped
and created again has others under the same name. Tablets are asked of one node at a time (each node answers from its
own memory and may lag), for many tables at once; vnode generations at a quorum.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from connector.cql_names import log_name
from connector.errors import CdcError, FatalSourceError, TableMissing, UnsupportedServer
from connector.source.connection import Connection
from connector.source.descriptions import keyspaces_with_tablets
from connector.source.failures import NotReached
from connector.source.hosts_in_turn import HostsInTurn
from connector.table_name import TableName
from connector.topology import StreamSet, tablet_set, vnode_set

log = logging.getLogger(__name__)

CURRENT = 0

#: So many tables share a question; servers refuse more than a hundred.
AT_ONCE = 50

#: A node that has not said within this time what it has in memory hangs: the next one is asked, as rows wait for it.
PATIENCE_SECONDS = 5.0

#: In place of a log's id: the sets of all tables that have none of their own.
CLUSTER = "cluster"

Listed = tuple[int, ...]


class StreamSets(Protocol):
    """Where stream sets are listed. Blocks; called from a thread that may wait, by one caller at a time."""

    def listed(self) -> tuple[int, ...]:
        """The timestamps (ms) that one node lists, ascending. The next call may ask another node."""

    def fetched(self, timestamps: Iterable[int]) -> dict[int, StreamSet]:
        """The sets of some of the timestamps that were just listed, from the same node."""

    def taken(self) -> None:
        """Whoever asked has all sets that he wants: they are his to keep."""

    def serves(self, table: TableName) -> bool:
        """Whether what was listed last are sets of this table, and not of one that had its name."""

    @property
    def log_id(self) -> str:
        """Of which log the sets are that were listed last, or `CLUSTER`."""

    @property
    def asked(self) -> str:
        """Whom the last question went to, for people."""


class VnodeGenerations:
    """The generations of the whole cluster; one answer serves every table in a vnodes keyspace."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # Of a question that has to be asked again, what came already: asking is the dear part, and so is keeping.
        self._known: dict[int, StreamSet] = {}
        self._with_tablets: frozenset[str] = frozenset()

    def listed(self) -> tuple[int, ...]:
        self._with_tablets = keyspaces_with_tablets(self._connection)
        try:
            rows = self._connection.query(
                "SELECT time FROM system_distributed.cdc_generation_timestamps WHERE key = 'timestamps'",
                consistency=self._consistency,
            )
        except TableMissing as error:
            raise UnsupportedServer(
                f"the server has no system_distributed.cdc_generation_timestamps (ScyllaDB 4.4 has): {error}"
            ) from None
        return tuple(sorted(_ms(row["time"]) for row in rows))

    def fetched(self, timestamps: Iterable[int]) -> dict[int, StreamSet]:
        wanted = set(timestamps)
        self._known = {timestamp: known for timestamp, known in self._known.items() if timestamp in wanted}
        for timestamp in sorted(wanted - self._known.keys()):
            self._known[timestamp] = self._set(timestamp)
        return dict(self._known)

    def taken(self) -> None:
        self._known.clear()

    def serves(self, table: TableName) -> bool:
        return table.keyspace not in self._with_tablets

    @property
    def log_id(self) -> str:
        return CLUSTER

    @property
    def asked(self) -> str:
        return "the cluster"

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
        self._in_turn = HostsInTurn(connection, last=-1)
        self._host: Any = None
        self._log_id = ""
        #: The list of which that is known.
        self._identified: Listed | None = None

    @property
    def keyspace(self) -> str:
        return self._table.keyspace

    def listed(self) -> Listed:
        self._host = self._in_turn.next()[0]
        return self._asked_alone()

    @staticmethod
    def listed_together(several: Sequence[TabletStreams]) -> list[Listed | Exception]:
        """What each of several tables has listed, or why it is not known; as `listed` of each, but that those of one
        keyspace whose turn it is to ask the same node share a question."""
        answers: dict[TabletStreams, Listed | Exception] = {}
        by_host: dict[tuple[str, str], list[TabletStreams]] = {}
        for each in several:
            try:
                each._host = each._in_turn.next()[0]
            except CdcError as error:
                answers[each] = error
            else:
                by_host.setdefault((each.keyspace, str(each._host.endpoint)), []).append(each)
        together = [some[at : at + AT_ONCE] for some in by_host.values() for at in range(0, len(some), AT_ONCE)]
        # Who hangs is waited for once, not for each group.
        silent: dict[str, CdcError] = {}
        for group in together:
            host = str(group[0]._host.endpoint)
            if host in silent:
                answers |= dict.fromkeys(group, silent[host])
                continue
            try:
                answers |= _listed_by_one(group)
            except FatalSourceError as error:
                log.debug("stream sets of %d tables at once: %s", len(group), error)
                answers |= {each: each._answer() for each in group}
            except CdcError as error:
                answers |= dict.fromkeys(group, error)
                if isinstance(error, NotReached):
                    silent[host] = error
        return [answers[each] for each in several]

    def _answer(self) -> Listed | Exception:
        try:
            return self._asked_alone()
        except CdcError as error:
            return error

    def _asked_alone(self) -> Listed:
        try:
            return _listed_by_one([self])[self]
        except TableMissing as error:
            raise UnsupportedServer(
                f"{self._table} uses tablets, whose streams ScyllaDB lists from 2025.4 on: {error}"
            ) from None

    def fetched(self, timestamps: Iterable[int]) -> dict[int, StreamSet]:
        return {timestamp: self._set(timestamp) for timestamp in timestamps}

    def taken(self) -> None:
        """Nothing is kept."""

    def serves(self, table: TableName) -> bool:
        return True

    @property
    def log_id(self) -> str:
        return self._log_id

    @property
    def asked(self) -> str:
        return "no node" if self._host is None else str(self._host.endpoint)

    def _set(self, timestamp: int) -> StreamSet:
        rows = self._connection.query(
            "SELECT stream_id FROM system.cdc_streams "
            "WHERE keyspace_name = ? AND table_name = ? AND timestamp = ? AND stream_state = ?",
            [self._table.keyspace, self._table.name, timestamp, CURRENT],
            host=self._host,
            # In one page: the virtual table goes on after a page by unsigned id, while its rows come by signed token.
            fetch_size=0,
        )
        return tablet_set(timestamp, [row["stream_id"] for row in rows])


def _listed_by_one(group: Sequence[TabletStreams]) -> dict[TabletStreams, Listed]:
    """What one node has of tables whose turn it is.

    Of which log it is, is asked only where it is another list than before: two logs have no time in common.
    """
    found = _times(group)
    others = [each for each in group if found[each] != each._identified]
    if others:
        ids = _log_ids(others)
        again = _times(others)
        for each in others:
            # Should the table be another one by now, the next answer tells.
            each._identified = again[each] if ids[each] and again[each] == found[each] else None
            each._log_id, found[each] = ids[each], again[each] if ids[each] else ()
    return found


def _times(group: Sequence[TabletStreams]) -> dict[TabletStreams, Listed]:
    first, found = group[0], {each._table.name: list[int]() for each in group}
    # Of one table as clients have asked for years: there may be servers that do not take the other question.
    tables = "= ?" if len(group) == 1 else f"IN ({', '.join('?' * len(group))})"
    rows = first._connection.query(
        f"SELECT table_name, timestamp FROM system.cdc_timestamps WHERE keyspace_name = ? AND table_name {tables}",
        [first.keyspace, *found],
        host=first._host,
        timeout=PATIENCE_SECONDS,
    )
    for row in rows:
        found[row["table_name"]].append(_ms(row["timestamp"]))
    return {each: tuple(sorted(found[each._table.name])) for each in group}


def _log_ids(group: Sequence[TabletStreams]) -> dict[TabletStreams, str]:
    """By the node that lists their sets. Empty: it knows of no such log."""
    first, logs = group[0], {log_name(each._table.name): each for each in group}
    places = ", ".join("?" * len(logs))
    rows = first._connection.query(
        f"SELECT table_name, id FROM system_schema.tables WHERE keyspace_name = ? AND table_name IN ({places})",
        [first.keyspace, *logs],
        host=first._host,
        timeout=PATIENCE_SECONDS,
    )
    ids = {logs[row["table_name"]]: str(row["id"]) for row in rows}
    return {each: ids.get(each, "") for each in group}


def _ms(moment: datetime) -> int:
    return round(moment.replace(tzinfo=UTC).timestamp() * 1000)
