"""The face of a ScyllaDB under test, the same whether it is the embedded double or a cluster of somebody's own.

In: an address and a login. Out: connections for tests, the connector and landing; keyspaces; the server's time; what a
test may ask of this server (`require`). `Double` and `ForeignScylla` say how.
"""

from __future__ import annotations

import ssl
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.policies import RoundRobinPolicy

from connector.source.settings import ConnectionSettings
from tests.servers.patience import until

SYSTEM_STORE = "system"
# A real server takes seconds for DDL: each change of the schema is agreed on by all nodes.
REQUEST_SECONDS = 60
# The driver gives a server 5 s to take its connection, and 2 s for each answer about the cluster: a busy machine needs
# more for the double's.
PATIENT: Final = {"connect_timeout": REQUEST_SECONDS, "control_connection_timeout": REQUEST_SECONDS}


@dataclass(frozen=True)
class Login:
    """User, password, and the trusted certificates: a PEM file, `system` for the machine's own, or None for no TLS."""

    user: str | None = None
    password: str | None = None
    tls: str | None = None

    def __repr__(self) -> str:  # a password has no business in a log
        return f"Login(user={self.user!r}, tls={self.tls!r})"

    def context(self) -> ssl.SSLContext | None:
        if self.tls is None:
            return None
        context = ssl.create_default_context(cafile=None if self.tls == SYSTEM_STORE else self.tls)
        # Nodes are reached by address, which few certificates name.
        context.check_hostname = False
        return context


class Scylla(ABC):
    """A server that tests use and leave as it was."""

    # What the names of keyspaces begin with.
    prefix = ""
    login = Login()
    # The confidence window that this server's clocks allow at least.
    least_confidence_ms = 0

    @property
    @abstractmethod
    def points(self) -> tuple[tuple[str, int], ...]:
        """Contact points."""

    @abstractmethod
    def require(self, ability: str) -> None:
        """Leave the test out, with the reason, where the server cannot do this (`capabilities.ABILITIES`)."""

    @abstractmethod
    def able(self, ability: str) -> bool:
        """Whether it can."""

    @abstractmethod
    def now_us(self) -> int:
        """The server's time."""

    @abstractmethod
    def keyspace_ddl(self, name: str, *, tablets: bool | None = None, initial: int | None = None) -> str:
        """CREATE KEYSPACE with one replica, with or without tablets (None: as the server likes)."""

    @abstractmethod
    def execute(self, statement: str) -> None:
        """Execute a statement."""

    @abstractmethod
    def new_generation(self) -> int:
        """Give the vnodes new streams; from when on they count, in ms."""

    # -- names -----------------------------------------------------------------------------------------------

    def named(self, name: str) -> str:
        """The name of a keyspace on this server."""
        return f"{self.prefix}{name}"

    # -- time ------------------------------------------------------------------------------------------------

    def now_ms(self) -> int:
        return self.now_us() // 1000

    def confidence_ms(self, wanted: int) -> int:
        return max(wanted, self.least_confidence_ms)

    # -- connections -----------------------------------------------------------------------------------------

    def reached(self) -> dict[str, Any]:
        """What a driver needs to know to connect."""
        found: dict[str, Any] = {"contact_points": list(self.points), "port": self.points[0][1], **PATIENT}
        if self.login.user is not None:
            found["auth_provider"] = PlainTextAuthProvider(self.login.user, self.login.password or "")
        if (context := self.login.context()) is not None:
            found["ssl_context"] = context
        return found

    def cluster(self, *, row_factory: Callable[..., Any] | None = None, **options: Any) -> Cluster:
        """A driver that tries the nodes in turn."""
        profile: dict[str, Any] = {
            "load_balancing_policy": RoundRobinPolicy(),
            "request_timeout": REQUEST_SECONDS,
            **({"row_factory": row_factory} if row_factory is not None else {}),
        }
        options.setdefault("protocol_version", 4)
        options.setdefault("max_schema_agreement_wait", REQUEST_SECONDS)
        options.setdefault("execution_profiles", {EXEC_PROFILE_DEFAULT: ExecutionProfile(**profile)})
        return Cluster(**{**self.reached(), **options})

    def settings(self, **options: Any) -> ConnectionSettings:
        """How the connector's source room reaches it."""
        return ConnectionSettings(
            self.points,
            **{
                "user": self.login.user,
                "password": self.login.password,
                "tls": self.login.context(),
                **options,
            },
        )

    def properties(self) -> dict[str, str]:
        """The same in a connector's or a landing job's file. The password comes from the environment."""
        found = {"scylla.cluster.ip.addresses": ",".join(f"{host}:{port}" for host, port in self.points)}
        if self.login.user is not None:
            found["scylla.user"] = self.login.user
            found["scylla.password"] = "${env:SCYLLA_PASSWORD}"
        if self.login.tls is not None:
            found["scylla.ssl.enabled"] = "true"
            if self.login.tls != SYSTEM_STORE:
                found["scylla.ssl.truststore.path"] = str(Path(self.login.tls).resolve())
        return found

    # -- tablets ---------------------------------------------------------------------------------------------

    def split_tablets(self, session: Session, table: str) -> None:
        """Twice as many tablets, and wait for the new stream set: a real server splits when it has looked at its
        load, once a minute."""
        self.require("split")
        before, count = stream_set(session, table)
        session.execute(f"ALTER TABLE {table} WITH tablets = {{'min_tablet_count': {2 * count}}}")
        # The load is looked at once a minute, and each step is a stream set of its own.
        until(
            lambda: stream_set(session, table)[1] >= 2 * count, 150, f"a split of {table} ({before}: {count} tablets)"
        )


def stream_set(session: Session, table: str) -> tuple[int, int]:
    """When the newest stream set of a tablets table counts from, in ms, and how many streams it has."""
    keyspace, _, name = table.partition(".")
    where = f"keyspace_name = '{keyspace}' AND table_name = '{name}'"
    stamps = session.execute(f"SELECT timestamp FROM system.cdc_timestamps WHERE {where}")
    newest = max(millis(row.timestamp) for row in stamps)
    streams = session.execute(
        f"SELECT stream_id FROM system.cdc_streams WHERE {where} AND timestamp = {newest} AND stream_state = 0"
    )
    return newest, len(list(streams))


def millis(stamp: datetime) -> int:
    """The driver's timestamps are in UTC, and do not say so."""
    return round(stamp.replace(tzinfo=UTC).timestamp() * 1000)


def local_now_us() -> int:
    return time.time_ns() // 1000
