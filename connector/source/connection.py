"""The one CQL connection of a process.

In: `ConnectionSettings`. Out: `Connection`: prepared statements, asynchronous raw pages, the server's clock, hosts.
Every exception that leaves this module is one of ``connector.errors``.
"""

from __future__ import annotations

import itertools
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC
from typing import Any

from cassandra import ConsistencyLevel, OperationTimedOut
from cassandra.cluster import NoHostAvailable, Session
from cassandra.policies import HostDistance
from cassandra.query import BoundStatement

from connector.changes import Scanner
from connector.errors import RetriableSourceError, SourceError
from connector.source import second_asking
from connector.source.contact_points import unresolved
from connector.source.datacenters import nobody_there
from connector.source.failures import NotReached, bracketed, translated
from connector.source.hosts_in_turn import HostsInTurn
from connector.source.pages import RawPage, raw_protocol_handler
from connector.source.persistent_cluster import PersistentCluster, cluster_by
from connector.source.routing import HoldersFirst, is_read_of_streams
from connector.source.server_clock import ServerClock
from connector.source.settings import ConnectionSettings
from connector.source.standstill import Standstill

log = logging.getLogger(__name__)

PageCallback = Callable[[RawPage, bytes | None], None]
ErrorCallback = Callable[[SourceError], None]

# What a server needs to tell its time, generously: an answer that took longer would say little about it anyway.
CLOCK_SECONDS = 5.0

# A node that says nothing for so long to the cheapest of all questions is not there.
PING_SECONDS = 2.0
_KEY = "SELECT key FROM system.local WHERE key = 'local'"


class Connection:
    """A session whose results are raw pages. Safe to use from several threads; callbacks run in the driver's."""

    def __init__(self, settings: ConnectionSettings, scanner: Scanner | None = None) -> None:
        """``scanner``: pages are not cut, but scanned by it."""
        self.settings = settings
        self.scanner = scanner
        self.clock = ServerClock()
        self._clocks_in_turn = HostsInTurn(self, last=-1)
        self._lock = threading.Lock()
        self._prepared: dict[tuple[str, str], Any] = {}
        self._opened: PersistentCluster | None = None
        self._tried: PersistentCluster | None = None
        self._session: Session | None = None
        self._standstill: Standstill | None = None
        self.queries = 0
        #: What nodes have shown to know of tables, and since when; nobody forgets a schema.
        self.vouched: dict[object, float] = {}

    def open(self) -> None:
        """Connect. Raises AccessDenied, RetriableSourceError, …"""
        cluster = None
        try:
            # Names are resolved here.
            cluster = self._tried = cluster_by(self.settings)
            # The driver would be content with the first node that it reaches. Nodes are asked one by one as soon as
            # this returns, and over TLS, or from afar, the others are not there yet.
            session = cluster.connect(wait_for_all_pools=True)
        except Exception as error:
            doing = f"connecting to {_shown(self.settings)}"
            hosts = [] if cluster is None else list(cluster.metadata.all_hosts())
            known, asked = _datacenters(hosts), hosts if cluster is None else _not_ignored(cluster)
            if cluster is not None:
                cluster.shutdown()
            if known and not asked:
                raise NotReached(f"{doing}: {nobody_there(self.settings, known)}") from None
            if hosts and isinstance(error, NoHostAvailable) and not isinstance(error.errors, dict):
                # The driver tells neither port nor cause of nodes that it has found by itself.
                why = _why(hosts[0].endpoint, PING_SECONDS)
                raise NotReached(
                    f"{doing}: a node answers, and none does at the address that it tells: {why}"
                ) from None
            refusal = translated(error, doing)
            if cluster is not None and isinstance(refusal, NotReached):
                # Others do, or there would be no cluster to ask.
                refusal = NotReached("; ".join([str(refusal), *unresolved(self.settings.contact_points)]))
            raise refusal from None
        self._opened, cluster.lasts = cluster, True
        session.client_protocol_handler = raw_protocol_handler(self.scanner)
        self._session = session
        self._standstill = Standstill(cluster.connection_class.create_timer)

    @property
    def address(self) -> str:
        """Where the cluster is, as it was configured."""
        return _shown(self.settings)

    @property
    def _cluster(self) -> PersistentCluster:
        assert self._opened is not None, "open() comes first"
        return self._opened

    @property
    def session(self) -> Session:
        assert self._session is not None, "open() comes first"
        return self._session

    def close(self) -> None:
        if self._standstill is not None:
            self._standstill.end()
        if self._opened is not None:
            self._opened.shutdown()

    # -- hosts -----------------------------------------------------------------------------------------------

    def hosts(self) -> list[Any]:
        """Hosts that are asked and not known to be down, in a fixed order."""
        hosts = [host for host in self.asked_hosts() if host.is_up is not False]
        return sorted(hosts, key=lambda host: (str(host.endpoint.address), host.endpoint.port))

    def asked_hosts(self) -> list[Any]:
        """All nodes, up or not; with ``local_dc`` only those of that datacenter: the driver has no connections to
        others, and refuses whatever is meant for them."""
        return _not_ignored(self._cluster)

    def known_hosts(self) -> list[Any]:
        """All nodes of the cluster, of whichever datacenter, up or not."""
        return list(self._cluster.metadata.all_hosts())

    def host_count(self) -> int:
        return len(self.known_hosts())

    def datacenters(self) -> set[str]:
        """Where nodes of the cluster are."""
        return _datacenters(self.known_hosts())

    def avoid(self, host: Any, seconds: float) -> None:
        """Ask it last for so long."""
        self._policy.avoid(host, seconds)

    @property
    def slow_hosts(self) -> dict[str, str]:
        """Those that others are asked in place of, since they say nothing or are slow, and which of the two it is."""
        return self._policy.troubles

    @property
    def _policy(self) -> HoldersFirst:
        return self._cluster.profile_manager.default.load_balancing_policy  # type: ignore[no-any-return]

    def raise_blindness(self) -> None:
        """Raise what keeps the driver from seeing nodes that join, leave or move; it goes on with what it knew."""
        control = self._cluster.control_connection._connection
        if control is None or control.is_closed or control.is_defunct:
            raise RetriableSourceError(f"no node of {_shown(self.settings)} answers the driver's queries about nodes")
        policy = self._policy
        trouble, policy.trouble = policy.trouble, None
        if trouble is not None:
            raise trouble

    # -- statements ------------------------------------------------------------------------------------------

    def statement(
        self, query: str, values: Sequence[Any], consistency: str | None = None, fetch_size: int | None = None
    ) -> Any:
        """``query`` prepared (once per process) and bound. ``fetch_size`` 0 asks for everything in one page."""
        bound = self._prepare(query, consistency).bind(list(values))
        return self._sized(bound, self.settings.fetch_size if fetch_size is None else fetch_size)

    def raw_statement(self, query: str, cells: Sequence[bytes]) -> Any:
        """As `statement`, with values that are serialised already."""
        bound = BoundStatement(self._prepare(query, None))
        bound.values = list(cells)
        return self._sized(bound, self.settings.fetch_size)

    def _prepare(self, query: str, consistency: str | None) -> Any:
        level = consistency or self.settings.consistency
        key = (query, level)
        prepared = self._prepared.get(key)
        if prepared is None:
            asked, where = time.monotonic(), ""
            try:
                prepared = self.session.prepare(query)
            except Exception as error:
                if isinstance(error, OperationTimedOut) and error.last_host is not None:
                    where = f" at {bracketed(str(error.last_host.endpoint))}"
                    if not self._stood_still_since(asked):
                        self._policy.heard(None, [error.last_host])
                raise translated(error, f"preparing {query}{where}") from None
            prepared.consistency_level = getattr(ConsistencyLevel, level.upper())
            with self._lock:
                self._prepared[key] = prepared
        return prepared

    @staticmethod
    def _sized(bound: Any, fetch_size: int) -> Any:
        bound.fetch_size = fetch_size or None
        bound.is_idempotent = True
        return bound

    def page_async(
        self,
        statement: Any,
        done: PageCallback,
        failed: ErrorCallback,
        paging_state: bytes | None = None,
        host: Any = None,
    ) -> None:
        """One page; exactly one of the callbacks is called, in the driver's thread or in this one."""
        self.queries += 1
        asked = time.monotonic()
        try:
            asking = second_asking.meant_for(statement, host)
            future = self.session.execute_async(asking, paging_state=paging_state, host=host)
        except Exception as error:
            failed(translated(error, "sending a query"))
            return

        answers = itertools.count()

        def arrived(page: RawPage | None) -> None:
            # Each node that was asked may answer.
            if next(answers):
                return
            second_asking.is_over(future)
            # The driver ignores what callbacks raise: the read would never end.
            try:
                self._heard(future, time.monotonic() - asked, statement)
                done(_EMPTY if page is None else replace(page, node=future.coordinator_host), future._paging_state)
                _let_go(future)
            except Exception as error:
                log.warning("a page could not be processed", exc_info=error)
                failed(translated(error, "processing a page"))

        def refused(error: BaseException) -> None:
            if next(answers):
                return
            second_asking.is_over(future)
            try:
                self._heard(future, time.monotonic() - asked, statement, error)
            except Exception as trouble:
                log.warning("who answers could not be told", exc_info=trouble)
            refusal = translated(error, f"reading from {self._asked(future, host, error)}", self.known_hosts())
            refusal.node = refusal.node or future.coordinator_host
            failed(refusal)
            _let_go(future)

        future.add_callbacks(arrived, refused)

    def rows(self, statement: Any, host: Any = None, timeout: float | None = None) -> list[dict[str, Any]]:
        """All rows, decoded; for metadata. Blocks."""
        rows: list[dict[str, Any]] = []
        state: bytes | None = None
        while True:
            page, state = self._page(statement, state, host, timeout or self.settings.request_timeout)
            if isinstance(page, RawPage):
                rows.extend(page.decoded())
            if not state:
                return rows

    def _page(self, statement: Any, state: bytes | None, host: Any, timeout: float) -> tuple[object, bytes | None]:
        """One page, and where the next one begins. Blocks. Both are of one answer: while they are taken out of the
        driver's future, another node that was asked as well may put its own there."""
        self.queries += 1
        asked = time.monotonic()
        first: Future[tuple[object, bytes | None]] = Future()
        future: Any = None

        def arrived(page: object) -> None:
            if not first.done():
                first.set_result((page, future._paging_state))

        def refused(error: BaseException) -> None:
            if not first.done():
                first.set_exception(error)

        try:
            asking = second_asking.meant_for(statement, host)
            future = self.session.execute_async(asking, paging_state=state, host=host, timeout=timeout)
            future.add_callbacks(arrived, refused)
            try:
                found = first.result()
            finally:
                second_asking.is_over(future)
            self._heard(future, time.monotonic() - asked, statement, blocks=True)
            return found
        except Exception as error:
            raise translated(error, f"asking {self._asked(future, host, error)}", self.known_hosts()) from None

    def _heard(
        self, future: Any, seconds: float, statement: Any, error: BaseException | None = None, *, blocks: bool = False
    ) -> None:
        """A question has its answer, or will have none, after so many seconds. Silent is only who had the time in which
        those who are alive answer: not who was asked last, shortly before the timeout. ``blocks``: for metadata."""
        if self._stood_still_since(time.monotonic() - seconds):
            return
        answered, asked = _who_answered(future, error), list(future.attempted_hosts)
        others = asked.index(answered) if answered in asked else len(asked)
        # Of a sweep too: it is put to another node sooner, and may take as long as rows do. Timers are not exact.
        of_streams = is_read_of_streams(statement)
        patience = second_asking.SILENT_SECONDS if of_streams or blocks else second_asking.SILENT_SECONDS_OF_ROWS
        silent = asked[: min(others, int((seconds + 0.5) // patience))]
        self._policy.heard(answered, silent, seconds if of_streams and not others else None)

    def _stood_still_since(self, asked: float) -> bool:
        """Then a late answer says nothing of whoever was asked."""
        return self._standstill is not None and asked < self._standstill.awake_since()

    def _asked(self, future: Any, host: Any, error: BaseException) -> str:
        """Who has refused a question; of one that nobody answered, all that were asked, or whom it was meant for."""
        whom = host or _who_answered(future, error)
        asked = [whom] if whom is not None else [] if future is None else list(dict.fromkeys(future.attempted_hosts))
        # With none of them up, nobody is; those at the contact points may be of another datacenter, and well.
        nobody = f"datacenter {self.settings.local_dc} of {self.address}" if self.settings.local_dc else self.address
        return ", then ".join(bracketed(str(each.endpoint)) for each in asked) or nobody

    def query(
        self,
        text: str,
        values: Sequence[Any] = (),
        consistency: str = "ONE",
        host: Any = None,
        fetch_size: int = 5_000,
        timeout: float | None = None,
    ) -> list[dict[str, Any]]:
        return self.rows(self.statement(text, values, consistency, fetch_size), host=host, timeout=timeout)

    def require_an_answer(self) -> None:
        """Raise unless one of the nodes answers, whatever it says. Asks those first that the driver believes in."""
        hosts = sorted(self.asked_hosts(), key=lambda host: host.is_up is False)
        if not hosts:
            raise RetriableSourceError(nobody_there(self.settings, self.datacenters()))
        last: SourceError | None = None
        patience = max(PING_SECONDS / 4, min(PING_SECONDS, 2 * PING_SECONDS / max(1, len(hosts))))
        for host in hosts:
            try:
                self.rows(self.statement(_KEY, (), "ONE"), host=host, timeout=patience)
            except Exception as error:
                last = translated(error, f"asking {host.endpoint}")
                if not isinstance(last, NotReached):
                    return
            else:
                return
        endpoint = hosts[0].endpoint
        raise RetriableSourceError(_why(endpoint, patience, self._cluster.troubles.get(str(endpoint)))) from last

    @property
    def refusal(self) -> str | None:
        """A node that refuses us as we log in, and what it says."""
        found = None if self._tried is None else self._tried.refusal
        return None if found is None else str(translated(found[1], bracketed(found[0])))

    def ask_a_clock(self) -> dict[str, Exception | None]:
        """One server in turn is asked for its time, and where it does not tell it, the next; who said what."""
        asked: dict[str, Exception | None] = {}
        for host in self._clocks_in_turn.next():
            try:
                self.sample_clock(host)
            except Exception as error:
                asked[str(host.endpoint)] = error
            else:
                asked[str(host.endpoint)] = None
                break
        return asked

    def sample_clocks(self) -> None:
        """Ask every server for its time, before anything is read: the one most behind counts from the beginning.
        Raises what the last one said if none tells it; if some take long, others have their turn later."""
        deadline, told, refused = time.monotonic() + CLOCK_SECONDS, False, None
        for host in self._clocks_in_turn.next():
            if told and time.monotonic() >= deadline:
                break
            try:
                self.sample_clock(host)
            except Exception as error:
                refused = error
            else:
                told = True
        if refused is not None and not told:
            raise refused

    def sample_clock(self, host: Any) -> None:
        """Ask one server for its time."""
        question = "SELECT toTimestamp(now()) AS now FROM system.local WHERE key = 'local'"
        answer = self.rows(self.statement(question, (), "ONE"), host=host, timeout=CLOCK_SECONDS)
        moment = answer[0]["now"]
        self.clock.sampled(str(host.endpoint), round(moment.timestamp() * 1000) if moment.tzinfo else _epoch_ms(moment))


def _not_ignored(cluster: PersistentCluster) -> list[Any]:
    distance = cluster.profile_manager.distance
    return [host for host in cluster.metadata.all_hosts() if distance(host) != HostDistance.IGNORED]


def _datacenters(hosts: Iterable[Any]) -> set[str]:
    return {host.datacenter for host in hosts if host.datacenter}


_EMPTY = RawPage((), (), ())


def _why(endpoint: Any, patience: float, trouble: BaseException | None = None) -> str:
    """Why a node does not answer; the driver only says that it gave up on it. ``trouble``: what the newest attempt to
    connect met."""
    place = bracketed(str(endpoint))
    try:
        socket.create_connection((endpoint.address, endpoint.port), patience).close()
    except OSError as error:
        return f"{place}: {(error.strerror or str(error)).lower()}"
    if trouble is not None and not isinstance(trouble, OperationTimedOut):
        return str(translated(trouble, place))
    return f"{place}: connections are accepted, but no query is answered"


def _epoch_ms(moment: Any) -> int:
    """The driver's datetimes are UTC without saying so."""
    milliseconds: float = moment.replace(tzinfo=UTC).timestamp() * 1000
    return round(milliseconds)


def _who_answered(future: Any, error: BaseException | None) -> Any:
    """For the driver it is also who said no more than that it does not know the statement yet."""
    return None if future is None or isinstance(error, OperationTimedOut) else future.coordinator_host


def _let_go(future: Any) -> None:
    """Its page goes as soon as nobody works on it. A future and its callbacks hold each other: that is garbage for the
    collector, which counts objects, not the megabytes in them."""
    future.clear_callbacks()
    future._final_result = None


def _shown(settings: ConnectionSettings) -> str:
    return ", ".join(bracketed(f"{host}:{port}") for host, port in settings.contact_points)
