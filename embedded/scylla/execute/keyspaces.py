"""CREATE, ALTER and DROP of keyspaces and user types; USE and TRUNCATE.

In: the statement's tree, the catalog. Out: the changed catalog and the `Result`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from connector.values import CqlType, UserType, is_multi_cell, native
from embedded.scylla.catalog import Catalog
from embedded.scylla.cdc.log_schema import is_log
from embedded.scylla.cql.tree import (
    AlterKeyspace,
    AlterType,
    CreateKeyspace,
    CreateType,
    DropKeyspace,
    DropType,
    Name,
    Properties,
    Truncate,
    Use,
)
from embedded.scylla.errors import (
    AlreadyExists,
    ConfigurationException,
    InvalidRequest,
    ServerError,
    SyntaxException,
)
from embedded.scylla.execute.types import resolve_type, uses_type, with_type
from embedded.scylla.results import Result, SchemaChange, SetKeyspace, Void
from embedded.scylla.schema import Keyspace, SchemaEvent

_STRATEGIES: Final = ("SimpleStrategy", "NetworkTopologyStrategy", "EverywhereStrategy", "LocalStrategy")
_LOCATOR: Final = "org.apache.cassandra.locator."
_NAME: Final = re.compile(r"\w+\Z", re.ASCII)
_LONGEST_NAME: Final = 192


def check_name(name: str, what: str) -> None:
    if not _NAME.match(name):
        advice = "" if what == "keyspace" else " (must be alphanumeric character only: [0-9A-Za-z]+)"
        raise InvalidRequest(f'"{name}" is not a valid {what} name{advice}')
    if len(name) > _LONGEST_NAME:
        raise InvalidRequest(
            f'{what.capitalize()} names shouldn\'t be more than {_LONGEST_NAME} characters long (got "{name}")'
        )


def _text_map(properties: Properties, name: str) -> Mapping[str, str] | None:
    value = dict(properties).get(name)
    if value is not None and isinstance(value, str):
        raise SyntaxException(f"Invalid value for property '{name}'. It should be a map.")
    return value


def _replication(given: Mapping[str, str] | None, catalog: Catalog) -> Mapping[str, str]:
    options = dict(given or {})
    written = options.pop("class", "NetworkTopologyStrategy")
    name = written.removeprefix(_LOCATOR)
    if name not in _STRATEGIES:
        raise ConfigurationException(f"Unable to find replication strategy class '{written}'")
    for key, value in options.items():
        if not re.fullmatch(r"\d+", value):
            raise ConfigurationException(
                f"Replication factor must be numeric; found {value!r}" if value else f"Missing value for {key}"
            )
    if name == "SimpleStrategy" and "replication_factor" not in options:
        raise ConfigurationException("SimpleStrategy requires a replication_factor strategy option.")
    if name == "NetworkTopologyStrategy":
        factor = options.pop("replication_factor", None)
        if factor is None and not options:
            # ScyllaDB's default: a replica in every rack, of which there is one.
            factor = "1"
        if factor is not None:
            options = {**dict.fromkeys(catalog.datacenters(), factor), **options}
    return {"class": _LOCATOR + name, **options}


def _tablets(
    properties: Properties, replication: Mapping[str, str], present: Keyspace | None
) -> Mapping[str, str] | None:
    """The keyspace's tablets options; None for vnodes. NetworkTopologyStrategy has tablets unless it is told not to."""
    given = _text_map(properties, "tablets")
    networked = replication["class"].endswith("NetworkTopologyStrategy")
    if given is None:
        return present.tablets if present is not None else {"initial": "0"} if networked else None
    for key in given:
        if key not in ("enabled", "initial"):
            raise ConfigurationException(f"Unknown tablets option: {key}")
    enabled = given.get("enabled", "true").lower()
    if enabled not in ("true", "false"):
        raise ConfigurationException(f"Tablets enabled value must be true or false; found: {enabled}")
    initial = given.get("initial", "0")
    if not re.fullmatch(r"\d+", initial):
        raise ConfigurationException(f"Initial tablets value should be numeric; found {initial}")
    on = enabled == "true"
    if present is not None and on != present.uses_tablets:
        raise InvalidRequest("Cannot alter replication strategy vnode/tablets flavor")
    if on and not networked:
        raise ConfigurationException(
            f"{replication['class'].removeprefix(_LOCATOR)} doesn't support tablet replication"
        )
    return {"initial": initial} if on else None


def _check_properties(properties: Properties) -> None:
    known = ("replication", "durable_writes", "tablets", "storage", "consistency")
    for name, _ in properties:
        if name not in known:
            raise SyntaxException(f"Unknown property '{name}'")


def _durable(properties: Properties, default: bool) -> bool:
    value = dict(properties).get("durable_writes")
    if value is None:
        return default
    if not isinstance(value, str) or value.lower() not in ("true", "false", "0", "1", "yes", "no"):
        raise SyntaxException("Invalid value for property 'durable_writes'. It should be a boolean")
    return value.lower() in ("true", "1", "yes")


def create_keyspace(statement: CreateKeyspace, catalog: Catalog) -> Result:
    catalog.changeable("CREATE", statement.name)
    check_name(statement.name, "keyspace")
    _check_properties(statement.properties)
    if catalog.schema.keyspace(statement.name) is not None:
        if statement.if_not_exists:
            return Void()
        raise AlreadyExists(f'Cannot add existing keyspace "{statement.name}"', statement.name)
    replication = _replication(_text_map(statement.properties, "replication"), catalog)
    keyspace = Keyspace(
        statement.name,
        replication,
        _durable(statement.properties, True),
        _tablets(statement.properties, replication, None),
    )
    catalog.add_keyspace(keyspace)
    return SchemaChange(SchemaEvent("CREATED", "KEYSPACE", statement.name))


def alter_keyspace(statement: AlterKeyspace, catalog: Catalog) -> Result:
    catalog.changeable("ALTER", statement.name)
    present = catalog.schema.keyspace(statement.name)
    if present is None:
        raise InvalidRequest(f"Unknown keyspace {statement.name}")
    _check_properties(statement.properties)
    given = _text_map(statement.properties, "replication")
    replication = present.replication if given is None else _replication(given, catalog)
    tablets = _tablets(statement.properties, replication, present)
    catalog.schema.put_keyspace(
        Keyspace(present.name, replication, _durable(statement.properties, present.durable_writes), tablets)
    )
    return SchemaChange(SchemaEvent("UPDATED", "KEYSPACE", statement.name))


def drop_keyspace(statement: DropKeyspace, catalog: Catalog) -> Result:
    catalog.changeable("DROP", statement.name)
    present = catalog.schema.keyspace(statement.name)
    if present is None:
        if statement.if_exists:
            return Void()
        raise ConfigurationException(f"Cannot drop non existing keyspace '{statement.name}'.")
    catalog.drop_keyspace(present)
    return SchemaChange(SchemaEvent("DROPPED", "KEYSPACE", statement.name))


def use(statement: Use, catalog: Catalog) -> Result:
    catalog.keyspace(statement.keyspace)
    return SetKeyspace(statement.keyspace)


def truncate(statement: Truncate, catalog: Catalog, current: str | None) -> Result:
    keyspace = catalog.keyspace_name(statement.name.keyspace, current)
    table = catalog.table(keyspace, statement.name.name)
    catalog.writable(table)
    catalog.store(table).truncate()
    return Void()


# ---- user types --------------------------------------------------------------------------------------------------


def _check_field(name: str, kind: object) -> None:
    if kind == native("counter"):
        raise InvalidRequest("A user type cannot contain counters")
    if isinstance(kind, UserType) and is_multi_cell(kind):
        raise InvalidRequest(f"A user type cannot contain non-frozen user type fields: {name}")


def create_type(statement: CreateType, catalog: Catalog, current: str | None) -> Result:
    keyspace = catalog.keyspace_name(statement.name.keyspace, current)
    catalog.changeable("CREATE", keyspace)
    if catalog.schema.keyspace(keyspace) is None:
        raise ServerError(f"Can't find a keyspace {keyspace}")
    name = statement.name.name
    types = catalog.schema.user_types(keyspace)
    if name in types:
        if statement.if_not_exists:
            return Void()
        raise InvalidRequest(f"A user type of name {keyspace}.{name} already exists")
    fields: list[tuple[str, CqlType]] = []
    for field, raw in statement.fields:
        if field in dict(fields):
            raise InvalidRequest(f"Duplicate field name {field} in type {name}")
        kind = resolve_type(raw, keyspace, types)
        _check_field(field, kind)
        fields.append((field, kind))
    catalog.schema.put_type(UserType(keyspace, name, tuple(fields)))
    return SchemaChange(SchemaEvent("CREATED", "TYPE", keyspace, name))


def _find_type(name: Name, catalog: Catalog, current: str | None) -> UserType:
    keyspace = catalog.keyspace_name(name.keyspace, current)
    if catalog.schema.keyspace(keyspace) is None:
        raise InvalidRequest(f"Cannot alter type in unknown keyspace {keyspace}")
    found = catalog.schema.user_types(keyspace).get(name.name)
    if found is None:
        raise InvalidRequest(f"No user type named {keyspace}.{name.name} exists.")
    return found


def alter_type(statement: AlterType, catalog: Catalog, current: str | None) -> Result:
    old = _find_type(statement.name, catalog, current)
    keyspace = old.keyspace
    catalog.changeable("ALTER", keyspace)
    fields = list(old.fields)
    for table in catalog.schema.tables(keyspace):
        for column in table.partition_key:
            if uses_type(column.type, old):
                raise InvalidRequest(
                    f"Cannot add new field to type {keyspace}.{old.name} because it is used in the partition key "
                    f"column {column.name} of table {table.full_name}"
                )
    for field, raw in statement.add:
        if field in dict(fields):
            raise InvalidRequest(
                f"Cannot add new field {field} to type {keyspace}.{old.name}: a field of the same name already exists"
            )
        kind = resolve_type(raw, keyspace, catalog.schema.user_types(keyspace))
        _check_field(field, kind)
        if uses_type(kind, old):
            raise InvalidRequest(
                f"Cannot add new field {field} of type {kind.cql()} to type {keyspace}.{old.name} as this would create "
                "a circular reference"
            )
        fields.append((field, kind))
    for before, after in statement.rename:
        if before not in dict(fields):
            raise InvalidRequest(f"Unknown field {before} in type {keyspace}.{old.name}")
        if after in dict(fields):
            raise InvalidRequest(f"Duplicate field name {after} in type {keyspace}.{old.name}")
        fields = [(after if field == before else field, kind) for field, kind in fields]
    renewed = UserType(keyspace, old.name, tuple(fields))
    for name, other in list(catalog.schema.user_types(keyspace).items()):
        if name != old.name and uses_type(other, old):
            updated = with_type(other, renewed)
            assert isinstance(updated, UserType)
            catalog.schema.put_type(updated)
    catalog.schema.put_type(renewed)
    for table in catalog.schema.tables(keyspace):
        if any(uses_type(column.type, old) for column in table.columns):
            columns = tuple(
                type(column)(column.name, with_type(column.type, renewed), column.kind, column.position, column.order)
                for column in table.columns
            )
            catalog.replace_table(table.changed(columns=columns))
    return SchemaChange(SchemaEvent("UPDATED", "TYPE", keyspace, old.name))


def drop_type(statement: DropType, catalog: Catalog, current: str | None) -> Result:
    keyspace = catalog.keyspace_name(statement.name.keyspace, current)
    name = statement.name.name
    catalog.changeable("DROP", keyspace)
    found = catalog.schema.user_types(keyspace).get(name)
    if found is None:
        if statement.if_exists:
            return Void()
        if catalog.schema.keyspace(keyspace) is None:
            raise InvalidRequest(f"Cannot drop type in unknown keyspace {keyspace}")
        raise InvalidRequest(f"No user type named {keyspace}.{name} exists.")
    for other in catalog.schema.user_types(keyspace).values():
        if other.name != name and uses_type(other, found):
            raise InvalidRequest(
                f"Cannot drop user type {keyspace}.{name} as it is still used by user type {other.name}"
            )
    # ScyllaDB names any of the tables: where there is a log, it was seen to be that one.
    for table in sorted(catalog.schema.tables(keyspace), key=lambda table: not is_log(table)):
        if any(uses_type(column.type, found) for column in table.columns):
            raise InvalidRequest(
                f"Cannot drop user type {keyspace}.{name} as it is still used by table {table.full_name}"
            )
    catalog.schema.drop_type(keyspace, name)
    return SchemaChange(SchemaEvent("DROPPED", "TYPE", keyspace, name))
