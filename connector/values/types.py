"""CQL types as frozen values, and the parser of their spellings in ``system_schema``.

In: a type's text, e.g. ``frozen<map<text, frozen<addr>>>``, with the user types of its keyspace. Out: a
``CqlType``; its ``cql()`` gives the server's spelling back. Unknown or broken spellings raise
``ValueError``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Generic, Literal, TypedDict, TypeGuard, TypeVar, assert_never, get_args

from connector.cql_names import quote_identifier

# fmt: off
NativeName = Literal[
    "ascii", "bigint", "blob", "boolean", "counter", "date", "decimal", "double", "duration",
    "float", "inet", "int", "smallint", "text", "time", "timestamp", "timeuuid", "tinyint", "uuid",
    "varint",
]
# fmt: on
NATIVE_NAMES: Final[frozenset[NativeName]] = frozenset(get_args(NativeName))

T = TypeVar("T")


class ByNative(TypedDict, Generic[T]):
    """One thing for each native type: a type checker names every table that lacks one."""

    ascii: T
    bigint: T
    blob: T
    boolean: T
    counter: T
    date: T
    decimal: T
    double: T
    duration: T
    float: T
    inet: T
    int: T
    smallint: T
    text: T
    time: T
    timestamp: T
    timeuuid: T
    tinyint: T
    uuid: T
    varint: T


class _Spelled:
    """What all types share. ``frozen`` is true where the server stores the value as one cell although it has parts."""

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
class NativeType(_Spelled):
    """A type without parts, by its name in lower case (``varchar`` is ``text``)."""

    name: NativeName

    def _bare_cql(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ListType(_Spelled):
    element: CqlType
    frozen: bool = False

    def _bare_cql(self) -> str:
        return f"list<{self.element.cql()}>"


@dataclass(frozen=True, slots=True)
class SetType(_Spelled):
    element: CqlType
    frozen: bool = False

    def _bare_cql(self) -> str:
        return f"set<{self.element.cql()}>"


@dataclass(frozen=True, slots=True)
class MapType(_Spelled):
    key: CqlType
    value: CqlType
    frozen: bool = False

    def _bare_cql(self) -> str:
        return f"map<{self.key.cql()}, {self.value.cql()}>"


@dataclass(frozen=True, slots=True)
class TupleType(_Spelled):
    """A tuple: always one cell, hence always frozen."""

    elements: tuple[CqlType, ...]

    @property
    def frozen(self) -> bool:
        return True

    def _bare_cql(self) -> str:
        return f"tuple<{', '.join(element.cql() for element in self.elements)}>"


@dataclass(frozen=True, slots=True)
class UserType(_Spelled):
    keyspace: str
    name: str
    fields: tuple[tuple[str, CqlType], ...]
    frozen: bool = False

    def _bare_cql(self) -> str:
        return quote_identifier(self.name)


@dataclass(frozen=True, slots=True)
class VectorType(_Spelled):
    element: CqlType
    dimensions: int

    def _bare_cql(self) -> str:
        return f"vector<{self.element.cql()}, {self.dimensions}>"


#: A closed union: whoever takes a type apart ends in ``assert_never``, and a type checker names the places to extend.
CqlType = NativeType | ListType | SetType | MapType | TupleType | UserType | VectorType
#: Those that a column may hold cell by cell.
MultiCellType = ListType | SetType | MapType | UserType


def native(name: str) -> NativeType:
    """The native type called ``name``; ``ValueError`` for any other name.

    >>> native("varchar")
    NativeType(name='text')
    """
    lowered = "text" if name.lower() == "varchar" else name.lower()
    found = _NATIVES.get(lowered)
    if found is None:
        raise ValueError(f"{name!r} is not a native CQL type")
    return found


_NATIVES: Final[dict[str, NativeType]] = {name: NativeType(name) for name in NATIVE_NAMES}


def is_multi_cell(type_: CqlType) -> TypeGuard[MultiCellType]:
    """Whether a column of this type is stored cell by cell: a collection or user type that is not frozen."""
    match type_:
        case ListType() | SetType() | MapType() | UserType():
            return not type_.frozen
        case NativeType() | TupleType() | VectorType():
            return False
        case _:
            assert_never(type_)


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
    if isinstance(type_, NativeType):
        return type_
    assert_never(type_)


#: Codecs of a type call those of its parts: far deeper than anybody nests types, far from the end of Python's stack.
_DEEPEST: Final = 64
_TOKEN: Final = re.compile(r"""\s*(?:(?P<quoted>"(?:[^"]|"")*")|(?P<word>[A-Za-z0-9_]+)|(?P<mark>[<>,.]))""")


def parse_type(text: str, user_types: Mapping[str, UserType] | None = None) -> CqlType:
    """The type that ``text`` spells; ``user_types`` are those of the keyspace, by their unquoted names.

    >>> parse_type("map<text, frozen<list<int>>>").cql()
    'map<text, frozen<list<int>>>'
    """
    parser = _Parser(text, user_types or {})
    try:
        parsed = parser.type()
        parser.end()
    except RecursionError:
        # Of user types that hold each other, too many in a row.
        raise ValueError(f"cannot read the CQL type {text[:80]!r}: it is nested too deeply") from None
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
        self.depth = 0

    def error(self, why: str) -> ValueError:
        shown = self.text if len(self.text) <= 300 else f"{self.text[:300]}…"
        return ValueError(f"cannot read the CQL type {shown!r}: {why}")

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
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error("it is nested too deeply")
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
            if kind != "word" or not re.fullmatch("[0-9]{1,6}", number) or int(number) < 1:
                raise self.error(f"{number!r} is not a number of dimensions")
            parsed = VectorType(element, int(number))
        else:
            raise self.error(f"{word!r} takes no parameters")
        self.expect(">")
        self.depth -= 1
        return parsed
