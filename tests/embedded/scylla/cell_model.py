"""A small model of a table that keeps every write ever made and works out what is visible only when asked.

In: writes as plain data, in any order. Out: the visible rows at a second. It merges nothing, so it shares no idea with
the storage under test: a value is visible if it wins among the writes of its cell that no deletion covers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Key = tuple[int, int]
"""Partition and clustering key."""


@dataclass(frozen=True)
class Write:
    """A value (None: a tombstone) for one cell; `path` is the element of a multi-cell column."""

    key: Key | int
    column: str
    path: Any
    value: Any
    raw: bytes
    timestamp: int
    expiry: int | None = None


@dataclass(frozen=True)
class Deletion:
    """Covers everything at or before its time: of a collection, a row, clustering keys low..high, a partition."""

    partition: int
    timestamp: int
    low: float = float("-inf")
    high: float = float("inf")
    column: str | None = None
    everything: bool = False


@dataclass
class CellModel:
    writes: list[Write] = field(default_factory=list)
    deletions: list[Deletion] = field(default_factory=list)
    markers: list[tuple[Key, int, int | None]] = field(default_factory=list)

    def _covered(self, key: Key | int, column: str | None, timestamp: int) -> bool:
        partition = key if isinstance(key, int) else key[0]
        for deletion in self.deletions:
            if deletion.partition != partition or timestamp > deletion.timestamp:
                continue
            if deletion.everything:
                return True
            if (
                not isinstance(key, int)
                and deletion.low <= key[1] <= deletion.high
                and deletion.column in (None, column)
            ):
                return True
        return False

    def _cells(self, now: int) -> dict[tuple[Key | int, str, Any], Any]:
        candidates: dict[tuple[Key | int, str, Any], list[Write]] = {}
        for write in self.writes:
            if not self._covered(write.key, write.column, write.timestamp):
                candidates.setdefault((write.key, write.column, write.path), []).append(write)
        visible = {}
        for place, writes in candidates.items():
            winner = max(
                writes,
                key=lambda write: (
                    write.timestamp,
                    write.value is None,
                    write.expiry is not None,
                    write.expiry or 0,
                    write.raw,
                ),
            )
            if winner.value is not None and (winner.expiry is None or winner.expiry > now):
                visible[place] = winner.value
        return visible

    def _marked(self, now: int) -> set[Key]:
        best: dict[Key, tuple[int, bool, int]] = {}
        for key, timestamp, expiry in self.markers:
            if not self._covered(key, None, timestamp):
                candidate = (timestamp, expiry is not None, expiry or 0)
                best[key] = max(best.get(key, candidate), candidate)
        return {key for key, (_, expiring, expiry) in best.items() if not expiring or expiry > now}

    def rows(self, now: int) -> list[tuple[Any, ...]]:
        """`(pk, ck, s, m, l, v, w)` of every visible row, sorted; the map as sorted pairs."""
        cells = self._cells(now)
        rows: dict[Key, dict[str, Any]] = {key: {} for key in self._marked(now)}
        statics: dict[int, Any] = {}
        for (key, column, path), value in cells.items():
            if isinstance(key, int):
                statics[key] = value
            elif path is None:
                rows.setdefault(key, {})[column] = value
            else:
                rows.setdefault(key, {}).setdefault(column, []).append((path, value))
        found = []
        for (partition, clustering), values in rows.items():
            pairs = sorted(values.get("m", [])) or None
            elements = [value for _, value in sorted(values.get("l", []))] or None
            plain = (values.get("v"), values.get("w"))
            found.append((partition, clustering, statics.get(partition), pairs, elements, *plain))
        present = {partition for partition, _ in rows}
        found += [
            (partition, None, value, None, None, None, None)
            for partition, value in statics.items()
            if partition not in present
        ]
        return sorted(found, key=lambda row: (row[0], row[1] is not None, row[1] or 0))
