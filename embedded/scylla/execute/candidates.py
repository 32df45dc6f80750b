"""The restrictions of WHERE on key columns: candidate values or edges, and their combination.

In: made by `restrictions.py`. Out: per execution every choice of candidates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import cast

from embedded.scylla.cql.tree import AnyRelation
from embedded.scylla.errors import InvalidRequest, ServerError
from embedded.scylla.execute.run import Run
from embedded.scylla.results import UNSET
from embedded.scylla.schema import Column, Table

Tuples = Callable[[Run], list[tuple[bytes, ...]]]
"""The candidate values of one or several columns together."""

MOST_COMBINATIONS = 100
LONGEST_KEY = 65535

EdgeTerm = tuple[tuple[Column, ...], Callable[[Run], tuple[bytes, ...]], bool]
"""The columns of an inequality, their values, and whether these are inside."""


@dataclass(slots=True)
class Restriction:
    """What the relations say about a run of columns: candidates (`=`, `IN`) or edges (`<`, `>=`, …)."""

    columns: tuple[Column, ...]
    values: Tuples | None = None
    single: bool = True
    lower: EdgeTerm | None = None
    upper: EdgeTerm | None = None
    relations: list[AnyRelation] = field(default_factory=list)


def required(value: object, name: str) -> bytes:
    """A bound key value, which may be neither null nor unset."""
    if value is None:
        raise InvalidRequest(f"Invalid null value in condition for column {name}")
    if value is UNSET:
        raise InvalidRequest(f"Invalid unset value for column {name}")
    return cast(bytes, value)


def row_key(parts: list[bytes], table: Table) -> tuple[bytes, ...]:
    """A clustering key, fit for dictionaries and not too long."""
    length = sum(map(len, parts)) + (2 * len(parts) if len(parts) > 1 else 0)
    if length > LONGEST_KEY:
        raise InvalidRequest(f"Key length of {length} is longer than maximum of {LONGEST_KEY}")
    return tuple(parts) if table.row_spelling is None else table.row_spelling(tuple(parts))


def combinations(candidates: list[Tuples], run: Run, kind: str) -> list[tuple[tuple[bytes, ...], ...]]:
    """Every choice of one candidate per restriction, as many as ScyllaDB's default settings allow."""
    found = list(product(*[values(run) for values in candidates]))
    if len(found) > MOST_COMBINATIONS:
        raise ServerError(
            f"size of {kind}-key IN list or {kind}-key cartesian product of IN list {len(found)} is greater than "
            f"maximum {MOST_COMBINATIONS}. Use --max-{kind}-key-restrictions-per-query configuration option to "
            "change default setting."
        )
    return found
