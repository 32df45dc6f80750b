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
from typing import Any

from connector.changes import Scanner
from connector.cql_names import LOG_SUFFIX
from connector.errors import ReplicasAway, RetriableSourceError, SourceError, TableMissing
from connector.native.samples import page_of
from connector.source import Connection, ServerClock
from connector.source.failures import NotReached, ReadTimedOut
from connector.source.hosts_in_turn import HostsInTurn
from connector.source.pages import RawPage
from connector.timeuuid import time_key
from connector.topology import token_of
from tests.simulation import plain_schema
from tests.simulation.base_rows import SELECT, base_rows, columns_of, driver_type, log_columns
from tests.simulation.scheduler import EPOCH, Process, Scheduler
from tests.simulation.source_bytes import cdc_options, log_rows
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


@dataclass
class Node:
    """``lag``: how many ms later than others it lists a stream set. ``deaf``: and how many later it hears of columns.
    ``shift_ms``: how far its clock is off."""

    number: int
    lag: int
    deaf: int = 0
    up: bool = True
    shift_ms: float = 0.0
    # A node that lists nothing, or only what is old.
    confused_until: float = 0.0

    @property
    def host(self) -> Host:
        return Host(self)


@dataclass(frozen=True)
class Endpoint:
    address: str
    port: int = 9042

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"


class Host:
    """A node, as the driver has them: two of one node are the same."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.host_id = node.number
        self.is_up, self.datacenter = node.up, "dc1"
        self.endpoint = Endpoint(f"10.0.0.{node.number + 1}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Host) and self.endpoint == other.endpoint

    def __hash__(self) -> int:
        return hash(self.endpoint)


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
    # Tokens that nobody holds any more, from one to another; how many sweeps were refused for that.
    lost: list[tuple[int, int]] = field(default_factory=list)
    refused: int = 0
    nodes: list[Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        deaf = self.world.deaf or [0] * len(self.world.lags)
        self.nodes = [Node(number, lag, deaf[number]) for number, lag in enumerate(self.world.lags)]

    @property
    def now_ms(self) -> int:
        return int((EPOCH + self.scheduler.now) * 1000)

    def require(self, first: int, last: int) -> None:
        """Whoever asks for a token that nobody holds is refused."""
        if any(low <= last and first <= high for low, high in self.lost):
            raise ReplicasAway("Cannot achieve consistency level for cl QUORUM. Requires 2, alive 1")

    def table(self, keyspace: str, name: str, node: Node) -> Table | None:
        """As a node has it, which may not have heard that it was dropped, and created again."""
        for table in self.world.tables:
            if (table.name.keyspace, table.name.name) == (keyspace, name):
                former, heard = table.former, self.now_ms - node.deaf
                if former is not None and heard < former.created:
                    return former.table if heard < former.dropped else None
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

    def __init__(self, cluster: Cluster, settings: Any, scanner: Scanner | None = None) -> None:
        self.settings = settings
        self.scanner = scanner
        self.clock = ServerClock()
        self._clocks_in_turn = HostsInTurn(self)
        self.queries = 0
        self._simulated = cluster
        self._scheduler = cluster.scheduler
        self._process: Process | None = cluster.scheduler.in_process
        self._avoided: dict[Any, float] = {}
        self.vouched: dict[object, float] = {}

    def open(self) -> None:
        self._scheduler.pass_time(0.01)
        self._raise_if_away()

    def close(self) -> None:
        """Nothing is held."""

    def hosts(self) -> list[Any]:
        return [node.host for node in self._simulated.nodes if node.up]

    def asked_hosts(self) -> list[Any]:
        return self.known_hosts()

    def known_hosts(self) -> list[Any]:
        return [node.host for node in self._simulated.nodes]

    def avoid(self, host: Any, seconds: float) -> None:
        self._avoided[host] = self._scheduler.now + seconds

    @property
    def refusal(self) -> str | None:
        """Whoever logs in is let in."""
        return None

    def require_an_answer(self) -> None:
        self._scheduler.pass_time(0.005)
        self._raise_if_away()

    def host_count(self) -> int:
        return len(self._simulated.nodes)

    @property
    def slow_hosts(self) -> dict[str, str]:
        return {}

    def raise_blindness(self) -> None:
        self._raise_if_away()

    def statement(
        self, query: str, values: Sequence[Any], consistency: str | None = None, fetch_size: int | None = None
    ) -> Any:
        return Statement(query, values, self.settings.fetch_size if fetch_size is None else fetch_size)

    def raw_statement(self, query: str, cells: Sequence[bytes]) -> Any:
        return self.statement(query, cells)

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
                    page, state = self._page(statement, paging_state, self._coordinator())
                except SourceError as error:
                    caught = error
                    self._answer(lambda: failed(caught))
                else:
                    self._answer(lambda: done(page, state))

        self._scheduler.later(draw() * cluster.seconds, arrive)

    def _coordinator(self) -> Node:
        """Who is asked for a page: only of interest where nodes differ."""
        nodes = self._simulated.nodes
        if not self._simulated.world.deaf:
            return nodes[0]
        liked = [node for node in nodes if self._avoided.get(node.host, 0.0) <= self._scheduler.now]
        return self._scheduler.random.choice(liked or nodes)

    def _answer(self, call: Callable[[], None], more: float = 0.0) -> None:
        """In the driver's thread, which stands still while the process does."""
        process = self._process

        def take() -> None:
            if process is None or (process.alive and process.paused_until <= self._scheduler.now):
                call()
            elif process.alive:
                self._scheduler.later(process.paused_until - self._scheduler.now, take)

        self._scheduler.later(self._scheduler.random.random() * self._simulated.seconds + more, take)

    def _page(self, statement: Statement, paging_state: bytes | None, node: Node) -> tuple[RawPage, bytes | None]:
        asked = _LOG.match(statement.query)
        if asked is None:
            of_log = _SWEEP.match(statement.query) is not None
            return (self._swept if of_log else self._selected)(statement, paging_state, node)
        table = self._simulated.table(asked["keyspace"], asked["table"], node)
        if table is None:
            raise TableMissing(f"unconfigured table {asked['table']}")
        given, start, end = statement.values
        streams = list(given) if isinstance(given, list) else [given]
        self._simulated.widest = max(self._simulated.widest, len(streams))
        for stream in streams:
            self._simulated.require(token_of(stream), token_of(stream))
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
        return self._raw(table, page, asked["what"], node), state

    def _swept(self, statement: Statement, paging_state: bytes | None, node: Node) -> tuple[RawPage, bytes | None]:
        """The first row of each partition, partitions in the order of their tokens; a page may be short or empty."""
        asked = _SWEEP.match(statement.query)
        assert asked is not None, statement.query
        table = self._simulated.table(asked["keyspace"], asked["table"], node)
        if table is None:
            raise TableMissing(f"unconfigured table {asked['table']}")
        first, last, *bounds = statement.values
        try:
            self._simulated.require(first, last)
        except ReplicasAway:
            self._simulated.refused += 1
            raise
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
        shown = self._raw(table, found, '"cdc$stream_id", "cdc$time"', node)
        return shown, page[-1] if len(left) > len(page) else None

    def _selected(self, statement: Statement, paging_state: bytes | None, node: Node) -> tuple[RawPage, bytes | None]:
        """Rows of a table itself. Each page shows them as they are when it is asked for, behind the last row."""
        asked = SELECT.match(statement.query)
        assert asked is not None, statement.query
        table = self._simulated.table(asked["keyspace"], asked["table"], node)
        if table is None or table.history is None:
            raise TableMissing(f"unconfigured table {asked['table']}")
        added, heard = self._added(table, node), self._heard(node)
        columns = asked["what"].split(", ")
        selection = plain_schema.selection(table, heard, columns, asked["where"], statement.values)
        there = {*columns_of(table.history), *added}
        found = [*selection.rows(table.history, there, self._simulated.now_ms, heard)]
        if paging_state is not None:
            token, ck = struct.unpack(">qi", paging_state)
            found = [row for row in found if selection.place(row) > (token, ck)]
        size = statement.fetch_size or len(found)
        page, rest = found[:size], found[size:]
        state = struct.pack(">qi", *selection.place(page[-1])) if rest else None
        shown = plain_schema.shown(table, selection, page)
        uncut = None
        if self.scanner is not None and shown:
            uncut = self.scanner.scan_selected(page_of(shown), 0, len(columns), len(shown), 0, lambda: shown)
        rows = shown if uncut is None else uncut
        types = selection.types({**added, "ck": table.clustering[1]})
        return RawPage(tuple(columns), types, rows, 40 * len(shown), node=node.host), state

    def _raw(self, table: Table, rows: Sequence[Row], what: str, node: Node) -> RawPage:
        columns = self._log_columns(table, node)
        heard = self._heard(node)
        names = list(columns) if what == "*" else [name.strip(' "') for name in what.split(",")]
        cells = [plain_schema.cells(table, row, heard) for row in rows]
        types = tuple(columns[name] for name in names)
        found = [tuple(each.get(name) for name in names) for each in cells]
        uncut = None
        if self.scanner is not None and found:
            uncut = self.scanner.scan(page_of(found), 0, names, len(found), lambda: found)
        return RawPage(tuple(names), types, found if uncut is None else uncut, node=node.host)

    def _heard(self, node: Node) -> float:
        """Until when a node has heard of changes of the schema."""
        return self._simulated.now_ms - node.deaf

    def _added(self, table: Table, node: Node) -> dict[str, str]:
        """Columns that are not always there, with their types."""
        return plain_schema.changed_columns(table, self._heard(node))

    def _log_columns(self, table: Table, node: Node) -> dict[str, Any]:
        if table.history is None:
            return plain_schema.log_columns(table, self._heard(node))
        clustering = plain_schema.key_column(table, self._heard(node)), table.clustering[1]
        there = log_columns(table.history, clustering, self._added(table, node))
        return {name: driver_type(type_) for name, type_ in there.items()}

    # -- the server's own tables -------------------------------------------------------------------------------

    def rows(self, statement: Statement, host: Any = None, timeout: float | None = None) -> list[dict[str, Any]]:
        self.queries += 1
        cluster, scheduler = self._simulated, self._scheduler
        node = host.node if host is not None else scheduler.random.choice(cluster.nodes)
        scheduler.pass_time(scheduler.random.random() * cluster.seconds)
        self._raise_if_away()
        if scheduler.random.random() < cluster.errors:
            cluster.mishaps += 1
            raise NotReached(f"asking node {node.number}: it went away")
        answer = self._metadata(statement, node)
        scheduler.pass_time(scheduler.random.random() * cluster.seconds)
        return answer

    def _raise_if_away(self) -> None:
        if self._simulated.away_until > self._scheduler.now:
            raise NotReached("no node answers")

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
            found = (self._simulated.table(*each.name, node) for each in self._simulated.world.tables)
            known = {str(each.name): self._definition(each, node) for each in found if each is not None}
            return [{"schema_version": str(known)}]
        if "FROM system.versions" in query:
            return [{"version": "2026.1.0"}]
        if "keyspace_name, initial_tablets" in query:
            return [{"keyspace_name": "tablets", "initial_tablets": 0}]
        keyspace = str(values[0])
        if "FROM system_schema.scylla_keyspaces" in query:
            return [{"initial_tablets": 0 if keyspace == "tablets" else None}]
        if "FROM system_schema.tables" in query and "table_name IN" in query:
            logs = {str(name): self._table_of(keyspace, str(name), node) for name in values[1:]}
            return [{"table_name": name, "id": table.id} for name, table in logs.items() if table is not None]
        if "FROM system_schema.keyspaces" in query:
            return [{"keyspace_name": keyspace}]
        if "FROM system_schema.types" in query:
            return []
        if "table_name IN" in query:
            asked = [(str(name), self._simulated.table(keyspace, str(name), node)) for name in values[1:]]
            return [
                {"table_name": name, "timestamp": _moment(at)}
                for name, table in asked
                if table is not None
                for at in self._listed(table, node)
            ]
        name = str(values[1])
        log = name.endswith(LOG_SUFFIX)
        table = self._table_of(keyspace, name, node)
        if table is None:
            return []
        if "dropped_columns" in query:
            return plain_schema.dropped_columns(table, self._heard(node), log)
        if "system.cdc_timestamps" in query:
            return [{"table_name": name, "timestamp": _moment(at)} for at in self._listed(table, node)]
        if "system.cdc_streams" in query:
            sets = (one for one in table.sets if one.timestamp == values[2])
            return [{"stream_id": stream} for one in sets for group in one.groups for stream in group.streams]
        if "FROM system_schema.tables" in query:
            again = table.gone is not None and self._simulated.now_ms >= table.gone[1]
            return [{"id": uuid.UUID(int=3) if again else table.id, "extensions": {"cdc": cdc_options(table)}}]
        assert "FROM system_schema.columns" in query, query
        if log:
            return log_rows(self._log_columns(table, node))
        if table.history:
            clustering = plain_schema.key_column(table, self._heard(node)), table.clustering[1]
            return base_rows(table.history, clustering, self._added(table, node))
        return plain_schema.base_columns(table, self._heard(node))

    def _definition(self, table: Table, node: Node) -> Any:
        """What tells one version of a table from another."""
        heard = self._heard(node)
        dropped = plain_schema.dropped_columns(table, heard, of_log=True)
        return table.id, plain_schema.base_columns(table, heard), dropped

    def _table_of(self, keyspace: str, name: str, node: Node) -> Table | None:
        """By its name, or that of its log."""
        return self._simulated.table(keyspace, name.removesuffix(LOG_SUFFIX), node)

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
