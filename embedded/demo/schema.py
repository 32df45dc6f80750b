"""The demo's schema: a small shop, a keyspace on vnodes and one on tablets, statics, collections, a user type.

Comes in: nothing. Goes out: the statements, and the tables with their key columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from connector.cql_names import log_name

_REPLICATION: Final = "replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}"


@dataclass(frozen=True)
class Table:
    """A table of the demo: `name` with its keyspace, the columns of its key, the statement that makes it."""

    name: str
    partition: tuple[str, ...]
    clustering: tuple[str, ...]
    statement: str
    statics: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        return (*self.partition, *self.clustering)

    @property
    def log(self) -> str:
        return log_name(self.name)

    @property
    def log_begins(self) -> str:
        """The statement behind which the table has a log: rows that it holds before are in none."""
        return f"ALTER TABLE {self.name} WITH cdc = {{'enabled': true}}"


PREPARATION: Final = (
    f"CREATE KEYSPACE shop WITH {_REPLICATION} AND tablets = {{'enabled': false}}",
    f"CREATE KEYSPACE depot WITH {_REPLICATION} AND tablets = {{'enabled': true}}",
    "CREATE TYPE shop.address (street text, city text)",
)

ORDERS: Final = Table(
    "shop.orders",
    ("customer",),
    ("number",),
    """CREATE TABLE shop.orders (
    customer text, number int,
    tier text static,
    status text, total decimal, placed timestamp, note text,
    tags set<text>, address address,
    PRIMARY KEY (customer, number)
)""",
    statics=("tier",),
)
LINES: Final = Table(
    "shop.lines",
    ("customer", "number"),
    ("line",),
    """CREATE TABLE shop.lines (
    customer text, number int, line int,
    sku text, quantity int, price decimal,
    PRIMARY KEY ((customer, number), line)
)""",
)
STOCK: Final = Table(
    "depot.stock",
    ("sku",),
    (),
    """CREATE TABLE depot.stock (
    sku text PRIMARY KEY,
    on_hand bigint, weight double, photo blob, since date,
    shelves list<text>, reserved map<text, int>
)""",
)
TABLES: Final = (ORDERS, LINES, STOCK)

# Every change of the set of streams goes on while rows are written.
SPLIT: Final = "ALTER TABLE depot.stock WITH tablets = {'min_tablet_count': 4}"
