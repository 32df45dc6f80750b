"""What is written to a simulated table whose rows a snapshot shows: from before its log, and while it is read.

In: a random source, keys, times. Out: a `History`: every write of a partition with its time, and what they make of it
by any moment, written down independently of the code under test. Writes of one partition never have one time, unless
they are one statement.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from connector.source.chunks import token_of_key
from connector.timeuuid import time_uuid

Kind = Literal["insert", "update", "static", "row", "range", "partition"]

#: The columns, whose values are null or plain.
PLAIN = ("n", "v")
#: The column that goes and comes back, where there is one.
DROPPED = "d"
COLLECTIONS = ("e", "l", "m")
ROWS = 4
FOR_EVER = 1 << 62

_TICKS_2010 = 1_262_304_000 * 10_000_000


@dataclass(frozen=True, slots=True)
class Again:
    """When (ms) a column was dropped and added again, as text; and what it was before."""

    dropped: int
    added: int
    type_before: str

    def is_shown(self, written_ms: float, heard: float) -> bool:
        """Whether who has heard of changes until then shows what was written to the column at a time."""
        is_former = written_ms < self.dropped
        is_alike = not is_former and self.type_before == "text"
        return is_former == (heard < self.dropped) or is_alike


@dataclass(frozen=True, slots=True)
class Elements:
    """``whole``: nothing of what was there before is left. Keys of a list are times."""

    whole: bool
    written: tuple[tuple[str | int | bytes, int], ...] = ()
    removed: tuple[str | int | bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Write:
    """``seen_at``: from which ms on a SELECT shows it. ``ck``: of a range, the row before it; ``last``: its last."""

    pk: int
    us: int
    seen_at: int
    kind: Kind
    ck: int | None = None
    last: int | None = None
    cells: dict[str, str | int | Elements | None] = field(default_factory=dict)
    ttl: int | None = None

    @property
    def until(self) -> int:
        """Lives end at whole seconds, as ScyllaDB counts them."""
        return FOR_EVER if self.ttl is None else (self.us // 1_000_000 + self.ttl) * 1_000_000

    def takes(self, ck: int | None) -> bool:
        """Whether it deletes a row, or the static values."""
        if self.kind == "partition":
            return True
        if ck is None or self.ck is None:
            return False
        return (self.kind == "row" and ck == self.ck) or (self.kind == "range" and self.ck < ck <= (self.last or 0))


@dataclass
class Cells:
    """Of a row, or the static ones: values with the end of their lives, and when they were ``written``. ``marker``:
    until when it lives without any. ``again``: of which column some may be gone."""

    again: Again | None = None
    values: dict[str, tuple[str | int, int]] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    elements: dict[str, dict[str | int | bytes, tuple[int, int]]] = field(default_factory=dict)
    marker: int = 0

    def write(self, write: Write) -> None:
        for name, value in write.cells.items():
            if isinstance(value, Elements):
                there = {} if value.whole else self.elements.get(name, {})
                there |= {key: (each, write.until) for key, each in value.written}
                self.elements[name] = {key: each for key, each in there.items() if key not in value.removed}
            elif value is None:
                self.values.pop(name, None)
                self.elements.pop(name, None)
            else:
                self.values[name], self.written[name] = (value, write.until), write.us
        if write.kind == "insert":
            self.marker = write.until

    def shown(self, us: int, heard: float = math.inf) -> dict[str, object]:
        """What a SELECT shows of it, without nulls, by a node that has heard of changes until then (ms)."""
        found: dict[str, object] = {name: value for name, (value, until) in self.values.items() if until > us}
        if self.again is not None and DROPPED in found and not self.again.is_shown(self.written[DROPPED] / 1000, heard):
            del found[DROPPED]
        for name, elements in self.elements.items():
            there = {key: value for key, (value, until) in elements.items() if until > us}
            if there:
                ordered = sorted(there, key=_order)
                lists = [there[key] for key in ordered]
                found[name] = lists if name == "l" else ordered if name == "e" else {key: there[key] for key in ordered}
        return found

    def ends(self, name: str) -> int:
        return self.values[name][1]


def _order(key: str | int | bytes) -> tuple[int, str | int | bytes]:
    if not isinstance(key, bytes):
        return 0, key
    low, middle, high = struct.unpack(">IHH", key[:8])
    return (high & 0x0FFF) << 48 | middle << 32 | low, key


@dataclass
class Partition:
    """``statics`` and ``rows`` by a moment."""

    statics: Cells
    rows: dict[int, Cells]

    def shown(self, ck: int | None, us: int, heard: float = math.inf) -> dict[str, object] | None:
        """None: there is no such row."""
        cells = self.statics if ck is None else self.rows.get(ck)
        found = None if cells is None else cells.shown(us, heard)
        return None if cells is None or (not found and cells.marker <= us) else found


@dataclass
class History:
    """``log_from_us``: what is older is in no log. ``lives``: some values have a time to live, and with them rows of
    which no SELECT tells that they end. ``plain``: without static columns and lists, whose rows nobody has to cut.
    ``again``: of a column that is dropped in between."""

    log_from_us: int
    lives: bool
    plain: bool = False
    again: Again | None = None
    writes: dict[int, list[Write]] = field(default_factory=dict)

    def add(self, write: Write) -> None:
        self.writes.setdefault(write.pk, []).append(write)

    def partition(self, pk: int, chosen: Callable[[Write], bool]) -> Partition:
        """What the chosen writes make of it."""
        found = Partition(Cells(), {})
        again = self.again
        for write in self.writes.get(pk, ()):
            if not chosen(write):
                continue
            if write.kind == "static":
                found.statics.write(write)
            elif write.kind in ("insert", "update"):
                assert write.ck is not None
                found.rows.setdefault(write.ck, Cells(again)).write(write)
            else:
                if write.takes(None):
                    found.statics = Cells()
                found.rows = {ck: cells for ck, cells in found.rows.items() if not write.takes(ck)}
        return found

    def between(self, ms: float, end_ms: float) -> History:
        """With the writes of some time alone, from ``ms`` on."""
        chosen = {
            pk: [write for write in writes if ms <= write.us // 1000 < end_ms] for pk, writes in self.writes.items()
        }
        return replace(self, writes={pk: writes for pk, writes in chosen.items() if writes})

    def ordered(self) -> History:
        """By time."""
        for writes in self.writes.values():
            writes.sort(key=lambda write: write.us)
        return self


def token_of_pk(pk: int) -> int:
    return token_of_key((struct.pack(">i", pk),))


class Writer:
    """Draws writes; three partitions get half of them. ``added``: columns, and from which ms on they are there;
    ``plain``, ``again``: see `History`; ``doubt``: most statements are such that no SELECT tells what they make of a
    row."""

    def __init__(
        self,
        rng: random.Random,
        partitions: int,
        lives: bool,
        lists: bool,
        added: dict[str, int],
        doubt: bool,
        plain: bool,
        again: Again | None = None,
    ) -> None:
        self.rng, self.lives, self.lists, self.added, self.doubt = rng, lives, lists, added, doubt
        self.plain, self.again = plain, again
        self.keys = rng.sample(range(1_000), partitions)
        self.used: set[tuple[int, int]] = set()

    def from_before(self, us: int) -> Iterable[Write]:
        """Rows with values, with keys alone, with static values alone; a partition that is larger than others."""
        for number, pk in enumerate(self.keys):
            if number % 3 == 0 and not self.plain:
                yield Write(pk, us, 0, "static", cells={"s": f"s{pk}"})
            for ck in range(0 if number % 5 == 4 else 3 * ROWS if number == 1 else ROWS):
                some = {"m": Elements(True, (("a", pk), ("b", 1))), "e": Elements(True, ((1, 1), (2, 1)))}
                lists = {"l": self._list(us, [pk, 1])} if self.lists else {}
                cells = {} if ck == 3 else {"v": f"v{pk}", **(some if ck % 2 else lists)}
                yield Write(pk, us, 0, "insert", ck, cells=cells)
                if ck == 2:
                    yield Write(pk, us + 1, 0, "update", ROWS + 1, cells={"n": ck, "v": "alive by its values"})
                if self.lives and self.rng.random() < 0.3:
                    ends = 3_600 + self.rng.randrange(-1, 15)
                    yield Write(pk, us + 2, 0, "update", ck, cells={"n": 7}, ttl=ends)
                if self.again is not None and ck % 2 == 0:
                    yield Write(pk, us + 3, 0, "update", ck, cells={DROPPED: self._former(ck)})

    def statement(self, us: int, seen_at: int) -> list[Write]:
        """One statement, of one partition; its writes have one time."""
        rng, pk = self.rng, self.rng.choice(self.keys[:3] if self.rng.random() < 0.5 else self.keys)
        while (pk, us) in self.used:
            us += 1
        self.used.add((pk, us))
        ck, number = rng.randrange(ROWS + 2), rng.randrange(1_000)
        ttl = rng.choice([None, None, 1, 3, 8]) if self.lives else None

        def row(kind: Kind, **cells: str | int | Elements | None) -> Write:
            # Of elements no SELECT tells when they end.
            of_elements = any(isinstance(cell, Elements) for cell in cells.values())
            return Write(pk, us, seen_at, kind, ck, cells=dict(cells), ttl=None if of_elements else ttl)

        low = rng.randrange(ROWS)
        kinds: list[Callable[[], list[Write]]] = [
            lambda: [row("update", v=f"w{number}")],
            lambda: [row("update", n=number)],
            lambda: [row("update", v=None)],
            lambda: [row("update", n=None)],
            lambda: [row("update", m=Elements(False, (("c", number),)))],
            lambda: [row("update", m=Elements(False, removed=("a",)))],
            lambda: [row("update", m=Elements(True, (("d", number),)))],
            lambda: [row("update", e=Elements(False, ((number, 1),)))],
            lambda: [row("update", e=Elements(False, removed=(1,)))],
            lambda: [row("insert", v="x", n=number)],
            lambda: [row("insert")],
            lambda: [Write(pk, us, seen_at, "insert", each, cells={"n": number}, ttl=ttl) for each in range(3)],
            lambda: [Write(pk, us, seen_at, "row", ck)],
            lambda: [Write(pk, us, seen_at, "range", low, low + rng.randint(1, 2))],
            lambda: [Write(pk, us, seen_at, "partition")] if number < 300 else [row("update", n=number)],
        ]
        if not self.plain:
            kinds += [
                lambda: [Write(pk, us, seen_at, "static", cells={"s": f"t{number}"}, ttl=ttl)],
                lambda: [Write(pk, us, seen_at, "static", cells={"s": None})],
            ]
        if self.lists:
            kinds += [
                lambda: [row("update", l=self._list(us, [number], whole=False))],
                lambda: [row("update", l=self._list(us, [number], whole=False, front=True))],
                lambda: [row("update", l=self._list(us, [number, 3]))],
            ]
        there = [name for name, added in self.added.items() if added <= min(us // 1000, seen_at) - 200]
        kinds += [lambda name=name: [row("update", **{name: f"a{number}"})] for name in there]  # type: ignore[misc]
        if self.again is not None:
            kinds += 3 * self._of_again(row, us, seen_at, number)
        if self.doubt and rng.random() < 0.6:
            kinds = [
                lambda: [row("update", l=self._list(us, [number], whole=False))],
                lambda: [row("update", l=self._list(us, [number], whole=False, front=True))],
                lambda: [row("update", v=None, n=None, e=None, m=None)],
            ]
        return rng.choice(kinds)()

    def _former(self, number: int) -> str | int:
        """What its first column had."""
        return number if self.again is not None and self.again.type_before == "int" else f"former {number}"

    def _of_again(
        self, row: Callable[..., Write], us: int, seen_at: int, number: int
    ) -> list[Callable[[], list[Write]]]:
        """Statements about the column that is dropped, while there is one."""
        assert self.again is not None
        if max(us // 1000, seen_at) < self.again.dropped:
            value = self._former(number)
        elif min(us // 1000, seen_at) >= self.again.added + 200:
            value = f"d{number}"
        else:
            return []
        return [
            lambda: [row("update", d=value)],
            lambda: [row("update", d=value, n=number)],
            lambda: [row("update", d=None)],
            lambda: [row("insert", d=value, v="y")],
        ]

    def _list(self, us: int, values: list[int], whole: bool = True, front: bool = False) -> Elements:
        first = 2 * _TICKS_2010 - us * 10 - len(values) if front else us * 10
        keys = [time_uuid(first + at, 0x80) for at in range(len(values))]
        return Elements(whole, tuple(zip(keys, values, strict=True)))
