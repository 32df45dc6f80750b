"""Contact points and table names: the two lists whose items have a form of their own."""

from __future__ import annotations

import re
from dataclasses import dataclass

from connector.config.properties.kind import Invalid, Kind
from connector.cql_names import LOG_SUFFIX
from connector.table_name import TableName

DEFAULT_CQL_PORT = 9042
_KAFKA_PORT = 9092

# So long since ScyllaDB 2025.2 (`NAME_LENGTH` in schema/schema.hh); the Java connector takes 48 characters.
_LONGEST_NAME = 192
_NAME = re.compile(rf"[a-zA-Z_0-9]{{1,{_LONGEST_NAME}}}")
_IPV6 = re.compile(r"[0-9a-fA-F:.]*:[0-9a-fA-F:.]*:[0-9a-fA-F:.%a-zA-Z0-9]*")
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")


_BROKER = re.compile(
    rf"(?P<protocol>[A-Za-z_]+://)?(?:\[(?P<v6>[^\]]*)\]|(?P<host>{_HOST.pattern}))(?::(?P<port>[0-9]{{1,20}}))?"
)


@dataclass(frozen=True, slots=True)
class ContactPoint:
    """A ScyllaDB node to begin with."""

    host: str
    port: int = DEFAULT_CQL_PORT

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


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
        if not _is_name(host):
            raise Invalid(f"{form}: {item}", f"127.0.0.1:{DEFAULT_CQL_PORT}")
    if not re.fullmatch(r"[0-9]{1,5}", port):
        raise Invalid(f"{form} port number: {item}", f"{host}:{DEFAULT_CQL_PORT}")
    if not 0 < int(port) <= 65535:
        raise Invalid(f"{form} <IP>:<PORT> pair: {item}", "a port from 1 to 65535")
    return ContactPoint(host, int(port))


def _is_name(host: str) -> bool:
    """Whether a name can stand in DNS at all: its parts have 1 to 63 characters."""
    parts = host.removesuffix(".").split(".")
    return bool(_HOST.fullmatch(host)) and len(host) <= 253 and all(0 < len(part) <= 63 for part in parts)


def parse_brokers(text: str) -> str:
    """``host:port`` items as Kafka's clients take them, a protocol in front of them included; all have a port then."""
    brokers: list[str] = []
    for item in (part.strip() for part in text.split(",")):
        if item:
            brokers.append(_broker(item))
    if not brokers:
        raise Invalid("No broker is named", f"127.0.0.1:{_KAFKA_PORT}")
    return ",".join(dict.fromkeys(brokers))


def _broker(item: str) -> str:
    match = _BROKER.fullmatch(item)
    host = match["v6"] or match["host"] if match else None
    v6_is_none = match is not None and match["v6"] and not _IPV6.fullmatch(match["v6"])
    if match is None or v6_is_none or (match["host"] and not _is_name(match["host"])):
        raise Invalid(f"Must be a list of host:port, and {item!r} is none", f"127.0.0.1:{_KAFKA_PORT}")
    port = match["port"] or str(_KAFKA_PORT)
    if not re.fullmatch("0*[0-9]{1,5}", port) or not 0 < int(port) <= 65535:
        raise Invalid(f"{item!r} has no port from 1 to 65535", f"{host}:{_KAFKA_PORT}")
    named = f"[{match['v6']}]" if match["v6"] else match["host"]
    return f"{match['protocol'] or ''}{named}:{int(port)}"


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
                    f"letters, digits and _, at most {_LONGEST_NAME} of them",
                )
        table = TableName(*parts)
        if table.name.endswith(LOG_SUFFIX):
            base = table.name.removesuffix(LOG_SUFFIX)
            raise Invalid(f"{item} is a change log, not a base table", f"{table.keyspace}.{base}")
        tables[table] = None
    if not tables:
        raise Invalid("A table specification with at least one table is required", "keyspace.table")
    return tuple(tables)


BROKERS = Kind("list of `host:port`", parse_brokers)
CONTACT_POINTS = Kind("list of `host:port`", parse_contact_points)
TABLE_NAMES = Kind("list of `keyspace.table`", parse_table_names)
