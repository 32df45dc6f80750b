"""The driver's cluster, which goes on logging in where it was refused, and knows why there are no connections.

In: `ConnectionSettings`. Out: the driver's connections; by node, what ended the newest attempt at one. The driver
itself never tries again to reach a node that has refused a login, while its user was being changed, say, or the nodes
that know him were away: of all nodes, nothing would be read until somebody starts the process anew. Nor does it look
who a node is that comes back, or let go of one that was replaced.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any, Final

from cassandra import AuthenticationFailed, ConsistencyLevel
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.connection import ConnectionException, ConnectionShutdown
from cassandra.metadata import Metadata
from cassandra.policies import (
    DCAwareRoundRobinPolicy,
    ExponentialReconnectionPolicy,
    FallthroughRetryPolicy,
    RoundRobinPolicy,
)

from connector.source.pages import raw_rows
from connector.source.routing import HoldersFirst
from connector.source.second_asking import AskAnother
from connector.source.settings import ConnectionSettings

CONNECT_SECONDS: Final = 10.0

# So long after a node came back the others are asked who it is. They knew it before it served anybody.
RENEWAL_SECONDS: Final = 1.0

# The driver takes 4 KiB at a time from a socket, and makes a page of a megabyte of 250 pieces.
BYTES_AT_ONCE: Final = 64 * 1024

_CLOSED: Final = "the node ended the connection as it began: it may not take the certificate of scylla.ssl.*"


class ClosedInHandshake(ConnectionException):  # type: ignore[misc]
    """By a node that speaks TLS."""


#: Of a login, by the node; of a certificate, by either side.
_REFUSALS: Final = (AuthenticationFailed, ssl.SSLError, ClosedInHandshake)


class _Nodes(Metadata):  # type: ignore[misc]
    """``gone``: is told of nodes that are no more of the cluster, and were down."""

    def __init__(self, gone: Callable[[Any], None]) -> None:
        super().__init__()
        self._gone = gone

    def remove_host_by_host_id(self, host_id: Any, endpoint: Any = None) -> bool:
        host = self.get_host_by_host_id(host_id)
        removed: bool = super().remove_host_by_host_id(host_id, endpoint)
        # Another one at the same address is the same to the driver, by its new id.
        if removed and host.is_up is False and all(each is not host for each in self.all_hosts()):
            self._gone(host)
        return removed


class PersistentCluster(Cluster):  # type: ignore[misc]
    """``lasts``: from then on a refusal is what a lost connection is. Before, it ends the attempt to connect at all."""

    def __init__(self, **settings: Any) -> None:
        self.lasts = False
        #: By node, until there is a connection to it. The driver's threads put them in here.
        self.troubles: dict[str, BaseException] = {}
        super().__init__(**settings)
        self.metadata = _Nodes(self._let_go)

    def on_up(self, host: Any) -> Any:
        """It may be another one in its place. The driver would go on calling it what it was called, and as replicas
        are told by their ids, it would not be asked for what it holds."""
        was_up, futures = host.is_up, super().on_up(host)
        if not was_up:
            self.scheduler.schedule_unique(RENEWAL_SECONDS, self.control_connection.refresh_node_list_and_token_map)
        return futures

    def _let_go(self, host: Any) -> None:
        """The driver would knock at its door for ever: it heard of the end of a node that it did not know any more."""
        self.troubles.pop(str(host.endpoint), None)
        self.scheduler.schedule_unique(0, self._forget, host)

    def _forget(self, host: Any) -> None:
        # Hosts are equal by their address: a new one that was found there since would lose its connections.
        if all(each != host for each in self.metadata.all_hosts()):
            self.on_remove(host)

    def _start_reconnector(self, host: Any, is_host_addition: bool) -> None:
        """A node that leaves is gone from the others' lists before its connections are: it is lost only then."""
        if any(each is host for each in self.metadata.all_hosts()):
            super()._start_reconnector(host, is_host_addition)
        else:
            self._let_go(host)

    def connection_factory(self, endpoint: Any, *given: Any, **more: Any) -> Any:
        make = super().connection_factory
        return self._noted(endpoint, lambda: make(endpoint, *given, **more), patient=self.lasts)

    def _make_connection_factory(self, host: Any, *given: Any, **more: Any) -> Callable[[], Any]:
        """For a node that was lost."""
        make = super()._make_connection_factory(host, *given, **more)
        return lambda: self._noted(host.endpoint, make, patient=True)

    def _noted(self, endpoint: Any, make: Callable[[], Any], *, patient: bool) -> Any:
        try:
            made = make()
        except AuthenticationFailed as error:
            self.troubles[str(endpoint)] = error
            if patient:
                raise ConnectionException(str(error), endpoint) from error
            raise
        except ConnectionShutdown as error:
            # What a node says of a certificate that it does not take is lost in the driver.
            self.troubles[str(endpoint)] = error if self.ssl_context is None else ClosedInHandshake(_CLOSED, endpoint)
            raise
        except Exception as error:
            self.troubles[str(endpoint)] = error
            raise
        self.troubles.pop(str(endpoint), None)
        return made

    @property
    def refusal(self) -> tuple[str, BaseException] | None:
        """A node that refuses the login now, and what it said."""
        return next(((node, why) for node, why in list(self.troubles.items()) if isinstance(why, _REFUSALS)), None)


class _Socket(Cluster.connection_class):  # type: ignore[misc]
    """A connection to one node: the driver's own for this interpreter, whichever that is."""

    in_buffer_size = BYTES_AT_ONCE


def cluster_by(settings: ConnectionSettings) -> PersistentCluster:
    policy = DCAwareRoundRobinPolicy(settings.local_dc) if settings.local_dc else RoundRobinPolicy()
    holders = HoldersFirst(policy)
    profile = ExecutionProfile(
        load_balancing_policy=holders,
        # What is tried again, how often and after which pause is decided in one place, and shown: not in the driver.
        retry_policy=FallthroughRetryPolicy(),
        consistency_level=getattr(ConsistencyLevel, settings.consistency.upper()),
        request_timeout=settings.request_timeout,
        speculative_execution_policy=AskAnother(lambda: holders.others),
        row_factory=raw_rows,
    )
    auth = PlainTextAuthProvider(settings.user, settings.password) if settings.user is not None else None
    return PersistentCluster(
        connection_class=_Socket,
        contact_points=list(settings.contact_points),
        # The port of nodes that are only discovered: as the first contact point's.
        port=settings.contact_points[0][1],
        auth_provider=auth,
        ssl_context=settings.tls,
        ssl_options=None,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        protocol_version=4,
        connect_timeout=CONNECT_SECONDS,
        control_connection_timeout=CONNECT_SECONDS,
        reconnection_policy=ExponentialReconnectionPolicy(0.2, 5.0),
        # Descriptions are read by ourselves, with the log's; the driver's copy of the whole schema would cost seconds
        # on big clusters at every change of it. Who owns which token is what streams are routed by.
        schema_metadata_enabled=False,
        # At each change of the schema it would still wait until all nodes have the same, for 10 s, one change after the
        # other, in the threads that nodes which go or come wait for.
        schema_event_refresh_window=-1,
        token_metadata_enabled=True,
        # Each node is told of a statement when it is asked first: one that hangs would hold up each new one for 10 s,
        # in the thread that owns all reads.
        prepare_on_all_hosts=False,
        executor_threads=2,
    )
