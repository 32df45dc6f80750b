"""A consumer who knows nothing but a topic: it folds each key's records in their order, and has the table.

In: the records of one table as `Event`s, the keys from before the log, the table's rows at the end. Out: whatever
breaks the promise, a line each: a key whose records go back in time, a row of the snapshot that denies what was told
before it, one too many or too few of them, a fold that is not what `SELECT *` shows.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from embedded.demo.schema import Table

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Event:
    """A record: of a row, or of a delete of several. ``key``: of the row; of the partition if it is about several."""

    at_us: int
    key: Key
    value: Mapping[str, Any]


@dataclass
class _Cell:
    """A value, or a collection's elements, with the time of their write."""

    at_us: int
    value: Any


@dataclass
class _Row:
    """A key as its records have made it. ``lives``: an insert made it, and not its values alone."""

    cells: dict[str, _Cell] = field(default_factory=dict)
    lives: bool = False
    deleted_us: int = -1
    last_us: int = -1
    snapshots: int = 0
    survived: bool = True


@dataclass
class Folded:
    """``snapshots``: rows of the snapshot; ``breaches``: of the promise."""

    snapshots: int
    breaches: list[str]


def fold(
    table: Table,
    events: Iterable[Event],
    deletes: Iterable[Event],
    before: set[Key],
    now: Mapping[Key, Mapping[str, Any]],
) -> Folded:
    """``events``: each key's in their order; ``deletes``: those of several rows, in any; ``before``: the keys of what
    is older than the log; ``now``: the rows at the end, as `recorded` shows them."""
    found: list[str] = []
    gone: dict[Key, list[Event]] = defaultdict(list)
    for event in sorted(deletes, key=lambda event: event.at_us):
        gone[event.key].append(event)
    records: dict[Key, list[Event]] = defaultdict(list)
    for event in events:
        records[event.key].append(event)
    width = len(table.partition)
    rows: dict[Key, _Row] = {}
    for key in {*records, *before}:
        row = rows[key] = _Row()
        mine = [event for event in gone[key[:width]] if _covers(event.value, key[width:])]
        found += (f"{key}: {text}" for text in _folded(row, records[key], mine))
        if row.snapshots > 1 or (key in before and row.survived and row.snapshots != 1):
            found.append(f"{key}: {row.snapshots} rows of the snapshot")
    found += _differences(table, _selected(width, rows), now)
    return Folded(sum(row.snapshots for row in rows.values()), found)


def _folded(row: _Row, events: Sequence[Event], deletes: list[Event]) -> Iterator[str]:
    for event in events:
        while deletes and deletes[0].at_us <= event.at_us:
            _delete(row, deletes.pop(0).at_us)
        if event.at_us < row.last_us:
            yield f"a record of {event.at_us} behind one of {row.last_us}"
        row.last_us = event.at_us
        op, after = event.value["op"], event.value["after"]
        if op == "d":
            _delete(row, event.at_us)
        elif op == "r":
            row.snapshots += 1
            before, row.cells = row.cells, {}
            _write(row, event.at_us, after)
            row.lives = True
            yield from _denied(before, row.cells)
        elif event.at_us > row.deleted_us:
            row.lives |= op == "c"
            _write(row, event.at_us, after)
    for delete in deletes:
        _delete(row, delete.at_us)


def _delete(row: _Row, at_us: int) -> None:
    row.cells, row.lives, row.deleted_us, row.survived = {}, False, at_us, False


def _write(row: _Row, at_us: int, after: Mapping[str, Any]) -> None:
    for name, cell in after.items():
        if not isinstance(cell, dict):
            continue
        value, known = cell["value"], row.cells.get(name)
        if isinstance(value, dict):
            value = _elements({} if known is None or value["mode"] == "overwrite" else known.value, value["elements"])
        elif known is not None and known.at_us == at_us and known.value is not None:
            # Of two writes at one time the greater value counts.
            value = known.value if value is None else max(value, known.value)
        row.cells[name] = _Cell(at_us, value)


def _elements(known: Mapping[str, Any] | None, told: Any) -> dict[str, Any]:
    """By their keys, without those that were removed; of a user type's fields by their names."""
    if isinstance(told, dict):
        changes = {name: cell["value"] for name, cell in told.items() if cell is not None}
    else:
        changes = {each["key"]: each["value"] for each in told}
    return {key: value for key, value in {**(known or {}), **changes}.items() if value is not None}


def _denied(before: Mapping[str, _Cell], shown: Mapping[str, _Cell]) -> Iterator[str]:
    """What was told and not taken back since is in the whole row. Elements of lists have other keys there."""
    for name, cell in before.items():
        there = shown[name].value if name in shown else None
        if isinstance(cell.value, dict):
            kept = set(map(str, cell.value.values())) <= set(map(str, (there or {}).values()))
        else:
            kept = cell.value == there
        if not kept:
            yield f"the snapshot shows {name} = {there}, and {cell.value} was told before"


def _covers(delete: Mapping[str, Any], clustering: Key) -> bool:
    """A partition with all that is in it, or rows between two bounds of the clustering key."""
    if delete["kind"] == "partition":
        return True
    if not clustering or clustering[0] is None:
        return False
    start, end = delete["start"], delete["end"]
    from_, to = tuple(start["values"]), tuple(end["values"])
    low, high = clustering[: len(from_)], clustering[: len(to)]
    return bool(
        (low > from_ or (start["inclusive"] and low == from_)) and (high < to or (end["inclusive"] and high == to))
    )


def _selected(width: int, rows: Mapping[Key, _Row]) -> dict[Key, dict[str, Any]]:
    """As `SELECT *` would show them: with the static cells of their partition, which alone are a row as well."""
    found: dict[Key, dict[str, Any]] = {}
    statics: dict[Key, dict[str, Any]] = {}
    for key, row in rows.items():
        cells = {name: cell.value for name, cell in row.cells.items() if cell.value not in (None, {})}
        if len(key) > width and key[width] is None:
            statics[key] = cells
        elif row.lives or cells:
            found[key] = cells
    held = {key[:width] for key in found}
    alone = {key: cells for key, cells in statics.items() if cells and key[:width] not in held}
    of_partition = {key[:width]: cells for key, cells in statics.items()}
    return alone | {key: {**of_partition.get(key[:width], {}), **cells} for key, cells in found.items()}


def _differences(
    table: Table, folded: Mapping[Key, Mapping[str, Any]], now: Mapping[Key, Mapping[str, Any]]
) -> Iterator[str]:
    for key in {*folded, *now}:
        one, other = folded.get(key), now.get(key)
        if one is None or other is None:
            yield f"{key}: {'only in the topic' if other is None else 'not in the topic'}"
            continue
        for name in other.keys() - set(table.key):
            told, there = one.get(name), other[name]
            if isinstance(there, list) and isinstance(told, dict):
                told = [told[key] for key in sorted(told, key=lambda key: uuid.UUID(key).time)]
            if told != there:
                yield f"{key}: {name} is {told} by the topic, and {there}"


def recorded_keys(table: Table, rows: Iterable[Mapping[str, Any]]) -> set[Key]:
    """Of what a topic has records of: rows, and partitions with static values."""
    found: set[Key] = set()
    for row in rows:
        partition, clustering = (tuple(row[name] for name in part) for part in (table.partition, table.clustering))
        found.add((*partition, *clustering))
        if any(row[name] is not None for name in table.statics):
            found.add((*partition, *[None] * len(clustering)))
    return found
