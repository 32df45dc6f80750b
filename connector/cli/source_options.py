"""How `verify` and `backfill` reach the source: the landing configuration, a connector's, or the command line.

In: parsed arguments and landing settings. Out: access for Spark jobs, and the confidence window.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from connector.errors import ConfigurationError, Problem, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from connector.config.address import ContactPoint, TableName
    from connector.config.connector_config import ConnectionConfig
    from spark_jobs.settings import Settings
    from spark_jobs.source_access import SourceAccess


@dataclass(frozen=True)
class Source:
    access: SourceAccess
    confidence_ms: int


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """``--scylla``, ``--config`` and ``--tables``."""
    parser.add_argument("--scylla", metavar="HOST:PORT", help="where ScyllaDB is")
    parser.add_argument(
        "--config", dest="connector", type=Path, metavar="CONFIG.json", help="address, login, TLS from this file"
    )
    parser.add_argument("--tables", metavar="KS.T,…", help="only these of the configured tables")


def configured_access(settings: Settings) -> SourceAccess | None:
    """Access by the landing configuration alone; None if it does not say where the source is."""
    from spark_jobs.source_access import source_access
    from spark_jobs.source_settings import source_connection

    connection = source_connection(settings.values)
    return None if connection is None else source_access(_with_password(connection))


def source_of(args: argparse.Namespace, settings: Settings) -> Source:
    """What the arguments say wins over the landing configuration; the password may be in ``SCYLLA_PASSWORD``."""
    from spark_jobs.source_access import source_access

    connection, confidence_ms = _configured(args.connector, settings)
    if args.scylla is not None:
        connection = replace(connection, contact_points=_points(args.scylla))
    if not connection.contact_points:
        raise ConfigurationError(
            [
                Problem(
                    "scylla.cluster.ip.addresses",
                    "Is needed to read the source",
                    suggestion="or --scylla HOST:PORT, or --config CONFIG.json",
                    file=settings.file,
                )
            ]
        )
    return Source(source_access(_with_password(connection)), confidence_ms)


def _with_password(connection: ConnectionConfig) -> ConnectionConfig:
    from connector.config.secret import Secret

    password = os.environ.get("SCYLLA_PASSWORD")
    if password is None:
        return connection
    return replace(
        connection, user=connection.user or os.environ.get("SCYLLA_USER", "cassandra"), password=Secret(password)
    )


def chosen_tables(args: argparse.Namespace, settings: Settings) -> Sequence[TableName]:
    """The tables that ``--tables`` names; all without it."""
    from connector.config.address import parse_table_names
    from connector.config.kind import Invalid, nearest

    if args.tables is None:
        return settings.tables
    try:
        named = parse_table_names(args.tables)
    except Invalid as invalid:
        raise UsageError(
            [Problem("--tables", invalid.problem, args.tables, invalid.suggestion, "command line")]
        ) from invalid
    known = {str(table) for table in settings.tables}
    unknown = [str(table) for table in named if str(table) not in known]
    if unknown:
        hints = [nearest(name, known) for name in unknown]
        meant = f"did you mean {hints[0]}?" if hints[0] else None
        raise UsageError(
            [
                Problem("--tables", "is not one of the configured tables", name, meant, "command line")
                for name in unknown
            ]
        )
    return named


def _configured(file: Path | None, settings: Settings) -> tuple[ConnectionConfig, int]:
    from connector.config import load
    from connector.config.connector_config import connection_config

    if file is None:
        return connection_config(settings.values), settings["scylla.confidence.window.size"]
    # Only the connector's side matters here: no worker file is asked for.
    loaded = load(file, {"bootstrap.servers": "unused:9092", "group.id": "landing"}, {**os.environ})
    return loaded.connector.connection, loaded.connector.reading.confidence_ms


def _points(text: str) -> tuple[ContactPoint, ...]:
    from connector.config.address import parse_contact_points

    try:
        return parse_contact_points(text)
    except ValueError as error:
        raise UsageError([Problem("--scylla", str(error), text, "HOST:PORT", "command line")]) from None
