"""Parses INSERT, UPDATE, DELETE and BATCH.

In: a cursor behind the verb. Out: the statement's tree.
"""

from __future__ import annotations

from typing import Literal, cast

from embedded.scylla.cql.cursor import Cursor
from embedded.scylla.cql.terms import attributes, conditions, term, where
from embedded.scylla.cql.tree import (
    NO_ATTRIBUTES,
    NO_CONDITIONS,
    Assignment,
    Batch,
    Conditions,
    Delete,
    Deletion,
    Insert,
    InsertJson,
    Modification,
    Update,
)


def insert(cursor: Cursor) -> Insert | InsertJson:
    cursor.expect("into")
    name = cursor.name()
    if cursor.accept("json"):
        json = term(cursor)
        unset = False
        if cursor.accept("default"):
            unset = cursor.accept("unset")
            if not unset:
                cursor.expect("null")
        absent = _if_not_exists(cursor)
        return InsertJson(name, json, unset, absent, attributes(cursor))
    cursor.expect_mark("(")
    columns = cursor.listed(cursor.identifier, ")")
    cursor.expect("values")
    cursor.expect_mark("(")
    values = cursor.listed(lambda: term(cursor), ")")
    using = attributes(cursor)
    absent = _if_not_exists(cursor)
    if using == NO_ATTRIBUTES:
        using = attributes(cursor)
    return Insert(name, columns, values, absent, using)


def _if_not_exists(cursor: Cursor) -> Conditions:
    return Conditions(not_exists=True) if cursor.accept("if", "not", "exists") else NO_CONDITIONS


def update(cursor: Cursor) -> Update:
    name = cursor.name()
    using = attributes(cursor)
    cursor.expect("set")
    assignments = cursor.several(lambda: _assignment(cursor))
    return Update(name, assignments, where(cursor), conditions(cursor), using)


def _assignment(cursor: Cursor) -> Assignment:
    column = cursor.identifier()
    if cursor.accept_mark("["):
        key = term(cursor)
        cursor.expect_mark("]")
        cursor.expect_mark("=")
        return Assignment(column, "=", term(cursor), key=key)
    if cursor.accept_mark("."):
        field = cursor.identifier()
        cursor.expect_mark("=")
        return Assignment(column, "=", term(cursor), field=field)
    if cursor.sees_mark("+") or cursor.sees_mark("-"):
        sign = cast(Literal["+", "-"], cursor.take().text)
        cursor.expect_mark("=")
        return Assignment(column, sign, term(cursor))
    cursor.expect_mark("=")
    if cursor.sees_identifier() and cursor.ahead().text in ("+", "-") and cursor.ahead().kind == "mark":
        return _arithmetic(cursor, column)
    if cursor.sees_identifier() and cursor.ahead().kind == "integer" and cursor.ahead().text.startswith("-"):
        cursor.identifier()
        return Assignment(column, "+", term(cursor))
    value = term(cursor)
    if cursor.accept_mark("+"):
        if cursor.identifier() != column:
            cursor.fail(cursor.tokens[cursor.at - 1])
        return Assignment(column, "prepend", value)
    return Assignment(column, "=", value)


def _arithmetic(cursor: Cursor, column: str) -> Assignment:
    if cursor.identifier() != column:
        cursor.fail(cursor.tokens[cursor.at - 1])
    sign = cast(Literal["+", "-"], cursor.take().text)
    return Assignment(column, sign, term(cursor))


def delete(cursor: Cursor) -> Delete:
    deletions: tuple[Deletion, ...] = ()
    if not cursor.sees("from"):
        deletions = cursor.several(lambda: _deletion(cursor))
    cursor.expect("from")
    name = cursor.name()
    using = attributes(cursor)
    return Delete(name, deletions, where(cursor), conditions(cursor), using)


def _deletion(cursor: Cursor) -> Deletion:
    column = cursor.identifier()
    if cursor.accept_mark("["):
        key = term(cursor)
        cursor.expect_mark("]")
        return Deletion(column, key=key)
    if cursor.accept_mark("."):
        return Deletion(column, field=cursor.identifier())
    return Deletion(column)


def modification(cursor: Cursor) -> Modification:
    if cursor.accept("insert"):
        return insert(cursor)
    if cursor.accept("update"):
        return update(cursor)
    if cursor.accept("delete"):
        return delete(cursor)
    cursor.fail()


def batch(cursor: Cursor) -> Batch:
    kind: Literal["logged", "unlogged", "counter"] = "logged"
    if cursor.accept("unlogged"):
        kind = "unlogged"
    elif cursor.accept("counter"):
        kind = "counter"
    cursor.expect("batch")
    using = attributes(cursor)
    statements: list[Modification] = []
    while not cursor.accept("apply"):
        statements.append(modification(cursor))
        cursor.accept_mark(";")
    cursor.expect("batch")
    return Batch(kind, tuple(statements), using)
