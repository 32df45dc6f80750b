"""What ScyllaDB says about a configuration: whether its tables are there and may be read, and what their logs lack.

In: a configuration. Out: findings; who does not answer is one of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from connector.config import Configuration, KeystoreError, of_deltas
from connector.errors import (
    AccessDenied,
    FatalSourceError,
    Problem,
    ReplicasAway,
    RetriableSourceError,
    SourceError,
    UnsupportedServer,
)
from connector.source import (
    Connection,
    DescribedTable,
    TabletStreams,
    VnodeGenerations,
    base_query,
    connection_settings,
    describe_tables,
    loose_datacenter,
    useless_points,
)
from connector.table_name import TableName
from connector.topology import MAX_TOKEN
from connector.worker.findings import ADDRESSES, Findings
from connector.worker.objections import TABLES, altered, objections, without_cdc

log = logging.getLogger(__name__)

# A range that costs nothing to read.
LAST_TOKEN = (MAX_TOKEN - 1, MAX_TOKEN)


def check_source(configuration: Configuration, found: Findings) -> None:
    for table in _check_scylla(configuration, found):
        if (off := without_cdc(table)) is not None:
            # What the log still has is read, if the table was read before: as by a worker that was there.
            found.missing[table.table] = off
        else:
            found.problems += objections(configuration, table)


def _check_scylla(configuration: Configuration, found: Findings) -> list[DescribedTable]:
    try:
        connection = Connection(connection_settings(configuration.connector.connection))
    except KeystoreError as error:
        found.problems.append(Problem("scylla.ssl.truststore.path", str(error)))
        return []
    try:
        connection.open()
        loose = loose_datacenter(connection.settings, connection.datacenters())
        found.warnings += [] if loose is None else [loose]
        found.warnings += useless_points(connection)
        described = describe_tables(connection, list(configuration.connector.reading.tables))
        tables = [table for name, answer in described.items() if (table := _readable(connection, name, answer, found))]
        found.warnings += _untold(configuration, tables) + _refused_rows(configuration, connection, tables)
        _check_streams(connection, tables, found)
        return tables
    except AccessDenied as error:
        found.problems.append(Problem("scylla.user", str(error), configuration.connector.connection.user))
    except RetriableSourceError as error:
        found.unreachable.append(Problem(ADDRESSES, f"unable to connect to the ScyllaDB cluster: {error}"))
        found.refused = connection.refusal is not None
    except FatalSourceError as error:
        found.problems.append(Problem(ADDRESSES, str(error)))
    except SourceError as error:
        # No word of a server: no thread could be started, say. Nothing is wrong with the files, so it is tried again.
        found.unreachable.append(Problem(ADDRESSES, f"unable to connect to the ScyllaDB cluster: {error}"))
    finally:
        connection.close()
    return []


def _readable(
    connection: Connection, name: TableName, table: DescribedTable | FatalSourceError, found: Findings
) -> DescribedTable | None:
    """The table, if it is there and its log may be read."""
    if isinstance(table, FatalSourceError):
        found.missing[name] = Problem(TABLES, str(table), str(name))
        return None
    token = 'token("cdc$stream_id")'
    try:
        connection.query(f'SELECT "cdc$time" FROM {table.log.cql} WHERE {token} > ? AND {token} <= ?', LAST_TOKEN)
    except ReplicasAway as error:
        # Whoever may not read is told that before replicas are looked for. That some are away ends no reading either.
        log.debug("%s: whether its log may be read: %s", name, error)
    except RetriableSourceError:
        raise
    except FatalSourceError as error:
        found.problems.append(Problem(TABLES, str(error), str(name)))
        return None
    return table


def _untold(configuration: Configuration, tables: Iterable[DescribedTable]) -> list[str]:
    """Records tell TTLs in their metadata only, and what was written as the log has it."""
    output, untold = configuration.connector.output, list[str]()
    for table in tables:
        if table.default_ttl and not output.metadata:
            untold.append(
                f"{table.table} has default_time_to_live={table.default_ttl}, which records do not tell without "
                "cdc.include.metadata=true: landed cells do not expire"
            )
        if of_deltas(output.format) and table.description.cdc.delta == "keys":
            untold.append(
                f"{table.table} logs keys only ('delta': 'keys'), so that records have no values: "
                f"{altered(table, delta='full')}, or cdc.output.format=advanced with images"
            )
    return untold


def _refused_rows(configuration: Configuration, connection: Connection, tables: Iterable[DescribedTable]) -> list[str]:
    """A snapshot reads the tables themselves. Changes are delivered without, and it may have been made long ago."""
    mode, refused = configuration.connector.reading.snapshot_mode, list[str]()
    if configuration.connector.output.strict or mode in ("no_data", "never"):
        return refused
    for table in tables:
        try:
            connection.query(base_query(table.description, ()).by_token(), LAST_TOKEN)
        except AccessDenied as error:
            refused.append(f"{table.table} has no rows for snapshot.mode={mode}, which reads the table itself: {error}")
        except ReplicasAway as error:
            log.debug("%s: whether its rows may be read: %s", table.table, error)
        except RetriableSourceError as error:
            # It would keep the others waiting as long, each of them.
            log.debug("%s: whether its rows may be read: %s", table.table, error)
            break
        except SourceError as error:
            log.debug("%s: whether its rows may be read: %s", table.table, error)
    return refused


def _check_streams(connection: Connection, tables: Iterable[DescribedTable], found: Findings) -> None:
    refused: list[Exception] = []
    if any(not table.tablets for table in tables):
        try:
            VnodeGenerations(connection).listed()
        except (UnsupportedServer, AccessDenied) as error:
            refused.append(error)
        except ReplicasAway as error:
            # Tables with tablets can be read; for the others workers wait, and say so.
            log.debug("generations of streams: %s", error)
    with_tablets = [TabletStreams(connection, table.table) for table in tables if table.tablets]
    for answer in TabletStreams.listed_together(with_tablets):
        if isinstance(answer, UnsupportedServer | AccessDenied):
            refused.append(answer)
        elif isinstance(answer, Exception):
            raise answer
    found.problems += [Problem(ADDRESSES, text) for text in dict.fromkeys(map(str, refused))]
