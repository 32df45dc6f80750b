"""Parses one CQL statement.

In: text. Out: the statement's tree and the names of its bind markers (None for `?`); `SyntaxException` if it
is no CQL.
"""

from __future__ import annotations

from dataclasses import dataclass

from embedded.scylla.cql import definitions, modifications
from embedded.scylla.cql.cursor import Cursor
from embedded.scylla.cql.selections import select
from embedded.scylla.cql.tree import PruneView, Statement, Truncate, Use
from embedded.scylla.errors import SyntaxException


@dataclass(frozen=True, slots=True)
class Parsed:
    """A statement and its bind markers in their order in the text."""

    statement: Statement
    markers: tuple[str | None, ...]


def parse(text: str) -> Parsed:
    """The tree of the only statement in the text; a `;` may end it."""
    cursor = Cursor(text)
    try:
        statement = _statement(cursor)
    except RecursionError:
        raise SyntaxException("the statement is nested too deeply") from None
    while cursor.accept_mark(";"):
        pass
    if cursor.now.kind != "end":
        cursor.fail()
    return Parsed(statement, tuple(cursor.markers))


def _statement(cursor: Cursor) -> Statement:
    if cursor.accept("select"):
        return select(cursor)
    if cursor.sees("insert") or cursor.sees("update") or cursor.sees("delete"):
        return modifications.modification(cursor)
    if cursor.accept("begin"):
        return modifications.batch(cursor)
    if cursor.accept("create"):
        return definitions.create(cursor)
    if cursor.accept("alter"):
        return definitions.alter(cursor)
    if cursor.accept("drop"):
        return definitions.drop(cursor)
    if cursor.accept("use"):
        return Use(cursor.identifier())
    if cursor.accept("truncate"):
        if not cursor.accept("table"):
            cursor.accept("columnfamily")
        name = cursor.name()
        if cursor.accept("using", "timeout"):
            cursor.take()
        return Truncate(name)
    if cursor.sees("list") or cursor.sees("grant") or cursor.sees("revoke"):
        cursor.skip()
        return definitions.ROLES
    if cursor.accept("prune", "materialized", "view"):
        name = cursor.name()
        cursor.skip()
        return PruneView(name)
    cursor.fail()
