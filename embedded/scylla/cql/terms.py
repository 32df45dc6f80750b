"""Parses terms (literals, bind markers, function calls), relations, conditions and USING clauses.

In: a cursor at the beginning of one. Out: its tree, the cursor behind it.
"""

from __future__ import annotations

from typing import Final, cast

from embedded.scylla.cql.cursor import Cursor
from embedded.scylla.cql.tree import (
    AnyRelation,
    Attributes,
    CallTerm,
    Conditions,
    Constant,
    ConstantKind,
    HintTerm,
    InList,
    ListTerm,
    MapTerm,
    Marker,
    Null,
    Operator,
    Relation,
    SetTerm,
    Term,
    TokenRelation,
    TupleRelation,
    TupleTerm,
    UserTerm,
)

_CONSTANTS: Final = frozenset(("string", "integer", "float", "uuid", "hex", "duration"))
_COMPARISONS: Final = frozenset(("=", "<", "<=", ">", ">=", "!="))
# fmt: off
_TYPE_WORDS: Final = frozenset((
    "ascii", "bigint", "blob", "boolean", "date", "decimal", "double", "duration", "float", "inet",
    "int", "smallint", "text", "time", "timestamp", "timeuuid", "tinyint", "uuid", "varchar", "varint",
    "list", "set", "map", "tuple", "frozen", "vector",
))
# fmt: on


def marker(cursor: Cursor) -> Marker | None:
    if cursor.accept_mark("?"):
        cursor.markers.append(None)
        return Marker(len(cursor.markers) - 1)
    if cursor.sees_mark(":") and cursor.ahead().kind in ("name", "quoted"):
        cursor.take()
        name = cursor.take().text
        # The same name again is the same variable.
        if name not in cursor.markers:
            cursor.markers.append(name)
        return Marker(cursor.markers.index(name), name)
    return None


def term(cursor: Cursor) -> Term:
    token = cursor.now
    if token.kind in _CONSTANTS:
        cursor.take()
        return Constant(cast(ConstantKind, token.kind), token.text)
    bound = marker(cursor)
    if bound is not None:
        return bound
    if token.kind == "mark":
        return _marked(cursor)
    if token.kind in ("name", "quoted"):
        return _worded(cursor)
    cursor.fail()


def _marked(cursor: Cursor) -> Term:
    if cursor.accept_mark("["):
        return ListTerm(cursor.listed(lambda: term(cursor), "]"))
    if cursor.accept_mark("{"):
        return _braced(cursor)
    if cursor.accept_mark("-"):
        word = cursor.take()
        if word.text in ("nan", "infinity"):
            return Constant("float", "-" + word.text)
        cursor.fail(word)
    if cursor.sees_mark("("):
        return _parenthesised(cursor)
    cursor.fail()


def _parenthesised(cursor: Cursor) -> Term:
    """A tuple, or a type hint before a term."""
    inside = cursor.ahead()
    hint = inside.kind == "name" and inside.text in _TYPE_WORDS and cursor.ahead(2).text in (")", "<")
    cursor.take()
    if hint:
        type_ = cursor.raw_type()
        cursor.expect_mark(")")
        return HintTerm(type_, term(cursor))
    return TupleTerm(cursor.listed(lambda: term(cursor), ")"))


def _braced(cursor: Cursor) -> Term:
    if cursor.accept_mark("}"):
        return SetTerm(())
    if cursor.sees_identifier() and cursor.ahead().text == ":" and cursor.now.text not in ("true", "false"):
        fields = cursor.listed(lambda: _user_field(cursor), "}")
        return UserTerm(fields)
    first = term(cursor)
    if cursor.accept_mark(":"):
        pairs = [(first, term(cursor))]
        while cursor.accept_mark(","):
            key = term(cursor)
            cursor.expect_mark(":")
            pairs.append((key, term(cursor)))
        cursor.expect_mark("}")
        return MapTerm(tuple(pairs))
    items = [first]
    while cursor.accept_mark(","):
        items.append(term(cursor))
    cursor.expect_mark("}")
    return SetTerm(tuple(items))


def _user_field(cursor: Cursor) -> tuple[str, Term]:
    name = cursor.identifier()
    cursor.expect_mark(":")
    return name, term(cursor)


def _worded(cursor: Cursor) -> Term:
    token = cursor.now
    if token.kind == "name":
        if token.text == "null":
            cursor.take()
            return Null()
        if token.text in ("true", "false"):
            cursor.take()
            return Constant("boolean", token.text)
        if token.text in ("nan", "infinity"):
            cursor.take()
            return Constant("float", token.text)
        if token.text == "token" and cursor.ahead().text == "(":
            cursor.take()
            cursor.take()
            return CallTerm("token", cursor.listed(lambda: term(cursor), ")"))
    name = cursor.identifier()
    if cursor.accept_mark("."):
        name = f"{name}.{cursor.identifier()}"
    if not cursor.accept_mark("("):
        cursor.fail()
    return CallTerm(name.removeprefix("system."), cursor.listed(lambda: term(cursor), ")"))


def operator(cursor: Cursor) -> Operator:
    token = cursor.now
    if token.kind == "mark" and token.text in _COMPARISONS:
        cursor.take()
        return cast(Operator, token.text)
    if cursor.accept("in"):
        return "IN"
    if cursor.accept("not", "in"):
        return "NOT IN"
    if cursor.accept("contains", "key"):
        return "CONTAINS KEY"
    if cursor.accept("contains"):
        return "CONTAINS"
    if cursor.accept("like"):
        return "LIKE"
    if cursor.accept("is", "not"):
        return "IS NOT"
    cursor.fail()


def _value_of(cursor: Cursor, op: Operator) -> Term | InList:
    if op in ("IN", "NOT IN"):
        if cursor.accept_mark("("):
            return InList(cursor.listed(lambda: term(cursor), ")"))
        return marker(cursor) or cursor.fail()
    return term(cursor)


def relation(cursor: Cursor) -> AnyRelation:
    """One restriction of a WHERE clause."""
    if cursor.sees("token") and cursor.ahead().text == "(":
        cursor.take()
        cursor.take()
        columns = cursor.listed(cursor.identifier, ")")
        return TokenRelation(columns, operator(cursor), term(cursor))
    if cursor.sees_mark("("):
        if cursor.ahead().text == "(":
            cursor.take()
            inner = relation(cursor)
            cursor.expect_mark(")")
            return inner
        return _tuple_relation(cursor)
    return column_relation(cursor)


def _tuple_relation(cursor: Cursor) -> AnyRelation:
    start = cursor.at
    cursor.expect_mark("(")
    if cursor.sees_identifier() and cursor.ahead().text not in (",", ")"):
        cursor.at = start + 1
        inner = relation(cursor)
        cursor.expect_mark(")")
        return inner
    columns = cursor.several(cursor.identifier)
    cursor.expect_mark(")")
    op = operator(cursor)
    return TupleRelation(columns, op, _value_of(cursor, op))


def column_relation(cursor: Cursor) -> Relation:
    name = cursor.identifier()
    key: Term | None = None
    field: str | None = None
    if cursor.accept_mark("["):
        key = term(cursor)
        cursor.expect_mark("]")
    elif cursor.accept_mark("."):
        field = cursor.identifier()
    op = operator(cursor)
    return Relation(name, op, _value_of(cursor, op), key, field)


def where(cursor: Cursor) -> tuple[AnyRelation, ...]:
    """`WHERE` and its relations; nothing when there is no `WHERE`."""
    if not cursor.accept("where"):
        return ()
    relations = [relation(cursor)]
    while cursor.accept("and"):
        relations.append(relation(cursor))
    return tuple(relations)


def _condition(cursor: Cursor) -> Relation:
    """A relation without the operators that only WHERE knows."""
    start = cursor.at
    found = column_relation(cursor)
    if found.operator in ("CONTAINS", "CONTAINS KEY", "IS NOT"):
        words = (token for token in cursor.tokens[start:] if token.kind == "name" and token.text in ("contains", "is"))
        cursor.fail(next(words))
    return found


def conditions(cursor: Cursor) -> Conditions:
    """The `IF` of an UPDATE or DELETE."""
    if not cursor.accept("if"):
        return Conditions()
    if cursor.sees("exists") and cursor.ahead().text not in _COMPARISONS:
        cursor.take()
        return Conditions(exists=True)
    relations = [_condition(cursor)]
    while cursor.accept("and"):
        relations.append(_condition(cursor))
    return Conditions(relations=tuple(relations))


def attributes(cursor: Cursor) -> Attributes:
    """`USING TIMESTAMP … AND TTL … AND TIMEOUT …`"""
    if not cursor.accept("using"):
        return Attributes()
    found: dict[str, Term] = {}
    while True:
        word = cursor.now
        if word.kind != "name" or word.text not in ("timestamp", "ttl", "timeout") or word.text in found:
            cursor.fail()
        cursor.take()
        found[word.text] = term(cursor)
        if not cursor.accept("and"):
            return Attributes(found.get("timestamp"), found.get("ttl"), found.get("timeout"))
