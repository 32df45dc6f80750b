"""Landed rows whose key columns are stored in another way since the source has changed their types.

In: a landed table, its layout of before and the new one. Out: its state with the keys, identities, buckets and ranges
that the new layout looks for, in one commit. What the old layout looks for stays beside it, so a reader who has not
heard of the new one goes on, and a job that ends in the middle does the same again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from connector.values import NativeType
from spark_jobs.decode import made_identity
from spark_jobs.functions import is_blob, order_bytes, register_functions, register_tie, tie_sql
from spark_jobs.model import TEXTS, WHOLE_NUMBERS, Key, Layout, adapted, bucket_of, moved, quoted, same_order
from spark_jobs.tables import MARK_PART, LandedTable

_RANGES = "scylla_cdc_moved_ranges"


def move_keys(landed: LandedTable, before: Layout, after: Layout) -> None:
    """Everything must be merged."""
    session = landed.session
    landed.widen_for(after)
    register_functions(session, after)
    changed = {new.place: (old, new) for old, new in moved(before, after)}
    for old, new in changed.values():
        if is_blob(new.type):
            register_tie(session, old.type)
    values = {place: _moved_value(*pair) for place, pair in changed.items()}
    if after.clustering and after.ranges != before.ranges:
        _register_ranges(session, before, after)
    made: dict[str, str] = {}
    for place, (_, new) in changed.items():
        made[new.value] = values[place]
        if new.identity != new.value:
            made[new.identity] = made_identity(new, values[place])
        if new.many_spellings:
            known = f"coalesce({quoted('s_' + place)}, base, deleted, 0L)"
            made[f"s_{place}"] = f"CASE WHEN {values[place]} IS NOT NULL THEN {known} END"
    if after.clustering and after.ranges != before.ranges:
        kept = quoted(after.ranges)
        made[after.ranges] = f"coalesce({kept}, {_RANGES}({quoted(before.ranges)}))"
    relation = landed.state.relation
    names = session.table(relation).columns
    columns = [f"{made[name]} AS {quoted(name)}" if name in made else quoted(name) for name in names]
    rows = f"SELECT {', '.join(columns)} FROM {relation} WHERE bucket <> {MARK_PART}"
    placed = [f"{bucket_of(after)} AS bucket" if name == "bucket" else quoted(name) for name in names]
    whole = f"SELECT {', '.join(placed)} FROM ({rows}) AS rows WHERE kind <> 0"
    landed.state.rewrite(after, lambda: session.sql(whole))


def _moved_value(old: Key, new: Key) -> str:
    """The key as it is stored now, of a row that has only the old one or has both already."""
    older = [adapted(each.type, old.type, quoted(each.value)) or "NULL" for each in old.follows]
    was = f"coalesce({', '.join([quoted(old.value), *older])})"
    value = tie_sql(old.type, was) if is_blob(new.type) else adapted(old.type, new.type, was)
    assert value is not None
    return f"coalesce({quoted(new.value)}, {value})"


def _order(old: Key, new: Key) -> Callable[[Any], Any]:
    """What a range's bound becomes."""
    if same_order(old, new):
        return lambda bound: bound
    assert isinstance(old.type, NativeType) and isinstance(new.type, NativeType)
    if old.type.name in TEXTS:
        return lambda bound: bound.encode()
    if new.type.name in WHOLE_NUMBERS:
        return lambda bound: bound
    made = order_bytes(new.type)
    return lambda bound: made(str(bound))


class _Ranges:
    """Ranges of the old keys as ranges of the new ones; runs on Python workers."""

    def __init__(self, keys: tuple[tuple[Key, Key], ...]) -> None:
        self._keys = keys
        self._orders: list[Callable[[Any], Any]] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _Ranges, (self._keys,)

    def __call__(self, ranges: Any) -> Any:
        if ranges is None:
            return None
        if self._orders is None:
            self._orders = [_order(*pair) for pair in self._keys]
        return [(tuple(self._bound(bound) for bound in each["i"]), each["t"]) for each in ranges]

    def _bound(self, bound: Any) -> Any:
        assert self._orders is not None
        moved = (None if key is None else order(key) for order, key in zip(self._orders, bound["o"], strict=True))
        return tuple(moved), bound["l"], bound["i"]


def _register_ranges(session: SparkSession, before: Layout, after: Layout) -> None:
    pairs = tuple(zip(before.clustering, after.clustering))
    session.udf.register(_RANGES, _Ranges(pairs), f"array<struct<i:{after.range_type},t:bigint>>")
