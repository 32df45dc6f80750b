"""Parses SELECT.

In: a cursor behind the verb. Out: the statement's tree.
"""

from __future__ import annotations

from embedded.scylla.cql.cursor import RESERVED, Cursor
from embedded.scylla.cql.terms import attributes, marker, term, where
from embedded.scylla.cql.tree import (
    CallSelector,
    CastSelector,
    ColumnSelector,
    ElementSelector,
    FieldSelector,
    Select,
    Selected,
    Selector,
    Term,
)


def select(cursor: Cursor) -> Select:
    json = cursor.sees("json") and _begins_selection(cursor)
    if json:
        cursor.take()
    distinct = cursor.sees("distinct") and _begins_selection(cursor)
    if distinct:
        cursor.take()
    selected: tuple[Selected, ...] = ()
    if not cursor.accept_mark("*"):
        selected = cursor.several(lambda: _selected(cursor))
    cursor.expect("from")
    name = cursor.name()
    relations = where(cursor)
    group: tuple[str, ...] = ()
    if cursor.accept("group", "by"):
        group = cursor.several(cursor.identifier)
    order: tuple[tuple[str, bool], ...] = ()
    if cursor.accept("order", "by"):
        order = cursor.several(lambda: _ordering(cursor))
    per_partition: Term | None = None
    if cursor.accept("per", "partition", "limit"):
        per_partition = _limit(cursor)
    limit: Term | None = None
    if cursor.accept("limit"):
        limit = _limit(cursor)
    filtering = cursor.accept("allow", "filtering")
    bypass = cursor.accept("bypass", "cache")
    return Select(
        name,
        selected,
        relations,
        order,
        limit,
        per_partition,
        group,
        distinct,
        json,
        filtering,
        bypass,
        attributes(cursor),
    )


def _begins_selection(cursor: Cursor) -> bool:
    """Whether `json` or `distinct` is the keyword here, not a column or function of that name."""
    following = cursor.ahead()
    if following.kind == "mark":
        return following.text in ("*", "?")
    return not (following.kind == "name" and following.text in ("from", "as"))


def _limit(cursor: Cursor) -> Term:
    if cursor.now.kind == "integer":
        return term(cursor)
    bound = marker(cursor)
    return bound if bound is not None else cursor.fail()


def _ordering(cursor: Cursor) -> tuple[str, bool]:
    name = cursor.identifier()
    if cursor.accept("desc"):
        return name, True
    cursor.accept("asc")
    return name, False


def _selected(cursor: Cursor) -> Selected:
    first = cursor.at
    selector = _selector(cursor)
    text = "".join(token.raw for token in cursor.tokens[first : cursor.at])
    alias = cursor.identifier() if cursor.accept("as") else None
    return Selected(selector, alias, text)


def _selector(cursor: Cursor) -> Selector:
    selector = _plain(cursor)
    while True:
        if cursor.accept_mark("["):
            key = term(cursor)
            cursor.expect_mark("]")
            selector = ElementSelector(selector, key)
        elif cursor.accept_mark("."):
            selector = FieldSelector(selector, cursor.identifier())
        else:
            return selector


def _plain(cursor: Cursor) -> Selector:
    token = cursor.now
    # ScyllaDB selects no constants, not even as arguments of functions.
    if token.kind == "name" and token.text in ("true", "false"):
        cursor.fail()
    if cursor.sees("cast") and cursor.ahead().text == "(":
        cursor.take()
        cursor.take()
        inner = _selector(cursor)
        cursor.expect("as")
        type_ = cursor.raw_type()
        cursor.expect_mark(")")
        return CastSelector(inner, type_)
    called = token.kind == "quoted" or token.text == "token" or token.text not in RESERVED
    if called and cursor.ahead().text == "(" and cursor.ahead().kind == "mark":
        cursor.take()
        return _call(cursor, token.text)
    if token.text == "system" and cursor.ahead().text == "." and cursor.ahead(3).text == "(":
        cursor.at += 2
        return _call(cursor, cursor.take().text)
    return ColumnSelector(cursor.identifier())


def _call(cursor: Cursor, name: str) -> Selector:
    cursor.expect_mark("(")
    if name == "count" and (cursor.sees_mark("*") or (cursor.now.text == "1" and cursor.ahead().text == ")")):
        cursor.take()
        cursor.expect_mark(")")
        return CallSelector(name, None)
    return CallSelector(name, cursor.listed(lambda: _selector(cursor), ")"))
