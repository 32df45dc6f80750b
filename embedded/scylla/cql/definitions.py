"""Parses schema statements: CREATE, ALTER and DROP of keyspaces, tables, types and indexes.

In: a cursor behind the verb. Out: the statement's tree. What this server does not have becomes `Refused`, whatever
follows; of views the table is kept, since ScyllaDB's own errors about it come first.
"""

from __future__ import annotations

from typing import Final

from embedded.scylla.cql.cursor import Cursor
from embedded.scylla.cql.tree import (
    AlterKeyspace,
    AlterTable,
    AlterType,
    CreateIndex,
    CreateKeyspace,
    CreateTable,
    CreateType,
    CreateView,
    DropIndex,
    DropKeyspace,
    DropTable,
    DropType,
    Properties,
    PropertyValue,
    RawColumn,
    RawType,
    Refused,
    Statement,
)

PrimaryKey = tuple[tuple[str, ...], tuple[str, ...]]

ROLES: Final = Refused("roles and permissions", login=True)
_REFUSED: Final = (
    (("materialized", "view"), Refused("materialized views")),
    (("or", "replace"), Refused("user-defined functions")),
    (("function",), Refused("user-defined functions")),
    (("aggregate",), Refused("user-defined aggregates")),
    (("trigger",), Refused("triggers")),
    (("role",), ROLES),
    (("user",), ROLES),
    (("service",), Refused("service levels")),
    (("service_level",), Refused("service levels")),
)


def _refused(cursor: Cursor) -> Refused | None:
    for words, refused in _REFUSED:
        if cursor.sees(*words):
            cursor.skip()
            return refused
    return None


def _create_index(cursor: Cursor) -> CreateIndex:
    absent = _if_not_exists(cursor)
    name = None if cursor.sees("on") else cursor.identifier()
    cursor.expect("on")
    table = cursor.name()
    columns = _indexed(cursor)
    custom = cursor.take().text if cursor.accept("using") else None
    options: tuple[tuple[str, str], ...] = ()
    if cursor.accept("with", "options"):
        cursor.expect_mark("=")
        cursor.expect_mark("{")
        options = cursor.listed(lambda: _pair(cursor), "}")
    cursor.skip()
    return CreateIndex(table, name, absent, columns, custom, options)


def _indexed(cursor: Cursor) -> tuple[str, ...] | None:
    """The columns in parentheses; None where there is more, as in `(keys(m))` and `((pk), v)`."""
    if not cursor.accept_mark("("):
        return ()
    columns: list[str] = []
    plain, depth = True, 1
    while depth:
        if cursor.sees_identifier():
            columns.append(cursor.identifier())
            continue
        mark = cursor.take().text
        depth += (mark == "(") - (mark == ")")
        plain = plain and mark in ",)"
    return tuple(columns) if plain else None


def _create_view(cursor: Cursor) -> CreateView:
    _if_not_exists(cursor)
    cursor.name()
    cursor.expect("as")
    cursor.expect("select")
    star = cursor.sees_mark("*")
    while not cursor.sees("from"):
        cursor.take()
    cursor.expect("from")
    base = cursor.name()
    cursor.skip()
    return CreateView(base, star)


def _if_not_exists(cursor: Cursor) -> bool:
    return cursor.accept("if", "not", "exists")


def create(cursor: Cursor) -> Statement:
    if cursor.accept("keyspace") or cursor.accept("schema"):
        absent = _if_not_exists(cursor)
        name = cursor.identifier()
        return CreateKeyspace(name, absent, _properties(cursor) if cursor.accept("with") else ())
    if cursor.accept("table") or cursor.accept("columnfamily"):
        return _create_table(cursor)
    if cursor.accept("type"):
        absent = _if_not_exists(cursor)
        type_name = cursor.name()
        cursor.expect_mark("(")
        fields = cursor.sparse(lambda: _field(cursor), ")")
        return CreateType(type_name, absent, fields)
    if cursor.accept("index") or cursor.accept("custom", "index"):
        return _create_index(cursor)
    if cursor.accept("materialized", "view"):
        return _create_view(cursor)
    return _refused(cursor) or cursor.fail()


def alter(cursor: Cursor) -> Statement:
    if cursor.accept("keyspace") or cursor.accept("schema"):
        name = cursor.identifier()
        cursor.expect("with")
        return AlterKeyspace(name, _properties(cursor))
    if cursor.accept("table") or cursor.accept("columnfamily"):
        return _alter_table(cursor)
    if cursor.accept("type"):
        type_name = cursor.name()
        if cursor.accept("add"):
            return AlterType(type_name, add=(_field(cursor),))
        cursor.expect("rename")
        return AlterType(type_name, rename=_renames(cursor))
    return _refused(cursor) or cursor.fail()


def drop(cursor: Cursor) -> Statement:
    if cursor.accept("keyspace") or cursor.accept("schema"):
        present = cursor.accept("if", "exists")
        return DropKeyspace(cursor.identifier(), present)
    if cursor.accept("table") or cursor.accept("columnfamily"):
        present = cursor.accept("if", "exists")
        return DropTable(cursor.name(), present)
    if cursor.accept("type"):
        present = cursor.accept("if", "exists")
        return DropType(cursor.name(), present)
    if cursor.accept("index"):
        present = cursor.accept("if", "exists")
        return DropIndex(cursor.name(), present)
    return _refused(cursor) or cursor.fail()


def _field(cursor: Cursor) -> tuple[str, RawType]:
    return cursor.identifier(), cursor.raw_type()


def _renames(cursor: Cursor) -> tuple[tuple[str, str], ...]:
    renames = []
    while True:
        old = cursor.identifier()
        cursor.expect("to")
        renames.append((old, cursor.identifier()))
        if not cursor.accept("and"):
            return tuple(renames)


def _create_table(cursor: Cursor) -> CreateTable:
    absent = _if_not_exists(cursor)
    name = cursor.name()
    columns: list[RawColumn] = []
    keys: list[PrimaryKey] = []

    def part() -> None:
        if cursor.accept("primary", "key"):
            keys.append(_primary_key(cursor))
        else:
            column = _column(cursor, True)
            if column.primary_key:
                keys.append(((column.name,), ()))
            columns.append(column)

    cursor.expect_mark("(")
    cursor.sparse(part, ")")
    properties: list[tuple[str, PropertyValue]] = []
    order: tuple[tuple[str, bool], ...] = ()
    compact = False
    if cursor.accept("with"):
        while True:
            if cursor.accept("clustering", "order", "by"):
                cursor.expect_mark("(")
                order += cursor.listed(lambda: _ordering(cursor), ")")
            elif cursor.accept("compact", "storage"):
                compact = True
            else:
                properties.append(_property(cursor))
            if not cursor.accept("and"):
                break
    return CreateTable(name, absent, tuple(columns), tuple(keys), tuple(properties), order, compact)


def _ordering(cursor: Cursor) -> tuple[str, bool]:
    name = cursor.identifier()
    if cursor.accept("desc"):
        return name, True
    cursor.accept("asc")
    return name, False


def _column(cursor: Cursor, may_be_key: bool) -> RawColumn:
    name = cursor.identifier()
    type_ = cursor.raw_type()
    static = cursor.accept("static")
    return RawColumn(name, type_, static, may_be_key and cursor.accept("primary", "key"))


def _primary_key(cursor: Cursor) -> PrimaryKey:
    cursor.expect_mark("(")
    if cursor.accept_mark("("):
        partition = cursor.listed(cursor.identifier, ")")
    else:
        partition = (cursor.identifier(),)
    clustering: tuple[str, ...] = ()
    if cursor.accept_mark(","):
        clustering = cursor.several(cursor.identifier)
    cursor.expect_mark(")")
    return partition, clustering


def _alter_table(cursor: Cursor) -> AlterTable:
    name = cursor.name()
    if cursor.accept("add"):
        if cursor.accept_mark("("):
            return AlterTable(name, add=cursor.listed(lambda: _column(cursor, False), ")"))
        return AlterTable(name, add=cursor.several(lambda: _column(cursor, False)))
    if cursor.accept("drop"):
        if cursor.accept_mark("("):
            dropped = cursor.listed(cursor.identifier, ")")
        else:
            dropped = cursor.several(cursor.identifier)
        timestamp = cursor.integer() if cursor.accept("using", "timestamp") else None
        return AlterTable(name, drop=dropped, drop_timestamp=timestamp)
    if cursor.accept("rename"):
        return AlterTable(name, rename=_renames(cursor))
    if cursor.accept("alter"):
        column = cursor.identifier()
        cursor.expect("type")
        return AlterTable(name, retype=(column, cursor.raw_type()))
    cursor.expect("with")
    return AlterTable(name, properties=_properties(cursor))


def _properties(cursor: Cursor) -> Properties:
    properties = [_property(cursor)]
    while cursor.accept("and"):
        properties.append(_property(cursor))
    return tuple(properties)


def _property(cursor: Cursor) -> tuple[str, PropertyValue]:
    name = cursor.identifier()
    cursor.expect_mark("=")
    if not cursor.accept_mark("{"):
        return name, _simple(cursor)
    pairs = cursor.listed(lambda: _pair(cursor), "}")
    return name, dict(pairs)


def _pair(cursor: Cursor) -> tuple[str, str]:
    key = _simple(cursor)
    cursor.expect_mark(":")
    return key, _simple(cursor)


def _simple(cursor: Cursor) -> str:
    token = cursor.now
    if token.kind == "mark":
        cursor.fail()
    return cursor.take().text
