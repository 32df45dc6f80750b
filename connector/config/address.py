"""Contact points and table names: the two lists whose items have a form of their own."""

from __future__ import annotations

import re
from dataclasses import dataclass

from connector.config.kind import Invalid, Kind

DEFAULT_CQL_PORT = 9042

_NAME = re.compile(r"[a-zA-Z_0-9]{1,48}")
_IPV6 = re.compile(r"[0-9a-fA-F:.]*:[0-9a-fA-F:.]*:[0-9a-fA-F:.%a-zA-Z0-9]*")
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")


@dataclass(frozen=True, slots=True)
class ContactPoint:
    """A ScyllaDB node to begin with."""

    host: str
    port: int = DEFAULT_CQL_PORT

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """``keyspace.table`` of a base table."""

    keyspace: str
    table: str

    def __str__(self) -> str:
        return f"{self.keyspace}.{self.table}"


def parse_contact_points(text: str) -> tuple[ContactPoint, ...]:
    """``host[:port]`` items; the Java connector demands the port and knows no IPv6, both are taken here."""
    points: dict[ContactPoint, None] = {}
    for item in (part.strip() for part in text.split(",")):
        if item:
            points[_contact_point(item)] = None
    if not points:
        raise Invalid("Host specification is required", "127.0.0.1:9042")
    return tuple(points)


def _contact_point(item: str) -> ContactPoint:
    form = "Expected host specification as a comma-separated list of pairs <IP>:<PORT>, but got invalid"
    if item.startswith("["):
        host, closed, rest = item[1:].partition("]")
        if not closed or not _IPV6.fullmatch(host) or (rest and not rest.startswith(":")):
            raise Invalid(f"{form}: {item}", "[2001:db8::1]:9042")
        port = rest[1:] if rest else str(DEFAULT_CQL_PORT)
    elif item.count(":") > 1:
        if not _IPV6.fullmatch(item):
            raise Invalid(f"{form}: {item}", "[2001:db8::1]:9042 for IPv6")
        host, port = item, str(DEFAULT_CQL_PORT)
    else:
        host, colon, port = item.partition(":")
        port = port if colon else str(DEFAULT_CQL_PORT)
        if not _HOST.fullmatch(host):
            raise Invalid(f"{form}: {item}", f"127.0.0.1:{DEFAULT_CQL_PORT}")
    if not re.fullmatch(r"[0-9]{1,5}", port):
        raise Invalid(f"{form} port number: {item}", f"{host}:{DEFAULT_CQL_PORT}")
    if not 0 < int(port) <= 65535:
        raise Invalid(f"{form} <IP>:<PORT> pair: {item}", "a port from 1 to 65535")
    return ContactPoint(host, int(port))


def parse_table_names(text: str) -> tuple[TableName, ...]:
    """``keyspace.table`` items; a table named twice counts once."""
    tables: dict[TableName, None] = {}
    for item in (part.strip() for part in text.split(",")):
        if not item:
            continue
        parts = item.split(".")
        if len(parts) != 2:
            raise Invalid(
                f"Expected a comma-separated list of pairs <keyspace name>.<table name>, but got invalid: {item}",
                "keyspace.table",
            )
        for part, what in zip(parts, ("keyspace", "table"), strict=True):
            if not _NAME.fullmatch(part):
                raise Invalid(
                    f"Got invalid {what} name in table specification : {part}",
                    "letters, digits and _, at most 48 of them",
                )
        table = TableName(*parts)
        if table.table.endswith("_scylla_cdc_log"):
            base = table.table.removesuffix("_scylla_cdc_log")
            raise Invalid(f"{item} is a change log, not a base table", f"{table.keyspace}.{base}")
        tables[table] = None
    if not tables:
        raise Invalid("A table specification with at least one table is required", "keyspace.table")
    return tuple(tables)


CONTACT_POINTS = Kind("list of `host:port`", parse_contact_points)
TABLE_NAMES = Kind("list of `keyspace.table`", parse_table_names)
