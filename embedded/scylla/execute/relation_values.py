"""The values that relations compare key columns with.

In: the right side of a relation, the columns on its left. Out: a function of an execution: one value of each column,
or those of an IN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from connector.values import TupleType, freeze, order_key, split_cells, split_fields
from embedded.scylla.cql.tree import InList, Marker, Relation, Term, TupleRelation, TupleTerm
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute.candidates import Tuples, required
from embedded.scylla.execute.run import Run
from embedded.scylla.execute.terms import Scope, compile_in_list, compile_term, element_name
from embedded.scylla.schema import Column

Values = Callable[[Run], tuple[bytes, ...]]


def compile_values(
    value: Term | InList, columns: tuple[Column, ...], together: bool, scope: Scope, listed: bool = False
) -> Values:
    """The values of all columns of a relation, or of one element of an IN's list (`listed`), at one execution."""
    if not together:
        name = columns[0].name
        one = compile_term(cast(Term, value), element_name(name) if listed else name, columns[0].type, scope)
        return lambda run: (required(one(run), name),)
    names = f"({','.join(column.name for column in columns)})"
    if listed:
        names = element_name(names)
    if isinstance(value, Marker):
        type_ = TupleType(tuple(freeze(column.type) for column in columns))
        whole = compile_term(value, names, type_, scope)

        def unpack(run: Run) -> tuple[bytes, ...]:
            cells = split_fields(required(whole(run), columns[0].name), len(columns), type_.cql())
            return tuple(required(cell, column.name) for cell, column in zip(cells, columns))

        return unpack
    if not isinstance(value, TupleTerm) or len(value.items) > len(columns):
        given = len(value.items) if isinstance(value, TupleTerm) else 1
        raise InvalidRequest(f"Expected {len(columns)} elements in value tuple, but got {given}")
    if len(value.items) < len(columns):
        raise InvalidRequest(
            f"Expected {len(columns)} elements in value tuple, but got {len(value.items)}: "
            f"({', '.join('?' for _ in value.items)})"
        )
    parts = [
        (compile_term(item, f"{names}[{at}]", column.type, scope), column.name)
        for at, (item, column) in enumerate(zip(value.items, columns))
    ]
    return lambda run: tuple(required(part(run), name) for part, name in parts)


def compile_candidates(relation: Relation | TupleRelation, columns: tuple[Column, ...], scope: Scope) -> Tuples:
    """The values of an IN, each once, in the order of the columns' types."""
    together = isinstance(relation, TupleRelation)
    orders = [order_key(column.type) for column in columns]
    shown = columns[0].name
    # Partitions differ where their keys' bytes do; equal clustering keys are one row.
    partition = columns[0].kind == "partition_key"

    def placed(values: tuple[bytes, ...]) -> tuple[Any, ...]:
        return tuple(order(raw) for order, raw in zip(orders, values))

    def distinct(found: list[tuple[bytes, ...]]) -> list[tuple[bytes, ...]]:
        if partition:
            return sorted(dict.fromkeys(found), key=placed)
        rows = {placed(values): values for values in reversed(found)}
        return [rows[place] for place in sorted(rows)]

    if isinstance(relation.value, InList):
        items = [compile_values(item, columns, together, scope, listed=True) for item in relation.value.items]
        return lambda run: distinct([item(run) for item in items])
    types = tuple(freeze(column.type) for column in columns)
    element = TupleType(types) if together else types[0]
    names = ",".join(column.name for column in columns)
    name = f"in(({names}))" if together else f"in({names})"
    whole = compile_in_list(relation.value, name, element, scope)

    def unpack(run: Run) -> list[tuple[bytes, ...]]:
        cells = split_cells(required(whole(run), shown))
        if not together:
            return distinct([(required(cell, shown),) for cell in cells])
        found = []
        for cell in cells:
            fields = split_fields(required(cell, shown), len(columns), element.cql())
            found.append(tuple(required(part, column.name) for part, column in zip(fields, columns)))
        return distinct(found)

    return unpack
