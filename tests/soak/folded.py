"""An independent consumer of both formats: it folds the records of each key, and compares what it has with the source.

In: a table with its history, its records in the order of their partitions. Out: every breach as a line. What is held
after a record must be what the source had at that record's time; no record goes back; every row that lives throughout
has its row of the snapshot. Pure.
"""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.soak.histories import NOTHING, TIMED, Cells, Key, SourceTable
from tests.soak.kinds import Kind

Value = dict[str, Any]

#: A value with a time to live may be there or not, so near its end.
_DOUBT_US = 2_000_000


@dataclass
class Topics:
    """``records``: keys and values; ``deletes``: values of the topic of deletes of several rows; ``through_us``: all
    that was written up to then is in them. ``unsure``: partitions whose changes are not all delivered, and the log says
    so, or the clocks: there nobody knows what a consumer holds."""

    legacy: bool
    records: list[tuple[Value, Value]]
    deletes: list[Value]
    through_us: int | None = None
    unsure: set[int] = field(default_factory=set)


def breaches(
    table: SourceTable, topics: Topics, wanted: Mapping[str, tuple[int, int]], seen: Counter[str]
) -> list[str]:
    """``wanted``: by kind of snapshot, how often a row is shown at least and at most. ``seen`` counts what was seen."""
    by_key: dict[Key, list[Value]] = defaultdict(list)
    for key, value in topics.records:
        by_key[_key(table, key)].append(value)
    keys = {*by_key}
    for pk in {*table.start, *table.history}:
        for state in table.states(pk):
            keys |= {(pk, clustering) for clustering in state.rows} | ({(pk, None)} if state.static else set())
    found: list[str] = []
    for each in sorted(keys, key=str):
        judge = _Judge(table, topics, each, seen)
        found += [f"{table.name} {each}: {text}" for text in judge.breaches(by_key.get(each, []), wanted)]
    return found


def _key(table: SourceTable, key: Value) -> Key:
    clustering = tuple(key.get(name) for name in table.clustering)
    return key["pk"], None if None in clustering else clustering  # type: ignore[return-value]


class Folded:
    """What a consumer holds of one row. ``known``: all of it, and not only what changed since some time.

    ``marker``: whether it lives without values; None: no record told it.
    """

    def __init__(self, kinds: Mapping[str, Kind], legacy: bool, known: bool) -> None:
        self._kinds, self._legacy = kinds, legacy
        self.known, self.alive = known, False
        self.marker: bool | None = False
        self._cells: Cells = {}

    def end(self) -> None:
        self.known, self.alive, self.marker, self._cells = True, False, False, {}

    def take(self, value: Value) -> None:
        op = value["op"]
        if op == "d":
            self.end()
            return
        if op == "r":
            # No SELECT tells whether the row was inserted, or lives by its values alone.
            marker = self.marker if self.known and self.alive else None
            self.end()
            self.marker = marker
        elif op == "c":
            self.marker = True
        elif not self._legacy and self.marker is not True:
            # With an image in front of it an insert over a row is an update.
            self.marker = None
        self.alive = True
        if self._legacy:
            self._apply(value["after"])
        else:
            after = value["after"] or {}
            self._cells = {name: kind.plain(after.get(name)) for name, kind in self._kinds.items()}
            if not self.known:
                self.known, self.marker = True, True if op == "c" else None

    def _apply(self, after: Value) -> None:
        for name, kind in self._kinds.items():
            cell = after.get(name)
            if cell is None:
                continue
            written = cell["value"]
            if not kind.has_many_cells:
                self._cells[name] = kind.plain(written)
                continue
            replaced = written is None or written["mode"] == "overwrite"
            there = {} if replaced else dict(self._cells.get(name) or {})
            elements = (written or {}).get("elements")
            if kind.core == "u":
                there |= {part: each["value"] for part, each in (elements or {}).items() if each is not None}
            else:
                there |= {each["key"]: each["value"] for each in elements or ()}
            self._cells[name] = {key: each for key, each in there.items() if each is not None}

    def shown(self) -> Cells:
        """As a SELECT shows it."""
        return {name: self._shown(kind, self._cells.get(name)) for name, kind in self._kinds.items()}

    def _shown(self, kind: Kind, held: Any) -> Any:
        if not kind.has_many_cells or not self._legacy:
            return held
        if not held:
            return None
        if kind.core == "list<int>":
            return [held[each] for each in sorted(held, key=lambda key: (uuid.UUID(key).time, key))]
        return kind.plain(held)


class _Judge:
    """Of one key."""

    def __init__(self, table: SourceTable, topics: Topics, key: Key, seen: Counter[str]) -> None:
        self._table, self._topics, self._seen = table, topics, seen
        self._pk, self._clustering = key
        self._kinds = table.kinds(self._clustering)
        begins = table.start.get(self._pk, NOTHING).row(self._clustering)
        self._folded = Folded(self._kinds, topics.legacy, begins is None)

    def breaches(self, values: Sequence[Value], wanted: Mapping[str, tuple[int, int]]) -> Iterator[str]:
        gone = sorted(each["source"]["ts_us"] for each in self._topics.deletes if self._is_deleted_by(each))
        shown: Counter[str] = Counter()
        last, before = 0, ""
        for value in values:
            us, op = value["source"]["ts_us"], value["op"]
            # A change at the time of a row of the snapshot is in that row.
            if us < last or (us == last and before == "r"):
                yield f"{op} of {us} behind {before} of {last}"
            while gone and gone[0] <= us:
                gone.pop(0)
                self._folded.end()
            last, before = us, op
            self._seen[op] += 1
            if op == "r":
                shown[value["source"]["snapshot"]] += 1
                if value["before"] is not None:
                    yield f"r of {us} has something before it"
            self._folded.take(value)
            yield from self._compared(us, f"{op} of {us}")
        if gone:
            self._folded.end()
        if self._topics.through_us is not None:
            yield from self._compared(self._topics.through_us, "the end")
        lives = self._lives_throughout()
        for kind, (least, most) in wanted.items():
            if not (least if lives else 0) <= shown[kind] <= most:
                always = "lives throughout, and is" if lives else "is"
                yield f"{always} shown {shown[kind]} times by a snapshot ({kind}), not {least} to {most} times"
        if strange := {*shown} - {*wanted}:
            yield f"is shown by snapshots that nobody wanted: {', '.join(sorted(strange))}"

    def _compared(self, us: int, what: str) -> Iterator[str]:
        if not self._folded.known or self._pk in self._topics.unsure:
            return
        self._seen["compared"] += 1
        there = self._table.at(self._pk, us).row(self._clustering)
        mine = self._comparable(self._folded.shown())
        source = self._comparable(there or dict.fromkeys(self._kinds))
        for side in (mine, source):
            number = side.get(TIMED)
            if number is not None:
                end = self._table.ends[number]
                if abs(end - us) < _DOUBT_US:
                    return
                if end < us:
                    side[TIMED] = None
        if mine != source:
            yield f"{what}: folded {mine}, the source had {source}"
            return
        # By its values alone a row lives as long as these, and nobody is told of the end of a time to live.
        if self._clustering is None or TIMED in self._kinds or any(each is not None for each in mine.values()):
            return
        if self._folded.marker is not None and (self._folded.alive and self._folded.marker) != (there is not None):
            yield f"{what}: {'lives' if self._folded.alive else 'does not live'}, in the source it did otherwise"

    def _comparable(self, cells: Cells) -> Cells:
        """The advanced format has no value whose fields are all null."""
        if self._topics.legacy:
            return dict(cells)
        return {
            name: None if self._kinds[name].core == "u" and cell and not any(_given(cell)) else cell
            for name, cell in cells.items()
        }

    def _lives_throughout(self) -> bool:
        return all(
            row is not None
            # Between two statements a value may have ended, and a row with it.
            and (TIMED not in row or any(row[name] is not None for name in row if name != TIMED))
            for row in (state.row(self._clustering) for state in self._table.states(self._pk))
        )

    def _is_deleted_by(self, value: Value) -> bool:
        """By a delete of the partition, or of what lies between two bounds of its rows."""
        if value["partition"]["pk"] != self._pk:
            return False
        if value["kind"] == "partition":
            return True
        if not self._clustering:
            return False
        # Bounds come in the order of storage.
        sign = -1 if self._table.descending else 1
        first = sign * self._clustering[0]
        start, end = (_bound(value[name]) for name in ("start", "end"))
        behind = start is None or first > sign * start or (value["start"]["inclusive"] and first == sign * start)
        before = end is None or first < sign * end or (value["end"]["inclusive"] and first == sign * end)
        return behind and before


def _given(cell: Cells) -> Iterator[bool]:
    return (part is not None for part in cell.values())


def _bound(bound: Value) -> int | None:
    """The first clustering column's: a list in JSON, a record with its length in Avro."""
    values = bound["values"]
    if isinstance(values, Mapping):
        return values["k0"] if bound["length"] else None
    return values[0] if values else None
