"""The embedded server, with a keyspace that each test gets anew, and the way from CQL to log rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from cassandra.cluster import Cluster

from connector.changes import LogLayout, Row, TableDescription, layout_of
from connector.source.connection import Connection
from connector.source.descriptions import describe_table
from connector.source.pages import RawPage
from connector.source.settings import ConnectionSettings
from connector.table_name import TableName
from embedded.scylla.process import EmbeddedScylla
from tests.servers.scylla import PATIENT


@dataclass(frozen=True, slots=True)
class LogReading:
    description: TableDescription
    pages: list[tuple[LogLayout, Sequence[Row]]]


class CdcServer:
    """A driver's session for writing, and the connector's own connection for reading."""

    def __init__(self, session: Any, connection: Connection) -> None:
        self._session = session
        self._connection = connection

    def fresh_keyspace(self, tablets: bool = False) -> None:
        self._session.execute("DROP KEYSPACE IF EXISTS ks")
        self._session.execute(
            "CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1} "
            f"AND tablets = {{'enabled': {'true' if tablets else 'false'}}}"
        )

    def run(self, *statements: str) -> None:
        for statement in statements:
            self._session.execute(statement)

    def read_log(self, table: str) -> LogReading:
        """The table's description and its whole log, stream by stream."""
        description = describe_table(self._connection, TableName("ks", table)).description
        # Prepared anew: the same name may have been another table before.
        statement = self._connection.session.prepare(f'SELECT * FROM ks."{table}_scylla_cdc_log"').bind([])
        pages, state = [], None
        while True:
            future = self._connection.session.execute_async(statement, paging_state=state)
            future.result()
            page = future._final_result
            if isinstance(page, RawPage):
                pages.append((layout_of(description, page.signature), page.rows))
            state = future._paging_state
            if not state:
                return LogReading(description, pages)


@pytest.fixture(scope="session")
def cdc_server() -> Iterator[CdcServer]:
    with EmbeddedScylla(ring_delay=0) as scylla:
        cluster = Cluster(
            [scylla.host], port=scylla.port, schema_metadata_enabled=False, token_metadata_enabled=False, **PATIENT
        )
        connection = Connection(ConnectionSettings(((scylla.host, scylla.port),), consistency="ONE"))
        try:
            session = cluster.connect()
            connection.open()
            yield CdcServer(session, connection)
        finally:
            connection.close()
            cluster.shutdown()
