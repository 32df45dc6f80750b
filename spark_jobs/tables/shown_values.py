"""Whether values are the same to whoever reads a table, as SQL: what Spark compares otherwise is brought into a form.

In: a type of the source, and columns that show values of it, or the keys of a table. Out: SQL text.
"""

from __future__ import annotations

from connector.values import CqlType, NativeType
from spark_jobs.model import Layout, is_minus_zero, quoted, without_maps


def same_key(layout: Layout, one: str, other: str) -> str:
    named = [(key.type, quoted(key.name)) for key in layout.keys]
    return " AND ".join(same(type_, f"{one}.{name}", f"{other}.{name}") for type_, name in named)


def same(type_: CqlType, one: str, other: str) -> str:
    """Whether two shown values are the same to whoever reads them; null is the same as null."""
    if isinstance(type_, NativeType) and type_.name in ("float", "double"):
        return f"({one} <=> {other} AND {is_minus_zero(one)} <=> {is_minus_zero(other)})"
    return f"{comparable(type_, one)} <=> {comparable(type_, other)}"


def comparable(type_: CqlType, shown: str) -> str:
    """Spark compares no maps, and takes -0.0 for 0.0."""
    if not isinstance(type_, NativeType):
        return f"to_json(named_struct('v', {without_maps(type_, shown)}))"
    return f"CAST({shown} AS string)" if type_.name in ("float", "double") else shown
