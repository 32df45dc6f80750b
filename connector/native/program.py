"""The words and the text of a plan: what the kernel reads instead of Python's objects.

In: CQL types, names. Out: numbers that say what to write, and the bytes that records have in common. The codes are
those of the enumerations in ``kernel/values.h`` and ``kernel/kernel.c``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, assert_never

from connector.formats import to_json
from connector.values import (
    ByNative,
    CqlType,
    ListType,
    MapType,
    NativeType,
    RenderingRules,
    SetType,
    TupleType,
    UserType,
    VectorType,
    fixed_size,
    freeze,
    is_multi_cell,
    native,
)


class Node(IntEnum):
    """Kinds of values."""

    INTEGER = 0
    BOOLEAN = 1
    TEXT = 2
    ASCII = 3
    BLOB = 4
    UUID = 5
    INET = 6
    DATE = 7
    FLOAT = 8
    DOUBLE = 9
    VARINT = 10
    DECIMAL = 11
    DURATION = 12
    SEQUENCE = 13
    MAP = 14
    STRUCT = 15
    VECTOR = 16
    LIST_COLUMN = 17


class Unsupported(Exception):
    """The kernel has no form for this: records of the table are made the plain way."""


#: With the size of the cell, where values of one kind have several.
_NATIVE: Final[ByNative[tuple[Node, int]]] = {
    "ascii": (Node.ASCII, 0),
    "bigint": (Node.INTEGER, 8),
    "blob": (Node.BLOB, 0),
    "boolean": (Node.BOOLEAN, 0),
    "counter": (Node.INTEGER, 8),
    "date": (Node.DATE, 0),
    "decimal": (Node.DECIMAL, 0),
    "double": (Node.DOUBLE, 0),
    "duration": (Node.DURATION, 0),
    "float": (Node.FLOAT, 0),
    "inet": (Node.INET, 0),
    "int": (Node.INTEGER, 4),
    "smallint": (Node.INTEGER, 2),
    "text": (Node.TEXT, 0),
    "time": (Node.INTEGER, 8),
    "timestamp": (Node.INTEGER, 8),
    "timeuuid": (Node.UUID, 0),
    "tinyint": (Node.INTEGER, 1),
    "uuid": (Node.UUID, 0),
    "varint": (Node.VARINT, 0),
}


class Program:
    """Grows while a plan is made. Places in it are given when something is added."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.text = bytearray()
        self._literals: dict[bytes, int] = {}
        self._nodes: dict[tuple[CqlType, RenderingRules, bool, bool], int] = {}

    def add(self, *words: int) -> int:
        """Where these words stand from now on."""
        at = len(self.words)
        self.words += words
        return at

    def literal(self, text: bytes) -> tuple[int, int]:
        """Where a text stands and how long it is; each is kept once."""
        at = self._literals.get(text)
        if at is None:
            at = self._literals[text] = len(self.text)
            self.text += text
        return at, len(text)

    def value(self, type_: CqlType, rules: RenderingRules, avro: bool) -> int:
        """The node of a value that is not a whole column: frozen, if it has parts."""
        return self._node(freeze(type_), rules, avro, False)

    def column(self, type_: CqlType, rules: RenderingRules, avro: bool) -> int:
        """The node of a column as images have it: of those that are stored cell by cell, empty ones are null, unless
        they are to be as in Java."""
        if not is_multi_cell(type_):
            return self.value(type_, rules, avro)
        if isinstance(type_, ListType):
            if rules.strict:
                raise Unsupported("the order of a list's elements in strict records")
            return self.add(Node.LIST_COLUMN, self.value(type_.element, rules, avro))
        return self._node(freeze(type_), rules, avro, not rules.strict)

    def _node(self, type_: CqlType, rules: RenderingRules, avro: bool, null_if_empty: bool) -> int:
        key = (type_, rules, avro, null_if_empty)
        known = self._nodes.get(key)
        if known is None:
            known = self._made(type_, rules, avro, null_if_empty)
            self._nodes[key] = known
        return known

    def _made(self, type_: CqlType, rules: RenderingRules, avro: bool, null_if_empty: bool) -> int:
        if isinstance(type_, NativeType):
            kind, size = _NATIVE[type_.name]
            return self.add(kind, rules.strict if kind in (Node.INET, Node.DATE) else size)
        if isinstance(type_, ListType | SetType):
            if isinstance(type_, SetType):
                _distinct(type_.element, rules)
            return self.add(Node.SEQUENCE, self._node(type_.element, rules, avro, False), null_if_empty)
        if isinstance(type_, MapType):
            _distinct(type_.key, rules)
            parts = (self._node(part, rules, avro, False) for part in (type_.key, type_.value))
            return self.add(Node.MAP, *parts, null_if_empty)
        if isinstance(type_, TupleType):
            fields = [(f"field_{at}", element) for at, element in enumerate(type_.elements)]
            return self._struct(fields, rules, avro, False)
        if isinstance(type_, UserType):
            return self._struct(type_.fields, rules, avro, not (rules.keep_empty or rules.compared))
        if isinstance(type_, VectorType):
            width = fixed_size(type_.element)
            element = self._node(type_.element, rules, avro, False)
            return self.add(Node.VECTOR, element, type_.dimensions, -1 if width is None else width)
        assert_never(type_)

    def _struct(
        self, fields: Sequence[tuple[str, CqlType]], rules: RenderingRules, avro: bool, null_if_empty: bool
    ) -> int:
        words: list[int] = []
        for at, (name, type_) in enumerate(fields):
            never_null = isinstance(type_, ListType | SetType | MapType) and not rules.keep_empty
            node = self._node(type_, rules, avro, False)
            words += (*self.literal(b"" if avro else named(name, at > 0)), node, never_null)
        return self.add(Node.STRUCT, null_if_empty, len(fields), *words)


def named(name: str, follows: bool) -> bytes:
    """A member's name in JSON, behind others or the first one."""
    return (b"," if follows else b"") + to_json(name) + b":"


def _distinct(type_: CqlType, rules: RenderingRules) -> None:
    """Values that are two for CQL can be one for Java."""
    if rules.strict and (type_ == native("inet") or not isinstance(type_, NativeType)):
        raise Unsupported("sets and maps of which Java makes fewer elements")
