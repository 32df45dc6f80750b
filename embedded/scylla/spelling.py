"""Keys that are equal although their bytes differ: `1.0` and `1.00`, `0x01` and `0x0001` as varint.

In: a type. Out: what makes a raw key of that type one that Python's dictionaries compare as ScyllaDB's comparator
does. Of equal keys a dictionary keeps the bytes that came first, and so does ScyllaDB when it merges cells.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from connector.values import CqlType, ListType, MapType, NativeType, OrderKey, SetType, VectorType, order_key

Spell = Callable[[bytes], bytes]


class Spelled(bytes):
    """Bytes that are equal to others by value."""

    place: Any

    def __eq__(self, other: object) -> bool:
        return self.place == other.place if isinstance(other, Spelled) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.place)


def _has_synonyms(type_: CqlType) -> bool:
    if isinstance(type_, NativeType):
        return type_.name in ("varint", "decimal", "float", "double")
    if isinstance(type_, ListType | SetType | VectorType):
        return _has_synonyms(type_.element)
    if isinstance(type_, MapType):
        return _has_synonyms(type_.key) or _has_synonyms(type_.value)
    # Tuples and user types may leave out their last fields.
    return True


def _speller(order: OrderKey) -> Spell:
    def spell(raw: bytes) -> bytes:
        spelled = Spelled(raw)
        spelled.place = order(raw)
        return spelled

    return spell


@lru_cache(maxsize=4096)
def spelling(type_: CqlType) -> Spell | None:
    """What to send each key of this type through before it goes into a dictionary; None if its bytes will do."""
    return _speller(order_key(type_)) if _has_synonyms(type_) else None


@lru_cache(maxsize=4096)
def row_spelling(types: tuple[CqlType, ...]) -> Callable[[tuple[bytes, ...]], tuple[bytes, ...]] | None:
    """The same for clustering keys whose columns have these types."""
    spells = [spelling(type_) for type_ in types]
    if not any(spells):
        return None
    return lambda key: tuple(raw if spell is None else spell(raw) for raw, spell in zip(key, spells))


def element_spelling(type_: CqlType) -> Spell | None:
    """The same for the keys of the cells of a multi-cell column."""
    if isinstance(type_, MapType):
        return spelling(type_.key)
    return spelling(type_.element) if isinstance(type_, SetType) else None
