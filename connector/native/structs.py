"""Structs of columns, as the kernel reads what stands in them.

In: an ``Outline``, columns. Out: where in a program the struct stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from connector.changes import ColumnPlace
from connector.formats import Outline, OutlineSide
from connector.native.program import Program, Unsupported, named
from connector.native.steps import WITHOUT_CELL, Form
from connector.values import CqlType, ListType, MapType, SetType, UserType, is_multi_cell, native

#: Beyond this nobody has measured what the kernel would win.
MOST_DELTA_FIELDS: Final = 64
_TIMEUUID: Final = native("timeuuid")


@dataclass(frozen=True, slots=True)
class Shape:
    """``whole``: of a row, whose other columns stand in cells in the legacy format, but for those ``without_cell``.
    ``bare``: nothing stands around the columns. ``omits``: columns that nobody wrote are left out."""

    optional: bool = False
    whole: bool = False
    without_cell: frozenset[str] = frozenset()
    bare: bool = False
    omits: bool = False


def struct_of(
    program: Program, outline: Outline, side: OutlineSide, places: Sequence[ColumnPlace], shape: Shape
) -> int:
    """A struct of columns."""
    members: list[int] = []
    for place in places:
        assert place.value is not None, "a layout has the columns of its page"
        name = b"" if side.avro else named(place.name, bool(members) and not shape.omits)
        members += (*program.literal(name), *_member(program, outline, side, place, shape))
    opening, closing = (b"\2" if shape.optional else b"", b"") if side.avro else (b"{", b"}")
    if shape.bare:
        opening = closing = b""
    around = *program.literal(opening), *program.literal(closing)
    return program.add(*around, len(places), shape.omits, *members)


def _member(program: Program, outline: Outline, side: OutlineSide, place: ColumnPlace, shape: Shape) -> tuple[int, ...]:
    type_, rules, avro = place.column.type, outline.rules, side.avro
    legacy = outline.options.format == "legacy"
    in_cell = legacy and shape.whole and not place.column.is_key
    without = place.name in shape.without_cell
    places = (place.value or 0, at_or_none(place.deleted), at_or_none(place.deleted_elements), place.column.is_key)
    if in_cell and is_multi_cell(type_):
        form, *nodes = _delta(program, outline, type_, avro)
        return (form | WITHOUT_CELL if without else form, *nodes, *places)
    node = program.value(type_, rules, avro) if legacy else program.column(type_, rules, avro)
    return (Form.CELL if in_cell and not without else Form.BARE, node, 0, *places)


def _delta(program: Program, outline: Outline, type_: CqlType, avro: bool) -> tuple[int, int, int]:
    def value(part: CqlType) -> int:
        return program.value(part, outline.rules, avro)

    match type_:
        case SetType():
            element = value(type_.element)
            # Removed elements have no value: any node does.
            return Form.SET_DELTA, element, element
        case ListType():
            return Form.LIST_DELTA, value(_TIMEUUID), value(type_.element)
        case MapType():
            return Form.MAP_DELTA, value(type_.key), value(type_.value)
        case UserType():
            if len(type_.fields) > MOST_DELTA_FIELDS:
                raise Unsupported(f"a user type of more than {MOST_DELTA_FIELDS} fields")
            return Form.FIELDS_DELTA, value(type_), 0
        case _:
            raise Unsupported(f"deltas of {type_.cql()}")


def at_or_none(place: int | None) -> int:
    return -1 if place is None else place
