"""CQL types as frozen values, and the parser of their spellings in ``system_schema``.

In: a type's text, e.g. ``frozen<map<text, frozen<addr>>>``, with the user types of its keyspace. Out: a
``CqlType``; its ``cql()`` gives the server's spelling back. Unknown or broken spellings raise
``ValueError``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

# fmt: off
NATIVE_NAMES: Final = frozenset((
    "ascii", "bigint", "blob", "boolean", "counter", "date", "decimal", "double", "duration",
    "float", "inet", "int", "smallint", "text", "time", "timestamp", "timeuuid", "tinyint", "uuid",
    "varint",
))

# Cassandra's and ScyllaDB's reserved words: they may not stand unquoted as a name.
_RESERVED: Final = frozenset((
    "add", "allow", "alter", "and", "apply", "asc", "authorize", "batch", "begin", "by",
    "columnfamily", "create", "default", "delete", "desc", "describe", "drop", "entries", "execute",
    "from", "full", "grant", "if", "in", "index", "infinity", "insert", "into", "is", "keyspace",
    "limit", "materialized", "mbean", "mbeans", "modify", "nan", "norecursive", "not", "null", "of",
    "on", "or", "order", "primary", "rename", "replace", "revoke", "schema", "select", "set",
    "table", "to", "token", "truncate", "unlogged", "unset", "update", "use", "using", "view",
    "where", "with",
))
# fmt: on
_PLAIN_NAME: Final = re.compile(r"[a-z][a-z0-9_]*\Z")


def quote_identifier(name: str) -> str:
    """``name`` as CQL must spell it: bare where that means the same, else in double quotes.

    >>> quote_identifier("v"), quote_identifier("Order"), quote_identifier("from")
    ('v', '"Order"', '"from"')
    """
    if _PLAIN_NAME.match(name) and name not in _RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


class CqlType:
    """A CQL type. ``frozen`` is true where the server stores the value as one cell although it has parts."""

    __slots__ = ()

    @property
    def frozen(self) -> bool:
        """Whether the spelling is wrapped in ``frozen<…>``."""
        return False

    def cql(self) -> str:
        """The server's spelling."""
        bare = self._bare_cql()
        return f"frozen<{bare}>" if self.frozen else bare

    def _bare_cql(self) -> str:
        raise TypeError(f"{type(self).__name__} has no spelling")


@dataclass(frozen=True, slots=True)
class NativeType(CqlType):
    """A type without parts, by its name in lower case (``varchar`` is ``text``)."""

    name: str

    def _bare_cql(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ListType(CqlType):
    element: CqlType
    frozen: bool = False

    def _bare_cql(self) -> str:
        return f"list<{self.element.cql()}>"


@dataclass(frozen=True, slots=True)
class SetType(CqlType):
    element: CqlType
    frozen: bool = False

    def _bare_cql(self) -> str:
        return f"set<{self.element.cql()}>"


@dataclass(frozen=True, slots=True)
class MapType(CqlType):
    key: CqlType
    value: CqlType
    frozen: bool = False

    def _bare_cql(self) -> str:
        return f"map<{self.key.cql()}, {self.value.cql()}>"


@dataclass(frozen=True, slots=True)
class TupleType(CqlType):
    """A tuple: always one cell, hence always frozen."""

    elements: tuple[CqlType, ...]

    @property
    def frozen(self) -> bool:
        return True

    def _bare_cql(self) -> str:
        return f"tuple<{', '.join(element.cql() for element in self.elements)}>"


@dataclass(frozen=True, slots=True)
class UserType(CqlType):
    keyspace: str
    name: str
    fields: tuple[tuple[str, CqlType], ...]
    frozen: bool = False

    def _bare_cql(self) -> str:
        return quote_identifier(self.name)


@dataclass(frozen=True, slots=True)
class VectorType(CqlType):
    element: CqlType
    dimensions: int

    def _bare_cql(self) -> str:
        return f"vector<{self.element.cql()}, {self.dimensions}>"


def native(name: str) -> NativeType:
    """The native type called ``name``; ``ValueError`` for any other name.

    >>> native("varchar")
    NativeType(name='text')
    """
    lowered = "text" if name.lower() == "varchar" else name.lower()
    if lowered not in NATIVE_NAMES:
        raise ValueError(f"{name!r} is not a native CQL type")
    return _NATIVES[lowered]


_NATIVES: Final = {name: NativeType(name) for name in NATIVE_NAMES}


def is_multi_cell(type_: CqlType) -> bool:
    """Whether a column of this type is stored cell by cell: a collection or user type that is not frozen."""
    return isinstance(type_, (ListType, SetType, MapType, UserType)) and not type_.frozen


def freeze(type_: CqlType) -> CqlType:
    """``type_`` as it is inside another type or in a log column: one cell, all its parts frozen too."""
    if isinstance(type_, ListType | SetType):
        return replace(type_, element=freeze(type_.element), frozen=True)
    if isinstance(type_, MapType):
        return replace(type_, key=freeze(type_.key), value=freeze(type_.value), frozen=True)
    if isinstance(type_, TupleType):
        return TupleType(tuple(freeze(element) for element in type_.elements))
    if isinstance(type_, UserType):
        return replace(type_, fields=tuple((name, freeze(field)) for name, field in type_.fields), frozen=True)
    if isinstance(type_, VectorType):
        return replace(type_, element=freeze(type_.element))
    return type_


_TOKEN: Final = re.compile(r"""\s*(?:(?P<quoted>"(?:[^"]|"")*")|(?P<word>[A-Za-z0-9_]+)|(?P<mark>[<>,.]))""")


def parse_type(text: str, user_types: Mapping[str, UserType] | None = None) -> CqlType:
    """The type that ``text`` spells; ``user_types`` are those of the keyspace, by their unquoted names.

    >>> parse_type("map<text, frozen<list<int>>>").cql()
    'map<text, frozen<list<int>>>'
    """
    parser = _Parser(text, user_types or {})
    parsed = parser.type()
    parser.end()
    return parsed


class _Parser:
    def __init__(self, text: str, user_types: Mapping[str, UserType]) -> None:
        self.text = text
        self.user_types = user_types
        self.tokens: list[tuple[str, str]] = []
        at = 0
        stripped = text.rstrip()
        while at < len(stripped):
            match = _TOKEN.match(stripped, at)
            if match is None or match.lastgroup is None:
                raise self.error(f"unexpected character {stripped[at]!r}")
            self.tokens.append((match.lastgroup, match.group(match.lastgroup)))
            at = match.end()
        self.at = 0

    def error(self, why: str) -> ValueError:
        return ValueError(f"cannot read the CQL type {self.text!r}: {why}")

    def next(self) -> tuple[str, str]:
        if self.at >= len(self.tokens):
            raise self.error("it ends too early")
        token = self.tokens[self.at]
        self.at += 1
        return token

    def expect(self, mark: str) -> None:
        if self.next() != ("mark", mark):
            raise self.error(f"{mark!r} is missing")

    def has(self, mark: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at] == ("mark", mark):
            self.at += 1
            return True
        return False

    def end(self) -> None:
        if self.at != len(self.tokens):
            raise self.error(f"unexpected {self.tokens[self.at][1]!r}")

    def type(self) -> CqlType:
        kind, word = self.next()
        if kind == "mark":
            raise self.error(f"unexpected {word!r}")
        if kind == "word" and self.has("<"):
            return self.parametrised(word.lower())
        if self.has("."):
            kind, word = self.next()
        if kind == "word" and (word.lower() in NATIVE_NAMES or word.lower() == "varchar"):
            return native(word)
        name = word[1:-1].replace('""', '"') if kind == "quoted" else word
        found = self.user_types.get(name) or (self.user_types.get(name.lower()) if kind == "word" else None)
        if found is None:
            raise self.error(f"there is no user type {name!r} in the keyspace")
        frozen = freeze(found)
        assert isinstance(frozen, UserType)
        return replace(frozen, frozen=False)

    def parametrised(self, word: str) -> CqlType:
        parsed: CqlType
        if word == "frozen":
            parsed = freeze(self.type())
        elif word == "list":
            parsed = ListType(freeze(self.type()))
        elif word == "set":
            parsed = SetType(freeze(self.type()))
        elif word == "map":
            key = freeze(self.type())
            self.expect(",")
            parsed = MapType(key, freeze(self.type()))
        elif word == "tuple":
            elements = [freeze(self.type())]
            while self.has(","):
                elements.append(freeze(self.type()))
            parsed = TupleType(tuple(elements))
        elif word == "vector":
            element = freeze(self.type())
            self.expect(",")
            kind, number = self.next()
            if kind != "word" or not number.isdecimal() or int(number) < 1:
                raise self.error(f"{number!r} is not a number of dimensions")
            parsed = VectorType(element, int(number))
        else:
            raise self.error(f"{word!r} takes no parameters")
        self.expect(">")
        return parsed
