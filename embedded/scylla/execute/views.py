"""Views, roles and whatever else ScyllaDB has and this server has not: how each is refused.

In: the statement's tree, the catalog. Out: always an error: ScyllaDB's own where ScyllaDB would refuse as well, else
one that says that the embedded server does not have it.
"""

from __future__ import annotations

from typing import NoReturn

from embedded.scylla.auth import ANONYMOUS
from embedded.scylla.catalog import Catalog
from embedded.scylla.cdc.log_schema import is_log
from embedded.scylla.cql.tree import CreateView, Name, PruneView, Refused
from embedded.scylla.errors import InvalidRequest, Unauthorized
from embedded.scylla.schema import Table


def _missing(what: str) -> NoReturn:
    raise InvalidRequest(f"The embedded server has no {what}")


def refuse(statement: Refused, user: str | None) -> NoReturn:
    if statement.login and user == ANONYMOUS:
        raise Unauthorized("You have to be logged in and not anonymous to perform this request")
    _missing(statement.what)


def _table(name: Name, catalog: Catalog, current: str | None) -> Table:
    return catalog.table(catalog.keyspace_name(name.keyspace, current), name.name)


def refuse_view(statement: CreateView, catalog: Catalog, current: str | None) -> NoReturn:
    base = _table(statement.base, catalog, current)
    if is_log(base):
        raise InvalidRequest("Materialized views cannot be created on CDC Log tables")
    if statement.star and base.static:
        raise InvalidRequest(
            f"Unable to include static column '{base.static[0].name}' which would be included by Materialized View "
            "SELECT * statement"
        )
    _missing("materialized views")


def refuse_pruning(statement: PruneView, catalog: Catalog, current: str | None) -> NoReturn:
    _table(statement.name, catalog, current)
    raise InvalidRequest("Ghost rows can only be deleted from materialized views")
