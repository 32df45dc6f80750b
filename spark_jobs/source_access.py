"""How a Spark job reaches the source: a value that travels to the executors, which connect by themselves.

In: the configuration's connection. Out: ``SourceAccess``; key stores are read once, where the job is started.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from connector.changes.description import TableDescription
from connector.config.address import TableName
from connector.config.connector_config import ConnectionConfig
from connector.config.keystores import KeystoreError
from connector.config.secret import Secret
from connector.config.tls import TlsMaterial, scylla_material
from connector.errors import (
    AccessDenied,
    ConfigurationError,
    LandingError,
    Problem,
    RetriableSourceError,
    SourceError,
    TableMissing,
)
from connector.source.base_rows import TokenRange, ring_tokens, token_ranges
from connector.source.connection import Connection
from connector.source.descriptions import describe_base
from connector.source.settings import ConnectionSettings

SourceTable = TableDescription

_PAUSES_S = (0.2, 0.5)


@dataclass(frozen=True)
class SourceAccess:
    """The connection's settings, all of which can be pickled."""

    contact_points: tuple[tuple[str, int], ...]
    user: str | None = None
    password: Secret | None = None
    tls: TlsMaterial | None = None
    local_dc: str | None = None
    consistency: str = "QUORUM"
    fetch_size: int = 5_000
    request_timeout: float = 10.0

    @contextlib.contextmanager
    def connected(self) -> Iterator[Connection]:
        """An open connection. What the source refuses is said with the property that would help."""
        connection = Connection(
            ConnectionSettings(
                contact_points=self.contact_points,
                user=self.user,
                password=self.password.reveal() if self.password else None,
                tls=self.tls.context() if self.tls else None,
                verify_host_name=bool(self.tls and self.tls.check_host),
                local_dc=self.local_dc,
                consistency=self.consistency,
                fetch_size=self.fetch_size,
                request_timeout=self.request_timeout,
            )
        )
        try:
            _opened(connection)
        except AccessDenied as error:
            raise LandingError(f"{error}; check scylla.user and scylla.password") from None
        except RetriableSourceError as error:
            raise LandingError(
                f"the source does not answer: {error}; check scylla.cluster.ip.addresses and scylla.ssl.*"
            ) from None
        try:
            yield connection
        except TableMissing as error:
            raise LandingError(f"{error} in the source") from None
        except SourceError as error:
            raise LandingError(f"reading the source failed: {error}") from None
        finally:
            connection.close()


def _opened(connection: Connection) -> None:
    """A task that fails is the end of the whole comparison or backfill: a server that is busy is asked again."""
    for pause in _PAUSES_S:
        try:
            return connection.open()
        except RetriableSourceError:
            threading.Event().wait(pause)
    connection.open()


def source_access(config: ConnectionConfig) -> SourceAccess:
    """Access by a checked configuration; key stores are read now."""
    try:
        tls = scylla_material(config.tls)
    except KeystoreError as error:
        raise ConfigurationError([Problem("scylla.ssl", str(error), suggestion=error.remedy)]) from None
    return SourceAccess(
        contact_points=tuple((point.host, point.port) for point in config.contact_points),
        user=config.user,
        password=config.password,
        tls=tls,
        local_dc=config.local_dc,
        consistency=config.consistency_level,
        fetch_size=config.fetch_size,
        request_timeout=config.request_timeout_ms / 1000,
    )


def described(access: SourceAccess, table: TableName) -> TableDescription:
    """The table as the source has it now."""
    with access.connected() as connection:
        return describe_base(connection, table.keyspace, table.table)[0]


def time_to_live(access: SourceAccess, table: TableName) -> int:
    """The table's ``default_time_to_live`` in seconds."""
    with access.connected() as connection:
        return describe_base(connection, table.keyspace, table.table)[1]


def ranges_of(access: SourceAccess, least: int) -> list[TokenRange]:
    """The source's token ranges, at least so many."""
    with access.connected() as connection:
        return token_ranges(ring_tokens(connection), least)
