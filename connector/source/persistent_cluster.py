"""The driver's cluster, which goes on logging in where it was refused, and knows why there are no connections.

In: what the driver takes. Out: its connections; by node, what ended the newest attempt at one. The driver itself never
tries again to reach a node that has refused a login, while its user was being changed, say, or the nodes that know him
were away: of all nodes, nothing would be read until somebody starts the process anew.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any, Final

from cassandra import AuthenticationFailed
from cassandra.cluster import Cluster
from cassandra.connection import ConnectionException, ConnectionShutdown

_CLOSED: Final = "the node ended the connection as it began: it may not take the certificate of scylla.ssl.*"


class ClosedInHandshake(ConnectionException):  # type: ignore[misc]
    """By a node that speaks TLS."""


#: Of a login, by the node; of a certificate, by either side.
_REFUSALS: Final = (AuthenticationFailed, ssl.SSLError, ClosedInHandshake)


class PersistentCluster(Cluster):  # type: ignore[misc]
    """``lasts``: from then on a refusal is what a lost connection is. Before, it ends the attempt to connect at all."""

    def __init__(self, **settings: Any) -> None:
        self.lasts = False
        #: By node, until there is a connection to it. The driver's threads put them in here.
        self.troubles: dict[str, BaseException] = {}
        super().__init__(**settings)

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
