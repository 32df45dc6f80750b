"""Walks over tokens: what every part of the parser uses to look at, take and refuse them, and names and types.

In: a statement's text. Out: tokens one by one; `SyntaxException` worded like ScyllaDB's where something else
was expected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from embedded.scylla.cql.lexer import Token, place, tokens
from embedded.scylla.cql.tree import Name, RawType
from embedded.scylla.errors import SyntaxException

_Item = TypeVar("_Item")
# fmt: off
RESERVED = frozenset((
    "add", "allow", "alter", "and", "apply", "asc", "authorize", "batch", "begin", "by", "columnfamily",
    "create", "default", "delete", "desc", "describe", "drop", "entries", "execute", "from", "full",
    "grant", "if", "in", "index", "infinity", "insert", "into", "is", "keyspace", "limit",
    "materialized", "modify", "nan", "norecursive", "not", "null", "of", "on", "or", "order", "primary",
    "rename", "replace", "revoke", "schema", "select", "set", "table", "to", "token", "truncate",
    "unlogged", "unset", "update", "use", "using", "view", "where", "with",
))
# fmt: on


class Cursor:
    """A place in a statement's tokens. `markers` counts the bind markers that were met."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens(text)
        self.at = 0
        self.markers: list[str | None] = []

    @property
    def now(self) -> Token:
        return self.tokens[self.at]

    def ahead(self, count: int = 1) -> Token:
        return self.tokens[min(self.at + count, len(self.tokens) - 1)]

    def fail(self, token: Token | None = None) -> NoReturn:
        token = token or self.now
        raise SyntaxException(f"line {place(self.text, token.at)} no viable alternative at input '{token.raw}'")

    def take(self) -> Token:
        token = self.tokens[self.at]
        if token.kind == "end":
            self.fail()
        self.at += 1
        return token

    def skip(self) -> None:
        """Leaves the rest of the statement unread."""
        self.at = len(self.tokens) - 1

    def sees(self, *words: str) -> bool:
        """Whether these keywords come next."""
        for offset, word in enumerate(words):
            token = self.ahead(offset)
            if token.kind != "name" or token.text != word:
                return False
        return True

    def accept(self, *words: str) -> bool:
        if not self.sees(*words):
            return False
        self.at += len(words)
        return True

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.accept(word):
                self.mismatch(word.upper())

    def mismatch(self, wanted: str) -> NoReturn:
        token = self.now
        where = place(self.text, token.at)
        if token.kind == "end":
            self.fail()
        raise SyntaxException(f"line {where} mismatched input '{token.raw}' expecting {wanted}")

    def sees_mark(self, mark: str) -> bool:
        return self.now.kind == "mark" and self.now.text == mark

    def accept_mark(self, mark: str) -> bool:
        if not self.sees_mark(mark):
            return False
        self.at += 1
        return True

    def expect_mark(self, mark: str) -> None:
        if not self.accept_mark(mark):
            self.mismatch(f"'{mark}'")

    def listed(self, item: Callable[[], _Item], closing: str) -> tuple[_Item, ...]:
        """Items separated by commas up to the closing mark, which is taken; none at all is allowed."""
        if self.accept_mark(closing):
            return ()
        items = [item()]
        while self.accept_mark(","):
            items.append(item())
        self.expect_mark(closing)
        return tuple(items)

    def several(self, item: Callable[[], _Item]) -> tuple[_Item, ...]:
        """One or more items separated by commas."""
        items = [item()]
        while self.accept_mark(","):
            items.append(item())
        return tuple(items)

    def sparse(self, item: Callable[[], _Item], closing: str) -> tuple[_Item, ...]:
        """One or more items up to the closing mark, which is taken; nothing need stand between two commas."""
        items = [item()]
        while not self.accept_mark(closing):
            self.expect_mark(",")
            if not self.sees_mark(",") and not self.sees_mark(closing):
                items.append(item())
        return tuple(items)

    def identifier(self) -> str:
        token = self.now
        if token.kind == "quoted" or (token.kind == "name" and token.text not in RESERVED):
            self.at += 1
            return token.text
        self.fail()

    def sees_identifier(self) -> bool:
        token = self.now
        return token.kind == "quoted" or (token.kind == "name" and token.text not in RESERVED)

    def name(self) -> Name:
        first = self.identifier()
        if self.accept_mark("."):
            return Name(first, self.identifier())
        return Name(None, first)

    def integer(self) -> int:
        if self.now.kind != "integer":
            self.fail()
        return int(self.take().text)

    def raw_type(self) -> RawType:
        token = self.now
        if token.kind == "string":
            self.at += 1
            return RawType("'" + token.text)
        reserved = token.kind == "name" and token.text in RESERVED and token.text != "set"
        if token.kind not in ("name", "quoted") or reserved:
            self.fail()
        self.at += 1
        quoted = token.kind == "quoted"
        if self.accept_mark("<"):
            if token.text == "vector":
                inner = self.raw_type()
                self.expect_mark(",")
                size = self.integer()
                self.expect_mark(">")
                return RawType("vector", (inner,), dimensions=size)
            return RawType(token.text, self.listed(self.raw_type, ">"), quoted=quoted)
        if self.accept_mark("."):
            return RawType(self.identifier(), keyspace=token.text, quoted=True)
        return RawType(token.text, quoted=quoted)
