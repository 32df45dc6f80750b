"""How a Spark job reaches the source: a value that travels to the executors, which connect by themselves.

In: the configuration's connection. Out: ``SourceAccess``; key stores are read once, where the job is started.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from connector.changes import TableDescription
from connector.config import ConnectionConfig, KeystoreError, TlsMaterial, tls_material
from connector.errors import (
    AccessDenied,
    ConfigurationError,
    LandingError,
    Problem,
    RetriableSourceError,
    SourceError,
    TableMissing,
)
from connector.source import (
    OF_ROWS,
    Connection,
    TokenRange,
    ask_all,
    connection_settings,
    describe_base,
    loose_datacenter,
    ring_tokens,
    token_ranges,
)
from connector.table_name import TableName

log = logging.getLogger(__name__)

SourceTable = TableDescription

_PAUSES_S = (0.2, 0.5)


@dataclass(frozen=True)
class SourceAccess:
    """The configured connection, and what its key stores held where the job was started. Can be pickled."""

    connection: ConnectionConfig
    tls: TlsMaterial | None = None
    #: What nodes have said of columns that were added again, so that tasks ask nobody for that once more.
    vouched: set[object] = field(default_factory=set, compare=False)

    def for_tasks(self) -> SourceAccess:
        """As it is now: others of this process may ask more nodes while it is pickled."""
        return replace(self, vouched=set(self.vouched))

    @contextlib.contextmanager
    def connected(self) -> Iterator[Connection]:
        """An open connection. What the source refuses is said with the property that would help."""
        connection = Connection(connection_settings(self.connection, self.tls))
        connection.vouched = dict.fromkeys(self.vouched, float("-inf"))
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
            time.sleep(pause)
    connection.open()


def source_access(config: ConnectionConfig) -> SourceAccess:
    """Access by a checked configuration; key stores are read now."""
    if config.tls.warning:
        log.warning("TLS to ScyllaDB: %s", config.tls.warning)
    try:
        tls = tls_material(config.tls)
    except KeystoreError as error:
        raise ConfigurationError([Problem("scylla.ssl", str(error), suggestion=error.remedy)]) from None
    return SourceAccess(config, tls)


def described(access: SourceAccess, table: TableName) -> TableDescription:
    """The table as the source has it now."""
    with access.connected() as connection:
        if (loose := loose_datacenter(connection.settings, connection.datacenters(), OF_ROWS)) is not None:
            _warn(loose)
        found = describe_base(connection, table.keyspace, table.name)[0]
        ask_all(connection, found)
        access.vouched.update(connection.vouched)
        return found


@lru_cache(maxsize=8)
def _warn(text: str) -> None:
    """Once, however many tables there are."""
    log.warning("%s", text)


def time_to_live(access: SourceAccess, table: TableName) -> int:
    """The table's ``default_time_to_live`` in seconds."""
    with access.connected() as connection:
        return describe_base(connection, table.keyspace, table.name)[1]


def ranges_of(access: SourceAccess, least: int) -> list[TokenRange]:
    """The source's token ranges, at least so many."""
    with access.connected() as connection:
        return token_ranges(ring_tokens(connection), least)
