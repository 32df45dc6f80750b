"""What must be true of the topics of a table with rows from before its log, at every record of every key.

In: a table's `History`, its records as a read_committed consumer gets them. Out: every breach as a line: a record
behind a younger one of its key, a state that the row never had at that time, a row of a snapshot too many or too few,
an end that is not what the table holds. A consumer takes an `r` as the whole row, and knows nothing of one before.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from connector.delivery.records import REPEATED_HEADER
from tests.simulation.base_world import COLLECTIONS, DROPPED, FOR_EVER, PLAIN, Again, Cells, History
from tests.simulation.kafka_log import Stored

Key = tuple[int, int | None]
#: A record's value, and what its headers say: what is left of single cells, when they were written, of which table.
Told = tuple[dict[str, Any], dict[str, int], dict[str, int], bytes | None]

# The ends of lives are whole seconds, told in seconds from a moment that is none.
UNSURE_US = 2_000_000

#: Names of the key's columns, also those of other times and other tables.
KEYS = ("pk", "ck", "c2", "c3")


@dataclass
class Seen:
    """What a consumer holds of a row. ``known``: it is all of it; ``marker``: whether it lives without values; None:
    who knows. ``again``: of a column of which nothing is held from before it was dropped."""

    known: bool
    again: Again | None = None
    lives: bool = False
    marker: bool | None = False
    values: dict[str, tuple[Any, int]] = field(default_factory=dict)
    elements: dict[str, dict[Any, Any]] = field(default_factory=dict)

    def end(self) -> None:
        self.known, self.lives, self.marker = True, False, False
        self.values, self.elements = {}, {}

    def take(self, value: dict[str, Any], ends: dict[str, int]) -> None:
        if value["op"] == "d":
            self.end()
            return
        if value["op"] == "r":
            marker = self.marker if self.known and self.lives else None
            self.end()
            self.marker = marker
        elif value["op"] == "c":
            self.marker = True
        self.lives = True
        second, ttl = value["source"]["ts_us"] // 1_000_000, value["source"]["ttl"]
        for name, cell in value["after"].items():
            if name in KEYS or cell is None:
                continue
            if name == DROPPED and self.again is not None and value["source"]["ts_us"] < self.again.dropped * 1000:
                continue
            if name in COLLECTIONS:
                self._take_elements(name, cell["value"])
            else:
                left = ends.get(name, ttl)
                self.values[name] = cell["value"], FOR_EVER if not left else (second + left) * 1_000_000

    def _take_elements(self, name: str, written: dict[str, Any] | None) -> None:
        there = self.elements.setdefault(name, {})
        if written is None or written["mode"] == "overwrite":
            there.clear()
        for each in (written or {}).get("elements") or ():
            there[each["key"]] = each["value"]

    def shown(self, name: str) -> tuple[Any, int]:
        if name not in COLLECTIONS:
            return self.values.get(name, (None, FOR_EVER))
        there = {key: value for key, value in self.elements.get(name, {}).items() if value is not None}
        if name == "l":
            return [there[key] for key in sorted(there, key=_time_of)] or None, FOR_EVER
        return sorted(there) if name == "e" and there else there or None, FOR_EVER


def _time_of(key: str) -> tuple[str, str]:
    low, middle, high, _, _ = key.split("-")
    return high[1:] + middle + low, key


def breaches(
    history: History,
    records: Sequence[Stored],
    deletes: Sequence[Stored],
    *,
    given_up: Collection[int],
    asked: int,
    now_us: int,
    expired: bool = False,
    ended: bool = False,
) -> list[str]:
    """``given_up``: partitions of which some write is in no topic. ``asked``: how many snapshots somebody asked for.
    ``expired``: some writes were in no log any more, and a snapshot makes up for them: what lives at the end is there.
    ``ended``: the table is no more, and of its last records nobody knows which there are.
    """
    of_keys: dict[Key, list[Told]] = defaultdict(list)
    # By another name of its column a key may be in another partition: what has the new name comes later.
    for record in sorted(records, key=lambda record: b'"c2"' in (record.key or b"")):
        headers = dict(record.headers)
        if record.value is None or REPEATED_HEADER in headers:
            continue
        key = json.loads(record.key or b"")
        ends, written = (json.loads(headers.get(f"scylla.cell.{what}", b"{}")) for what in ("ttls", "timestamps"))
        of_table = headers.get("scylla.table.id")
        of_keys[key["pk"], _clustering(key)].append((json.loads(record.value), ends, written, of_table))
    several = [json.loads(record.value) for record in deletes if record.value is not None]
    found: list[str] = []
    keys = {*of_keys, *((write.pk, write.ck) for each in history.writes.values() for write in each if write.cells)}
    for key in sorted(keys, key=str):
        gone = sorted(each["source"]["ts_us"] for each in several if _covers(each, key))
        story = _Story(history, key, of_keys[key], gone, asked, now_us, ended)
        lines = () if key[0] in given_up else story.last() if expired else story.all()
        found += [f"{key}: {line}" for line in (story.order(), *lines) if line]
    return found


class _Story:
    """Of one key."""

    def __init__(
        self,
        history: History,
        key: Key,
        records: list[Told],
        gone: list[int],
        asked: int,
        now_us: int,
        ended: bool,
    ) -> None:
        self._history, (self._pk, self._ck), self._asked = history, key, asked
        self._records, self._gone, self._now_us, self._ended = records, gone, now_us, ended

    def order(self) -> str | None:
        last, before = 0, None
        for value, *_ in self._records:
            at = value["source"]["ts_us"]
            if at < last or (at == last and before == "r"):
                return f"{value['op']} of {at} behind {before} of {last}"
            last, before = at, value["op"]
        return None

    def all(self) -> Iterator[str]:
        old = self._source(0)
        seen = Seen(known=not (old and old.shown(0, 0) is not None), again=self._history.again)
        gone = list(self._gone)
        for value, ends, written, _ in self._records:
            at = value["source"]["ts_us"]
            while gone and gone[0] <= at:
                gone.pop(0)
                seen.end()
            seen.take(value, ends)
            yield from self._compared(seen, at, f"{value['op']} of {at}")
            yield from self._dated(value, written, at)
        if gone:
            seen.end()
        if not self._ended:
            yield from self._compared(seen, self._now_us, "the end")
        yield from self._rows()

    def last(self) -> Iterator[str]:
        """Of rows that are gone nobody tells, and whether one lives by its key alone, whoever missed its insert."""
        source = self._source(self._now_us)
        if source is None or (not source.shown(self._now_us) and source.marker <= self._now_us):
            return
        seen, gone = Seen(known=True, again=self._history.again), list(self._gone)
        for value, ends, *_ in self._records:
            while gone and gone[0] <= value["source"]["ts_us"]:
                gone.pop(0)
                seen.end()
            seen.take(value, ends)
            seen.marker = None if value["op"] == "r" else seen.marker
        if gone:
            seen.end()
        yield from self._compared(seen, self._now_us, "the end")

    def _source(self, us: int) -> Cells | None:
        partition = self._history.partition(self._pk, lambda write: write.us <= (us or self._history.log_from_us))
        return partition.statics if self._ck is None else partition.rows.get(self._ck)

    def _dated(self, value: dict[str, Any], written: dict[str, int], at: int) -> Iterator[str]:
        source = self._source(at)
        for name, us in source.written.items() if source and value["op"] == "r" else ():
            cell = value["after"].get(name)
            if cell is not None and cell["value"] is not None and written.get(name) != us:
                yield f"r of {at} says that {name} was written at {written.get(name)}, that was at {us}"

    def _compared(self, seen: Seen, at: int, what: str) -> Iterator[str]:
        if not seen.known:
            return
        source = self._source(at) or Cells()
        names = (
            ("s",) if self._ck is None else (*PLAIN, *COLLECTIONS, *(each for each in source.values if each[0] == "w"))
        )
        again = self._history.again
        if again is not None and at >= again.added * 1000:
            names = (*names, DROPPED)
        nothing = True
        for name in names:
            (mine, my_end), (true, end) = seen.shown(name), self._true(source, name)
            if any(abs(each - at) < UNSURE_US for each in (my_end, end)):
                return
            mine, true = mine if my_end > at else None, true if end > at else None
            nothing = nothing and mine is None
            if mine != true:
                yield f"{what} leaves {name} {mine}, it was {true}"
        if self._ck is None or not nothing or self._history.lives:
            return
        lives = source.marker > at
        if seen.marker is not None and (seen.marker and seen.lives) != lives:
            yield f"{what} leaves {'a row without values' if not lives else 'no row'}"
        if seen.marker is None and lives != seen.lives and lives:
            yield f"{what} leaves no row"

    @staticmethod
    def _true(source: Cells, name: str) -> tuple[Any, int]:
        if name in COLLECTIONS:
            return source.shown(FOR_EVER - 1).get(name), FOR_EVER
        again = source.again
        if name == DROPPED and again is not None and source.written.get(name, 0) < again.dropped * 1000:
            return None, FOR_EVER
        return source.values.get(name, (None, FOR_EVER))

    def _rows(self) -> Iterator[str]:
        rows = [(value["source"]["snapshot"], table) for value, *_, table in self._records if value["op"] == "r"]
        throughout = not self._ended and self._lives_throughout()
        for kind, most in (("true", 1), ("incremental", self._asked)):
            # A partition that is under way when its table is dropped and comes back is begun anew.
            of_tables = Counter(table for of, table in rows if of == kind)
            if max(of_tables.values(), default=0) > most or (throughout and of_tables.total() < most):
                lives = "lives throughout, and " if throughout else ""
                yield f"{lives}has {of_tables.total()} rows of {most} snapshots {kind}"

    def _lives_throughout(self) -> bool:
        again = self._history.again
        times = {0, *(write.us for write in self._history.writes[self._pk])}
        for at in sorted(times if again is None else {*times, again.dropped * 1000}):
            source = self._source(at)
            if source is None:
                return False
            ends = [self._true(source, name) for name in source.values]
            lasts = source.marker == FOR_EVER or any(value is not None and end == FOR_EVER for value, end in ends)
            if not lasts and not source.shown(FOR_EVER - 1):
                return False
        return True


def _covers(value: dict[str, Any], key: Key) -> bool:
    pk, ck = key
    if value["partition"]["pk"] != pk:
        return False
    if value["kind"] == "partition":
        return True
    return ck is not None and bool(int(value["start"]["values"][0]) < ck <= int(value["end"]["values"][0]))


def _clustering(key: dict[str, Any]) -> int | None:
    """By whatever name, and in whatever type."""
    found = next((value for name, value in key.items() if name != "pk"), None)
    return None if found is None else int(found)
