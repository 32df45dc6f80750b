"""What of a published table may be another now: rows that changes speak of, and all of a partition where need be.

In: a landed table, and since when. Out: a frame of partitions and rows; relations by which rows are picked, of what has
landed and of what is published alike. A change of a row concerns no other one, unless its partition has statics, which
show alone where no row does; a static, a range or a partition's delete concerns all of its partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from spark_jobs.model import (
    PARTITION,
    Key,
    Layout,
    ended_change,
    ended_rows,
    identities,
    key_columns,
    present,
    quoted,
)
from spark_jobs.named_frames import named
from spark_jobs.tables.checkpoints import checkpointed
from spark_jobs.tables.landed_table import Among, LandedTable
from spark_jobs.tables.shown_values import same

_PARTED, _WHOLE, _CHANGES = "parted", "whole", "changes"
"""Whether it speaks of a partition, not of a row of it; whether all of that may be another; how many changes."""
_MOST_ROWS, _MOST_BYTES = 100_000, 8 << 20
"""Of so many changed rows each task is told. More are worth a look at all rows of their partitions."""


@dataclass(frozen=True)
class Picked:
    """Rows of partitions, or single ones, by a relation with their identities and their keys as they are shown."""

    relation: str
    keys: tuple[Key, ...]

    def among(self) -> Among:
        return Among(self.relation, tuple(key.identity for key in self.keys))

    def shown(self, rows: str) -> str:
        """Those of published rows."""
        each = [same(key.type, f"a.{_shown(key)}", f"o.{quoted(key.name)}") for key in self.keys]
        if any(key.clustering for key in self.keys):
            each.append(f"NOT a.{_PARTED}")
        return f"SELECT o.* FROM ({rows}) AS o LEFT SEMI JOIN {self.relation} AS a ON {' AND '.join(each)}"


@dataclass(frozen=True)
class Affected:
    """What may be another: partitions and, where ``keys`` are all of the table's, their rows beside them."""

    rows: DataFrame
    keys: tuple[Key, ...]

    def parts(self, layout: Layout, at_most: int) -> list[Row]:
        """Some of the partitions: the bucket, the first column of the key, whether all of it may be another, and how
        many changes it had."""
        chosen = self.rows.where(_PARTED).select("bucket", quoted(layout.partition[0].identity), _WHOLE, _CHANGES)
        found: list[Row] = chosen.limit(at_most).collect()
        return found

    def picked(self, stack: ExitStack, layout: Layout, few: Sequence[Row]) -> list[Picked]:
        """By what to pick rows of which something may be another; ``few`` are all the partitions that there are, unless
        these are too many."""
        parts, partition = self.rows.where(_PARTED), layout.partition
        if not few:
            return [_named(stack, parts, partition)]
        whole = [row for row in few if row[_WHOLE]]
        if self.keys == partition or len(whole) == len(few) or sum(row[_CHANGES] for row in few) > _MOST_ROWS:
            return [_named(stack, F.broadcast(parts), partition)]
        if not whole:
            # A partition's own row, which has no clustering columns, is among them.
            return [_named(stack, F.broadcast(self.rows), self.keys)]
        wholly = F.broadcast(parts.where(_WHOLE))
        others = self.rows.join(wholly, identities(layout, partition_only=True), "left_anti")
        return [_named(stack, wholly, partition), _named(stack, F.broadcast(others), self.keys)]


def affected(
    stack: ExitStack, landed: LandedTable, layout: Layout, segments: tuple[int, int], span: tuple[int, int]
) -> Affected:
    """Of changes in the segments after the first one up to the second, and of what ended between two seconds."""
    log, keys = landed.sink.relation(landed.changelog), _keys(landed, layout, segments)
    columns = ", ".join(["bucket", "kind", *map(quoted, key_columns(layout))])
    changed = f"segment > {segments[0]} AND segment <= {segments[1]} AND bucket IS NOT NULL"
    texts = [f"SELECT {columns} FROM {log} WHERE {changed}"]
    if layout.expiring:
        texts.append(f"SELECT {columns} FROM ({landed.tail_text()}) AS tail WHERE {ended_change(*span)}")
        texts.append(f"SELECT {columns} FROM ({ended_rows(layout, landed.state.rows(layout), *span)}) AS ended")
    parts = ", ".join(["bucket", *map(quoted, identities(layout, partition_only=True))])
    clustering = "".join(f", {quoted(key.identity)}" for key in keys if key.clustering)
    grouped = f"GROUPING SETS (({parts}), ({parts}{clustering}))" if clustering else parts
    told = [
        f"any_value({present(key.type, quoted(key.value), layout.declared.get(key.name))}) AS {_shown(key)}"
        for key in keys
    ]
    told += [f"bool_or(kind = {PARTITION}) AS {_WHOLE}", f"count(*) AS {_CHANGES}"]
    told.append(f"{'grouping_id() > 0' if clustering else 'true'} AS {_PARTED}")
    changes = " UNION ALL ".join(texts)
    found = landed.session.sql(
        f"SELECT {parts}{clustering}, {', '.join(told)} FROM ({changes}) AS changed GROUP BY {grouped}"
    )
    return Affected(stack.enter_context(checkpointed(found)), keys)


def _keys(landed: LandedTable, layout: Layout, segments: tuple[int, int]) -> tuple[Key, ...]:
    """The columns that tell apart what changes concern: of rows only where what is shown of them follows from their own
    identity, and all that landed of them has it in one place."""
    if layout.has_statics or any(key.many_spellings or key.older for key in layout.clustering):
        return layout.partition
    sizes = landed.sink.sizes(landed.changelog) if layout.clustering else {}
    new = sum(size for segment, size in sizes.items() if segments[0] < segment <= segments[1])
    return layout.keys if new <= _MOST_BYTES else layout.partition


def _shown(key: Key) -> str:
    """The column of a key as it is shown. A later place of it has a $ in its name, as c0$v2."""
    return quoted(f"shown_{key.place}")


def _named(stack: ExitStack, rows: DataFrame, keys: Sequence[Key]) -> Picked:
    return Picked(stack.enter_context(named(rows, "affected")), tuple(keys))
