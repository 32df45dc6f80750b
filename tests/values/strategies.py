"""Hypothesis strategies: CQL types, and values of a type."""

from __future__ import annotations

import ipaddress
import uuid
from decimal import Decimal
from struct import pack, unpack
from typing import Any
from zlib import crc32

from hypothesis import strategies as st

from connector.values.scalars import NANOSECONDS_PER_DAY, Duration
from connector.values.types import (
    NATIVE_NAMES,
    CqlType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
    freeze,
    native,
)


def _signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _float32(bits: int) -> float:
    value: float = unpack(">f", pack(">I", bits))[0]
    return value


@st.composite
def durations(draw: st.DrawFn) -> Duration:
    sign = draw(st.sampled_from((1, -1)))
    months, days = draw(st.integers(0, 2**31 - 1)), draw(st.integers(0, 2**31 - 1))
    return Duration(sign * months, sign * days, sign * draw(st.integers(0, 2**63 - 1)))


_decimals = st.builds(
    lambda unscaled, scale: Decimal((0 if unscaled >= 0 else 1, Decimal(abs(unscaled)).as_tuple().digits, -scale)),
    st.integers(-(10**40), 10**40),
    st.one_of(st.integers(-50, 50), _signed(32)),
)

NATIVE_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "ascii": st.text(st.characters(max_codepoint=127)),
    "bigint": _signed(64),
    "blob": st.binary(),
    "boolean": st.booleans(),
    "counter": _signed(64),
    "date": _signed(32),
    "decimal": _decimals,
    "double": st.floats(),
    "duration": durations(),
    "float": st.integers(0, 2**32 - 1).map(_float32).filter(lambda value: value == value),
    "inet": st.one_of(
        st.integers(0, 2**32 - 1).map(ipaddress.IPv4Address), st.integers(0, 2**128 - 1).map(ipaddress.IPv6Address)
    ),
    "int": _signed(32),
    "smallint": _signed(16),
    "text": st.text(st.characters(exclude_categories=["Cs"])),
    "time": st.integers(0, NANOSECONDS_PER_DAY - 1),
    "timestamp": _signed(64),
    "timeuuid": st.uuids(version=1),
    "tinyint": _signed(8),
    "uuid": st.uuids(),
    "varint": st.one_of(_signed(64), st.integers(-(1 << 300), 1 << 300)),
}

natives: st.SearchStrategy[CqlType] = st.sampled_from(sorted(NATIVE_NAMES - {"counter"})).map(native)
_names = st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=1, max_size=6)


def _user_type(fields: list[tuple[str, CqlType]]) -> CqlType:
    # As in a keyspace, one name is one type.
    return UserType("ks", f"u_{crc32(repr(fields).encode())}", tuple(fields))


def _nested(inner: st.SearchStrategy[CqlType]) -> st.SearchStrategy[CqlType]:
    fields = st.lists(st.tuples(_names, inner), min_size=1, max_size=3, unique_by=lambda field: field[0])
    return st.one_of(
        st.builds(ListType, inner),
        st.builds(SetType, inner),
        st.builds(MapType, inner, inner),
        st.builds(VectorType, inner, st.integers(1, 4)),
        st.builds(TupleType, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        fields.map(_user_type),
    )


#: Types as they stand inside a column: everything in them frozen.
frozen_types: st.SearchStrategy[CqlType] = st.recursive(natives, _nested, max_leaves=5).map(freeze)


def values_of(type_: CqlType) -> st.SearchStrategy[Any]:
    """Values that encode to at least one byte and decode to themselves."""
    if isinstance(type_, NativeType):
        return NATIVE_VALUES[type_.name]
    if isinstance(type_, ListType | SetType):
        return st.lists(values_of(type_.element), max_size=3)
    if isinstance(type_, MapType):
        return st.lists(st.tuples(values_of(type_.key), values_of(type_.value)), max_size=3)
    if isinstance(type_, VectorType):
        return st.lists(values_of(type_.element), min_size=type_.dimensions, max_size=type_.dimensions)
    if isinstance(type_, TupleType):
        return st.tuples(*(st.none() | values_of(element) for element in type_.elements))
    assert isinstance(type_, UserType)
    return st.tuples(*(st.none() | values_of(field) for _, field in type_.fields))


typed_values = frozen_types.flatmap(lambda type_: st.tuples(st.just(type_), values_of(type_)))

uuids_v1 = st.integers(0, 2**128 - 1).map(lambda bits: uuid.UUID(int=bits, version=1))


def user_types_of(type_: CqlType) -> dict[str, UserType]:
    """The user types in a type, by name."""
    found: dict[str, UserType] = {}
    if isinstance(type_, UserType):
        found[type_.name] = type_
        for _, field in type_.fields:
            found |= user_types_of(field)
    elif isinstance(type_, ListType | SetType | VectorType):
        found |= user_types_of(type_.element)
    elif isinstance(type_, MapType):
        found |= user_types_of(type_.key) | user_types_of(type_.value)
    elif isinstance(type_, TupleType):
        for element in type_.elements:
            found |= user_types_of(element)
    return found
