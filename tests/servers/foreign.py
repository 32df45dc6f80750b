"""A ScyllaDB that somebody else runs: tests make keyspaces of a run's own on it, and drop them.

In: addresses, a login, the REST API's address if there is one, the number of the run. Out: `ForeignScylla`.
"""

from __future__ import annotations

import json
import re
import urllib.request
from types import TracebackType
from typing import NoReturn

import pytest
from cassandra.cluster import Cluster, Session

from tests.servers import keyspaces
from tests.servers.capabilities import Abilities, Shape, abilities_of, shape_of
from tests.servers.patience import until
from tests.servers.scylla import Login, Scylla, local_now_us, millis

DEFAULT_PORT = 9042
# The confidence window: nodes' clocks may be so far apart, and a write may take so long. Plus what is measured.
_CONFIDENCE_MS = 2_000


def parse_points(text: str) -> tuple[tuple[str, int], ...]:
    """Contact points as users write them.

    >>> parse_points("a, b:9043,[::1]:7")
    (('a', 9042), ('b', 9043), ('::1', 7))
    """
    points = []
    for each in text.split(","):
        host, colon, port = each.strip().rpartition(":")
        if not colon or port.endswith("]"):
            host, port = each.strip(), str(DEFAULT_PORT)
        if not re.fullmatch(r"[\w.:\[\]-]+", host) or not port.isdecimal() or not 0 < int(port) < 65_536:
            raise ValueError(f"{each.strip()!r} is not HOST:PORT")
        points.append((host.strip("[]"), int(port)))
    return tuple(points)


class ForeignScylla(Scylla):
    """`with ForeignScylla(points, run=…) as scylla:`; at the end every keyspace of the run is dropped."""

    def __init__(
        self,
        points: tuple[tuple[str, int], ...],
        *,
        login: Login | None = None,
        api: str | None = None,
        run: str | None = None,
    ) -> None:
        self._points = points
        self.login = login or Login()
        self.run = run or keyspaces.new_run()
        self.prefix = keyspaces.prefix_of(self.run)
        self._api = api.rstrip("/") if api else None
        self._cluster: Cluster | None = None
        self._session: Session | None = None
        self._ahead_us = 0
        self.abilities = Abilities()
        self.shape = Shape("?", ())

    @property
    def points(self) -> tuple[tuple[str, int], ...]:
        return self._points

    @property
    def address(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self._points)

    @property
    def host(self) -> str:
        return self._points[0][0]

    @property
    def port(self) -> int:
        return self._points[0][1]

    @property
    def session(self) -> Session:
        assert self._session is not None, "it is used inside `with`"
        return self._session

    @property
    def admin(self) -> NoReturn:
        raise AssertionError("a server of somebody's own has no admin interface: mark the test `only_double`")

    def __enter__(self) -> ForeignScylla:
        if self._session is None:
            self.connect()
        try:
            keyspaces.begin(self.session, self.run)
            self.abilities = abilities_of(self.session, self.prefix, self._api)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def connect(self) -> None:
        """Connect and look; nothing is made yet. Raises what the driver raises."""
        self._cluster = self.cluster(schema_metadata_enabled=False)
        try:
            self._session = self._cluster.connect(wait_for_all_pools=True)
            self.shape = shape_of(self._cluster, self._session)
            self._measure_clocks()
        except BaseException:
            self._cluster.shutdown()
            raise

    def close(self) -> None:
        """Drop the run's keyspaces and disconnect."""
        if self._session is not None and self._cluster is not None:
            try:
                keyspaces.drop(self._session, self.run)
            finally:
                self._cluster.shutdown()
                self._session = self._cluster = None

    def _measure_clocks(self) -> None:
        """How far the nodes' clocks are from ours: of several answers of each node, the quickest."""
        aheads = []
        assert self._cluster is not None
        for host in self._cluster.metadata.all_hosts():
            if host.is_up is False:
                continue
            samples = []
            for _ in range(5):
                before = local_now_us()
                future = self.session.execute_async("SELECT toUnixTimestamp(now()) AS ms FROM system.local", host=host)
                answered = future.result().one().ms * 1000 + 500
                after = local_now_us()
                samples.append((after - before, answered - (before + after) // 2))
            aheads.append(min(samples)[1])
        # Writes go in at any node, and the one that is most behind says what is in the future.
        self._ahead_us = min(aheads, default=0)
        self.least_confidence_ms = _CONFIDENCE_MS + (max(aheads, default=0) - min(aheads, default=0)) // 1000

    # -- what tests ask --------------------------------------------------------------------------------------

    def require(self, ability: str) -> None:
        why = self.abilities.why_not(ability)
        if why is not None:
            leave_out(f"{ability}: {why}")

    def able(self, ability: str) -> bool:
        return self.abilities.why_not(ability) is None

    def now_us(self) -> int:
        return local_now_us() + self._ahead_us

    def keyspace_ddl(self, name: str, *, tablets: bool | None = None, initial: int | None = None) -> str:
        assert name.startswith(self.prefix), f"{name}: a keyspace on a foreign server needs a name from named()"
        if tablets is None:
            # As the server likes, unless it could not log changes there.
            missing = {kind: self.abilities.why_not(kind) for kind in ("tablets", "vnodes")}
            tablets = False if missing["tablets"] else True if missing["vnodes"] else None
        elif tablets:
            self.require("tablets")
        else:
            self.require("vnodes")
        option = ""
        if tablets is not None and self.abilities.tablets_option:
            count = f", 'initial': {initial}" if initial and tablets else ""
            option = f" AND tablets = {{'enabled': {str(tablets).lower()}{count}}}"
        replication = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}"
        return f"CREATE KEYSPACE {name} WITH replication = {replication}{option}"

    def execute(self, statement: str) -> None:
        self.session.execute(statement)

    def new_generation(self) -> int:
        self.require("generation")
        before = self.generations()
        request = urllib.request.Request(f"{self._api}/storage_service/cdc_streams_check_and_repair", method="POST")
        with urllib.request.urlopen(request, timeout=120) as answer:
            json.loads(answer.read() or b"null")
        until(lambda: self.generations() - before, 60, "a new generation in cdc_generation_timestamps")
        return max(self.generations())

    def generations(self) -> set[int]:
        """When the vnode generations that the cluster remembers count from, in ms."""
        rows = self.session.execute(
            "SELECT time FROM system_distributed.cdc_generation_timestamps WHERE key = 'timestamps'"
        )
        return {millis(row.time) for row in rows}


def leave_out(reason: str) -> NoReturn:
    """End a test that this server cannot play; the result names it with the reason. The double can everything: there
    no test gets here."""
    raise pytest.skip.Exception(reason)
