"""The keys that SQL cannot make, as SQL functions backed by Python.

In: CQL types. Out: SQL calls of session functions that give the tie key, the order key, or a collection's elements with
both. Only types whose serialisation SQL cannot write come here (decimal, varint, inet, duration, frozen collections,
tuples, user types), so tables without them never start a Python worker.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from connector.values import CqlType, NativeType
from spark_jobs.functions.serialised import order_bytes, tie_bytes
from spark_jobs.functions.unknown_fields import function_name, has_unknown, looked_at
from spark_jobs.model import Layout, Stored, order_is_stored, struct_of, tie_is_stored

DECIMAL = NativeType("decimal")
"""Its order key is also how two spellings of a number are compared."""


def tie_sql(type_: CqlType, value: str) -> str:
    return f"{_name('tie', type_)}({value})"


def order_sql(type_: CqlType, value: str) -> str:
    return f"{_name('order', type_)}({value})"


def elements_sql(stored: Stored, elements: str) -> str:
    """The changelog's elements from a record's ``{key, value}`` structs."""
    if _plain(stored):
        return f"transform({elements}, e -> {struct_of([('k', 'e.key'), ('v', 'e.value')])})"
    return f"{_name('elements', stored.type)}({elements})"


def is_blob(type_: CqlType) -> bool:
    return isinstance(type_, NativeType) and type_.name == "blob"


def _plain(stored: Stored) -> bool:
    key, value = stored.element_key, stored.element_value
    return not order_is_stored(key) and (value is None or not tie_is_stored(value))


def _name(what: str, type_: CqlType) -> str:
    """Types are told apart by their whole structure: a user type's name alone does not say what its fields are."""
    return f"scylla_cdc_{what}_{hashlib.sha256(repr(type_).encode()).hexdigest()[:16]}"


def register_functions(session: SparkSession, layout: Layout) -> None:
    """Makes every function that decoding this table calls known to the session."""
    for reading in layout.readings.values():
        register_functions(session, reading)
    ties: list[CqlType] = [key.type for key in layout.keys if key.identity_kind == "tie"]
    ties += [key.recorded for key in layout.keys if key.recorded is not None and is_blob(key.type)]
    ties += [stored.type for stored in layout.physical if stored.tie and stored.role == "cell"]
    orders: list[CqlType] = [key.type for key in layout.clustering if order_is_stored(key.type)]
    if any(kind != "bigint" for kind in layout.declared.values()):
        orders.append(DECIMAL)
    for type_ in dict.fromkeys(ties):
        register_tie(session, type_)
    for type_ in dict.fromkeys(orders):
        session.udf.register(_name("order", type_), _OnWorker(order_bytes, type_), "binary")
    for stored in layout.physical:
        if stored.role == "elements" and not _plain(stored):
            kind = f"array<{stored.element_type(timed=False)}>"
            session.udf.register(_name("elements", stored.type), _OnWorker(element_rows, stored), kind)
    if columns := looked_at(layout):
        session.udf.register(function_name(columns), _OnWorker(has_unknown, columns), "boolean")


def register_tie(session: SparkSession, type_: CqlType) -> None:
    """Makes ``tie_sql`` of one type known to the session."""
    session.udf.register(_name("tie", type_), _OnWorker(tie_bytes, type_), "binary")


class _OnWorker:
    """A function made from its argument on first use, so that only the argument is sent to Python workers."""

    def __init__(self, maker: Callable[[Any], Callable[[Any], Any]], argument: Any) -> None:
        self.maker, self.argument = maker, argument
        self.made: Callable[[Any], Any] | None = None

    def __call__(self, value: Any) -> Any:
        if self.made is None:
            self.made = self.maker(self.argument)
        return self.made(value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _OnWorker, (self.maker, self.argument)


def element_rows(stored: Stored) -> Callable[[Any], list[tuple[Any, ...]] | None]:
    key, value = stored.element_key, stored.element_value
    order = order_bytes(key) if order_is_stored(key) else None
    tie = tie_bytes(value) if value is not None and tie_is_stored(value) else None

    def made(elements: Any) -> list[tuple[Any, ...]] | None:
        if elements is None:
            return None
        rows: list[tuple[Any, ...]] = []
        for element in elements:
            # A null among the elements is a defect of the record, which the decoder finds by its missing key.
            element = (None, None) if element is None else element
            row = [element[0]]
            if order is not None:
                row.append(order(element[0]))
            row.append(element[1])
            if tie is not None:
                row.append(tie(element[1]))
            rows.append(tuple(row))
        return rows

    return made
