"""The simulated ScyllaDB as the product reaches it: in place of the one CQL connection of a process.

In: the statements that the product sends, what goes wrong with nodes. Out: raw pages of logs, rows of the server's own
tables, each node's time; late, or an error instead. What a page shows is what was visible when the question arrived.
"""

from __future__ import annotations

import re
import struct
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from cassandra import cqltypes

from connector.errors import RetriableSourceError, SourceError, TableMissing
from connector.native.samples import page_of
from connector.source import Connection, ServerClock
from connector.source.failures import ReadTimedOut
from connector.source.hosts_in_turn import HostsInTurn
from connector.source.pages import RawPage, Scan
from connector.timeuuid import time_key
from connector.topology import token_of
from tests.simulation.scheduler import EPOCH, Process, Scheduler
from tests.simulation.source_world import Row, Table, World

_LOG = re.compile(
    r'SELECT (?P<what>.+) FROM (?P<keyspace>\w+)\.(?P<table>\w+)_scylla_cdc_log WHERE "cdc\$stream_id" (?:IN|=) \? '
    r'AND "cdc\$time" (?P<lower>>=?) \? AND "cdc\$time" < \?'
)
_SWEEP = re.compile(
    r'SELECT "cdc\$stream_id", "cdc\$time" FROM (?P<keyspace>\w+)\.(?P<table>\w+)_scylla_cdc_log '
    r'WHERE token\("cdc\$stream_id"\) >= \? AND token\("cdc\$stream_id"\) <= \? '
    r'AND "cdc\$time" >= \? AND "cdc\$time" < \? PER PARTITION LIMIT 1 '
)
_INSERT = b"\x02"
_TRUE = b"\x01"


@dataclass
class Node:
    """``lag``: how many ms later than others it lists a stream set. ``shift_ms``: how far its clock is off."""

    number: int
    lag: int
    up: bool = True
    shift_ms: float = 0.0
    # A node that lists nothing, or only what is old.
    confused_until: float = 0.0

    @property
    def host(self) -> Any:
        return SimpleNamespace(
            endpoint=Endpoint(f"10.0.0.{self.number + 1}"), host_id=self.number, is_up=self.up, node=self
        )


@dataclass(frozen=True)
class Endpoint:
    address: str
    port: int = 9042

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"


@dataclass
class Cluster:
    """The nodes and what they hold. ``timeouts``: the part of reads that are not answered in time."""

    scheduler: Scheduler
    world: World
    seconds: float = 0.006
    timeouts: float = 0.0
    errors: float = 0.0
    away_until: float = 0.0
    mishaps: int = 0
    queries: int = 0
    # Of every read of a log: how many of its streams, for worlds that must have read several at once.
    widest: int = 0
    sweeps: int = 0
    nodes: list[Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.nodes = [Node(number, lag) for number, lag in enumerate(self.world.lags)]

    @property
    def now_ms(self) -> int:
        return int((EPOCH + self.scheduler.now) * 1000)

    def table(self, keyspace: str, name: str) -> Table | None:
        for table in self.world.tables:
            if (table.name.keyspace, table.name.name) == (keyspace, name):
                gone = table.gone
                return None if gone is not None and gone[0] <= self.now_ms < gone[1] else table
        return None


@dataclass
class Statement:
    """What the product prepared and bound; it may set where the statement is to go."""

    query: str
    values: Sequence[Any]
    fetch_size: int
    stream_token: int | None = None
    keyspace: str = ""
    table: str = ""


class SimulatedConnection(Connection):
    """One process's."""

    def __init__(self, cluster: Cluster, settings: Any, scan: Scan | None = None) -> None:
        self.settings = settings
        self._scan = scan
        self.clock = ServerClock()
        self._clocks_in_turn = HostsInTurn(self)
        self.queries = 0
        self._simulated = cluster
        self._scheduler = cluster.scheduler
        self._process: Process | None = cluster.scheduler.in_process

    def open(self) -> None:
        self._scheduler.pass_time(0.01)
        self._raise_if_away()

    def close(self) -> None:
        """Nothing is held."""

    def hosts(self) -> list[Any]:
        return [node.host for node in self._simulated.nodes if node.up]

    def known_hosts(self) -> list[Any]:
        return [node.host for node in self._simulated.nodes]

    def require_an_answer(self) -> None:
        self._scheduler.pass_time(0.005)
        self._raise_if_away()

    def host_count(self) -> int:
        return len(self._simulated.nodes)

    def raise_blindness(self) -> None:
        self._raise_if_away()

    def statement(
        self, query: str, values: Sequence[Any], consistency: str | None = None, fetch_size: int | None = None
    ) -> Any:
        return Statement(query, values, self.settings.fetch_size if fetch_size is None else fetch_size)

    # -- pages of logs -----------------------------------------------------------------------------------------

    def page_async(
        self,
        statement: Statement,
        done: Callable[[RawPage, bytes | None], None],
        failed: Callable[[SourceError], None],
        paging_state: bytes | None = None,
        host: Any = None,
    ) -> None:
        self.queries += 1
        cluster, draw = self._simulated, self._scheduler.random.random
        cluster.queries += 1
        fate = draw()

        def arrive() -> None:
            if cluster.away_until > self._scheduler.now or fate < cluster.errors:
                cluster.mishaps += 1
                self._answer(lambda: failed(RetriableSourceError("a node went away")))
            elif fate < cluster.errors + cluster.timeouts:
                cluster.mishaps += 1
                self._answer(lambda: failed(ReadTimedOut("the read timed out")), 1.0)
            else:
                try:
                    page, state = self._page(statement, paging_state)
                except SourceError as error:
                    caught = error
                    self._answer(lambda: failed(caught))
                else:
                    self._answer(lambda: done(page, state))

        self._scheduler.later(draw() * cluster.seconds, arrive)

    def _answer(self, call: Callable[[], None], more: float = 0.0) -> None:
        """In the driver's thread, which stands still while the process does."""
        process = self._process

        def take() -> None:
            if process is None or (process.alive and process.paused_until <= self._scheduler.now):
                call()
            elif process.alive:
                self._scheduler.later(process.paused_until - self._scheduler.now, take)

        self._scheduler.later(self._scheduler.random.random() * self._simulated.seconds + more, take)

    def _page(self, statement: Statement, paging_state: bytes | None) -> tuple[RawPage, bytes | None]:
        asked = _LOG.match(statement.query)
        if asked is None:
            return self._swept(statement, paging_state)
        table = self._simulated.table(asked["keyspace"], asked["table"])
        if table is None:
            raise TableMissing(f"unconfigured table {asked['table']}")
        given, start, end = statement.values
        streams = list(given) if isinstance(given, list) else [given]
        self._simulated.widest = max(self._simulated.widest, len(streams))
        lower, upper = (time_key(each.bytes if isinstance(each, uuid.UUID) else each) for each in (start, end))
        now = self._simulated.now_ms
        oldest = now - table.ttl * 1000
        found = [
            row
            for stream in sorted(streams)
            for row in table.by_stream.get(stream, ())
            if (row.order > lower or (row.order == lower and asked["lower"] == ">="))
            and row.order < upper
            and row.visible_at <= now
            and row.ms > oldest
        ]
        if paging_state is not None:
            place = (paging_state[:16], int.from_bytes(paging_state[16:36], "big"), paging_state[36])
            found = [row for row in found if (row.stream, row.order, row.number) > place]
        size = statement.fetch_size or len(found)
        page, rest = found[:size], found[size:]
        state = None
        if rest:
            last = page[-1]
            state = last.stream + last.order.to_bytes(20, "big") + bytes([last.number])
        return self._raw(table, page, asked["what"]), state

    def _swept(self, statement: Statement, paging_state: bytes | None) -> tuple[RawPage, bytes | None]:
        """The first row of each partition, partitions in the order of their tokens; a page may be short or empty."""
        asked = _SWEEP.match(statement.query)
        assert asked is not None, statement.query
        table = self._simulated.table(asked["keyspace"], asked["table"])
        if table is None:
            raise TableMissing(f"unconfigured table {asked['table']}")
        first, last, *bounds = statement.values
        lower, upper = (time_key(each.bytes) for each in bounds)
        now = self._simulated.now_ms
        oldest = now - table.ttl * 1000
        streams = sorted((token_of(stream), stream) for stream in table.by_stream)
        behind = (first - 1, b"") if paging_state is None else (token_of(paging_state), paging_state)
        left = [stream for token, stream in streams if token <= last and (token, stream) > behind]
        page = left[: self._scheduler.random.randint(1, 8)]
        found = []
        for stream in page:
            rows = (row for row in table.by_stream[stream] if lower <= row.order < upper)
            found += [row for row in rows if row.visible_at <= now and row.ms > oldest][:1]
        self._simulated.sweeps += 1
        return self._raw(table, found, '"cdc$stream_id", "cdc$time"'), page[-1] if len(left) > len(page) else None

    def _raw(self, table: Table, rows: Sequence[Row], what: str) -> RawPage:
        columns = _log_columns(self._columns(table))
        names = list(columns) if what == "*" else [name.strip(' "') for name in what.split(",")]
        cells = [_cells(row) for row in rows]
        types = tuple(columns[name] for name in names)
        found = [tuple(each.get(name) for name in names) for each in cells]
        uncut = self._scan(page_of(found), 0, names, len(found), lambda: found) if self._scan and found else None
        return RawPage(tuple(names), types, found if uncut is None else uncut)

    def _columns(self, table: Table) -> list[str]:
        """The regular columns that the table has by now."""
        now = self._simulated.now_ms
        return ["v", *(name for name, added in table.columns.items() if added <= now)]

    # -- the server's own tables -------------------------------------------------------------------------------

    def rows(self, statement: Statement, host: Any = None, timeout: float | None = None) -> list[dict[str, Any]]:
        self.queries += 1
        cluster, scheduler = self._simulated, self._scheduler
        node = host.node if host is not None else scheduler.random.choice(cluster.nodes)
        scheduler.pass_time(scheduler.random.random() * cluster.seconds)
        self._raise_if_away()
        if scheduler.random.random() < cluster.errors:
            cluster.mishaps += 1
            raise RetriableSourceError(f"asking node {node.number}: it went away")
        answer = self._metadata(statement, node)
        scheduler.pass_time(scheduler.random.random() * cluster.seconds)
        return answer

    def _raise_if_away(self) -> None:
        if self._simulated.away_until > self._scheduler.now:
            raise RetriableSourceError("no node answers")

    def _metadata(self, statement: Statement, node: Node) -> list[dict[str, Any]]:
        query, values = statement.query, statement.values
        if "toTimestamp(now())" in query:
            return [{"now": _moment(self._simulated.now_ms + node.shift_ms)}]
        if "cdc_generation_timestamps" in query:
            return [{"time": _moment(at)} for at in self._listed(self._vnode_table(), node)]
        if "cdc_streams_descriptions_v2" in query:
            return [
                {"range_end": group.range_end, "streams": list(group.streams)}
                for one in self._vnode_table().sets
                if one.timestamp == values[0]
                for group in one.groups
            ]
        if "schema_version" in query:
            tables = self._simulated.world.tables
            known = {str(each.name): self._columns(each) for each in tables if self._simulated.table(*each.name)}
            return [{"schema_version": str(known)}]
        if "FROM system.versions" in query:
            return [{"version": "2026.1.0"}]
        keyspace = str(values[0])
        if "FROM system_schema.scylla_keyspaces" in query:
            return [{"initial_tablets": 0 if keyspace == "tablets" else None}]
        if "FROM system_schema.keyspaces" in query:
            return [{"keyspace_name": keyspace}]
        if "FROM system_schema.types" in query or "dropped_columns" in query:
            return []
        name = str(values[1])
        log = name.endswith("_scylla_cdc_log")
        table = self._simulated.table(keyspace, name.removesuffix("_scylla_cdc_log"))
        if table is None:
            return []
        if "system.cdc_timestamps" in query:
            return [{"timestamp": _moment(at)} for at in self._listed(table, node)]
        if "system.cdc_streams" in query:
            sets = (one for one in table.sets if one.timestamp == values[2])
            return [{"stream_id": stream} for one in sets for group in one.groups for stream in group.streams]
        if "FROM system_schema.tables" in query:
            again = table.gone is not None and self._simulated.now_ms >= table.gone[1]
            return [{"id": uuid.UUID(int=2 if again else 1), "extensions": {"cdc": _options(table)}}]
        assert "FROM system_schema.columns" in query, query
        return _log_rows(self._columns(table)) if log else _base_rows(self._columns(table))

    def _vnode_table(self) -> Table:
        return next(table for table in self._simulated.world.tables if not table.tablets)

    def _listed(self, table: Table, node: Node) -> list[int]:
        listed = table.listed(node.lag, self._simulated.now_ms)
        if node.confused_until > self._scheduler.now:
            self._simulated.mishaps += 1
            return listed[: self._scheduler.random.randrange(len(listed))]
        return listed


def _moment(ms: float) -> datetime:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=round(ms))).replace(tzinfo=None)


def _log_columns(regular: Sequence[str]) -> dict[str, Any]:
    found = {
        "cdc$stream_id": cqltypes.BytesType,
        "cdc$time": cqltypes.TimeUUIDType,
        "cdc$batch_seq_no": cqltypes.Int32Type,
        **{f"cdc$deleted_{name}": cqltypes.BooleanType for name in regular},
        "cdc$end_of_batch": cqltypes.BooleanType,
        "cdc$operation": cqltypes.ByteType,
        "cdc$ttl": cqltypes.LongType,
        "ck": cqltypes.Int32Type,
        "pk": cqltypes.Int32Type,
    }
    return found | dict.fromkeys(regular, cqltypes.UTF8Type)


def _cells(row: Row) -> dict[str, bytes | None]:
    pk, ck = row.key
    return {
        "cdc$stream_id": row.stream,
        "cdc$time": row.time,
        "cdc$batch_seq_no": struct.pack(">i", row.number),
        "cdc$end_of_batch": _TRUE if row.last else None,
        "cdc$operation": _INSERT,
        "pk": struct.pack(">i", pk),
        "ck": struct.pack(">i", ck),
        "v": row.text.encode(),
        "w": row.text.encode(),
    }


def _options(table: Table) -> bytes:
    given = {"enabled": "true", "preimage": "false", "postimage": "false", "delta": "full", "ttl": str(table.ttl)}
    texts = b"".join(struct.pack("<I", len(each)) + each.encode() for pair in given.items() for each in pair)
    return struct.pack("<I", len(given)) + texts


def _base_rows(regular: Sequence[str]) -> list[dict[str, Any]]:
    kinds = [("pk", "partition_key", 0, "int"), ("ck", "clustering", 0, "int")]
    kinds += [(name, "regular", -1, "text") for name in regular]
    return [
        {"column_name": name, "kind": kind, "position": at, "type": type_, "clustering_order": "asc"}
        for name, kind, at, type_ in kinds
    ]


def _log_rows(regular: Sequence[str]) -> list[dict[str, Any]]:
    spelled = {"BytesType": "blob", "TimeUUIDType": "timeuuid", "Int32Type": "int", "UTF8Type": "text"}
    spelled |= {"BooleanType": "boolean", "ByteType": "tinyint", "LongType": "bigint"}
    return [
        {"column_name": name, "kind": "regular", "position": -1, "type": spelled[kind.__name__]}
        for name, kind in _log_columns(regular).items()
    ]
