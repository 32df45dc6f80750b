"""How `verify` and `backfill` reach the source: the landing configuration, a connector's, or the command line.

In: parsed arguments and landing settings. Out: access for Spark jobs, and the confidence window.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from connector.errors import ConfigurationError, Problem, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from connector.config import ConnectionConfig, ContactPoint
    from connector.table_name import TableName
    from spark_jobs.config import Settings
    from spark_jobs.source import SourceAccess


@dataclass(frozen=True)
class Source:
    access: SourceAccess
    confidence_ms: int


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """``--scylla``, ``--config`` and ``--tables``."""
    parser.add_argument(
        "--scylla", metavar="HOST:PORT", help="address of ScyllaDB; login by SCYLLA_USER, SCYLLA_PASSWORD"
    )
    parser.add_argument(
        "--config",
        dest="connector",
        type=Path,
        metavar="CONFIG.json",
        help="take address, login and TLS from this file",
    )
    parser.add_argument(
        "--worker", type=Path, metavar="W.json", help="with --config: the file that declares its secret providers"
    )
    parser.add_argument("--tables", metavar="KS.T,…", help="only these tables")


def configured_access(settings: Settings) -> SourceAccess | None:
    """Access by the landing configuration alone; None if it does not say where the source is."""
    from spark_jobs.config import source_connection
    from spark_jobs.source import source_access

    connection = source_connection(settings.values)
    return None if connection is None else source_access(_with_password(connection))


def source_of(args: argparse.Namespace, settings: Settings) -> Source:
    """What the arguments say wins over the landing configuration; the password may be in ``SCYLLA_PASSWORD``."""
    from spark_jobs.source import source_access

    connection, confidence_ms = _configured(args, settings)
    if args.scylla is not None:
        connection = connection.but(contact_points=_points(args.scylla))
    if not connection.contact_points:
        raise ConfigurationError(
            [
                Problem(
                    "scylla.cluster.ip.addresses",
                    "Is required to read the source",
                    suggestion="or --scylla HOST:PORT, or --config CONFIG.json",
                    file=settings.file,
                )
            ]
        )
    return Source(source_access(_with_password(connection)), confidence_ms)


def _with_password(connection: ConnectionConfig) -> ConnectionConfig:
    from connector.config import Secret, environment_login

    login = environment_login(os.environ)
    if login is None:
        return connection
    return connection.but(user=connection.user or login[0], password=Secret(login[1]))


def chosen_tables(args: argparse.Namespace, settings: Settings) -> Sequence[TableName]:
    """The tables that ``--tables`` names; all without it."""
    from connector.config import Invalid, parse_table_names
    from connector.suggestions import did_you_mean

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
        what = "is not one of the configured tables"
        raise UsageError(Problem("--tables", what, name, did_you_mean(name, known), "command line") for name in unknown)
    return named


def _configured(args: argparse.Namespace, settings: Settings) -> tuple[ConnectionConfig, int]:
    from connector.config import connection_config, load_connector

    if args.connector is None:
        return connection_config(settings.values), settings.confidence_ms
    source = load_connector(args.connector, args.worker)
    return source.connection, source.reading.confidence_ms


def _points(text: str) -> tuple[ContactPoint, ...]:
    from connector.config import parse_contact_points

    try:
        return parse_contact_points(text)
    except ValueError as error:
        raise UsageError([Problem("--scylla", str(error), text, "HOST:PORT", "command line")]) from None
