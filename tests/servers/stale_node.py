"""Two nodes of the double; the second one learns late of new stream sets and goes on writing to the old ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.policies import WhiteListRoundRobinPolicy

from tests.servers.double import Double
from tests.servers.patience import until
from tests.servers.scylla import PATIENT


class StaleNode:
    """``fresh`` is a session with the first node, ``stale`` one with the second."""

    def __init__(self, server: Double, fresh: Session, stale: Session) -> None:
        self.server = server
        self.fresh = fresh
        self.stale = stale

    def change(self, table: str, tablets: bool, split: int | None = None) -> None:
        """A new stream set that counts at once. Only in its memory the second node does not have it: its tables show
        it, so that no reader asks it in vain. ``split``: into so many tablets, instead of as many new ones."""
        self.server.admin.make_stale(1, behind_ms=1, shows=False, writes=True)
        if tablets:
            self.server.admin.change_streams(table, tablets=split, replace=True if split is None else None)
        else:
            self.server.admin.new_generation()
        # A set begins at a whole millisecond: what is written within the same one still belongs to the streams before.
        changed = time.time()
        until(lambda: time.time() > changed + 0.05, what="the first moment of the new streams")

    def hears(self) -> None:
        self.server.admin.make_fresh(1)

    def write(self, table: str, pk: int, ck: int, late: bool = False) -> None:
        (self.stale if late else self.fresh).execute(f"INSERT INTO {table} (pk, ck, v) VALUES ({pk}, {ck}, 'x')")


@contextmanager
def stale_node() -> Iterator[StaleNode]:
    with ExitStack() as stack:
        server = stack.enter_context(Double(nodes=2, vnodes=4, ring_delay=0))
        sessions = []
        for host in (server.host, "127.0.0.2"):
            policy = WhiteListRoundRobinPolicy([host])
            profile = ExecutionProfile(load_balancing_policy=policy, request_timeout=90)
            driver = Cluster(
                [host],
                port=server.port,
                protocol_version=4,
                execution_profiles={EXEC_PROFILE_DEFAULT: profile},
                **PATIENT,
            )
            stack.callback(driver.shutdown)
            session = driver.connect()
            session.use_client_timestamp = False
            sessions.append(session)
        yield StaleNode(server, *sessions)
