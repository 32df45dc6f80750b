"""A random table, statements that change it, and every state that the source had in between.

In: a source of randomness, a session. Out: a `SourceTable` whose ``history`` has, of each partition, what a SELECT
showed behind each statement: whatever a snapshot shows of a row must be one of these. Only its own thread writes to it.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cassandra.cluster import Session

from tests.soak.kinds import KINDS, USER_TYPE, Kind
from tests.worker.repeated import Repeated

Cells = dict[str, Any]
#: The values of clustering columns; a static row has None instead.
Clustering = tuple[int, ...]
Key = tuple[int, Clustering | None]

#: A column whose values are written with a time to live; each value is a number of its own.
TIMED = "x"
_SECOND_US = 1_000_000


@dataclass(frozen=True)
class Partition:
    """What a SELECT shows of one."""

    rows: Mapping[Clustering, Cells] = field(default_factory=dict)
    static: Cells | None = None

    def row(self, clustering: Clustering | None) -> Cells | None:
        return self.static if clustering is None else self.rows.get(clustering)


NOTHING = Partition()


@dataclass(frozen=True)
class Written:
    """``text`` was written at ``at_us`` by its own word, and answered ``late_seconds`` later; then this was there."""

    at_us: int
    late_seconds: float
    state: Partition
    text: str


@dataclass
class SourceTable:
    """``skew_us``: how far the clock of who writes is off."""

    draw: random.Random
    keyspace: str
    skew_us: int = 0
    columns: dict[str, Kind] = field(init=False)
    statics: dict[str, Kind] = field(init=False, default_factory=dict)
    partitions: int = field(init=False)
    start: dict[int, Partition] = field(default_factory=dict)
    history: dict[int, list[Written]] = field(default_factory=lambda: defaultdict(list))
    #: When the values of the column with times to live end, in µs.
    ends: dict[int, int] = field(default_factory=dict)
    _last_us: int = 0

    def __post_init__(self) -> None:
        draw = self.draw
        self.clustering = [f"k{at}" for at in range(draw.choice([0, 1, 1, 1, 2]))]
        self.descending = bool(self.clustering) and draw.random() < 0.3
        self.columns = {f"c{at}": draw.choice(KINDS) for at in range(draw.randint(1, 5))}
        self._settable = list(self.columns)
        if self.clustering and draw.random() < 0.6:
            self.statics = {f"s{at}": draw.choice(KINDS) for at in range(draw.randint(1, 2))}
        if draw.random() < 0.4:
            self.columns[TIMED] = Kind("int")
        self.partitions = draw.randint(15, 40)

    @property
    def name(self) -> str:
        return f"{self.keyspace}.t"

    def kinds(self, clustering: Clustering | None) -> dict[str, Kind]:
        """The columns of a row, or of the static row."""
        return self.statics if clustering is None else self.columns

    def create(self, session: Session) -> None:
        """Without a log."""
        session.execute(f"CREATE TYPE {self.keyspace}.{USER_TYPE}")
        columns = [f"{name} int" for name in ("pk", *self.clustering)]
        columns += [f"{name} {kind.spelling}" for name, kind in self.columns.items()]
        columns += [f"{name} {kind.spelling} static" for name, kind in self.statics.items()]
        key = ", ".join(("pk", *self.clustering))
        order = ", ".join(f"{name} {'ASC' if at else 'DESC'}" for at, name in enumerate(self.clustering))
        session.execute(
            f"CREATE TABLE {self.name} ({', '.join(columns)}, PRIMARY KEY ({key}))"
            + (f" WITH CLUSTERING ORDER BY ({order})" if self.descending else "")
        )

    # -- what is there ---------------------------------------------------------------------------------------

    def selected(self, session: Session, pk: int | None = None) -> dict[int, Partition]:
        rows: dict[int, dict[Clustering, Cells]] = defaultdict(dict)
        static: dict[int, Cells | None] = {}
        for row in session.execute(f"SELECT * FROM {self.name}" + ("" if pk is None else f" WHERE pk = {pk}")):
            cells = row._asdict()
            shared = {name: kind.plain(cells[name]) for name, kind in self.statics.items()}
            static[row.pk] = shared if any(each is not None for each in shared.values()) else None
            clustering = tuple(cells[name] for name in self.clustering)
            # A partition that has static values alone is shown as a row without clustering columns.
            if None not in clustering:
                rows[row.pk][clustering] = {name: kind.plain(cells[name]) for name, kind in self.columns.items()}
        return {each: Partition(rows[each], static[each]) for each in static}

    def states(self, pk: int) -> list[Partition]:
        return [self.start.get(pk, NOTHING), *(each.state for each in self.history.get(pk, ()))]

    def at(self, pk: int, us: int) -> Partition:
        """As it was after all that was written up to then."""
        found = self.start.get(pk, NOTHING)
        for each in self.history.get(pk, ()):
            if each.at_us > us:
                break
            found = each.state
        return found

    # -- what changes it -------------------------------------------------------------------------------------

    def fill(self, session: Session, delete: bool) -> None:
        """Rows of every sort; ``delete``: some of them are changed and deleted again."""
        draw = self.draw
        for pk in range(self.partitions):
            if self.statics and draw.random() < 0.4:
                self._write(session, pk, self._static_update(pk))
            if draw.random() < 0.15:
                continue
            for _ in range(draw.randint(1, 4) if self.clustering else 1):
                self._write(session, pk, self._insert(pk, whole=draw.random() < 0.5))
            if delete and draw.random() < 0.5:
                self._write(session, pk, self._change(pk, many=False))

    def forget(self, session: Session) -> None:
        """What is there now is what it begins with."""
        self.history.clear()
        self.start = self.selected(session)

    def change(self, session: Session) -> None:
        """One random statement; half of them about three partitions."""
        pk = self.draw.randrange(3) if self.draw.random() < 0.5 else self.draw.randrange(self.partitions + 5)
        self._write(session, pk, self._change(pk))

    def _write(self, session: Session, pk: int, text: str) -> None:
        # No two at one time: which of them wins is for others to judge.
        self._last_us = us = max(self._last_us + 1, time.time_ns() // 1000 + self.skew_us)
        if " TTL " in text:
            lives = int(text.partition(" TTL ")[2].split()[0])
            self.ends[len(self.ends)] = (us // _SECOND_US + lives) * _SECOND_US
        text = text.replace("%TIME%", str(us))
        session.execute(text)
        late = (time.time_ns() // 1000 - us) / _SECOND_US
        self.history[pk].append(Written(us, late, self.selected(session, pk).get(pk, NOTHING), text))

    def _change(self, pk: int, many: bool = True) -> str:
        """``many``: also deletes of several rows."""
        draw, where = self.draw, f"pk = {pk}"
        row = self._row()
        one = where + "".join(f" AND {name} = {value}" for name, value in zip(self.clustering, row, strict=True))
        update, delete = f"UPDATE {self.name} USING TIMESTAMP %TIME%", f"DELETE FROM {self.name} USING TIMESTAMP %TIME%"
        chosen = draw.random()
        if TIMED in self.columns and chosen < 0.12:
            return f"{update} AND TTL {draw.randint(3, 12)} SET {TIMED} = {len(self.ends)} WHERE {one}"
        if chosen < 0.25:
            return self._insert(pk)
        if chosen < 0.4:
            return f"{delete} WHERE {one}"
        if chosen < 0.45 and many:
            return f"{delete} WHERE {where}"
        if chosen < 0.52 and many and self.clustering:
            low = draw.randrange(3)
            return f"{delete} WHERE {where} AND k0 > {low} AND k0 <= {low + draw.randint(1, 2)}"
        if chosen < 0.62 and self.statics:
            return self._static_update(pk)
        column = draw.choice(self._settable)
        return f"{update} SET {self.columns[column].assignment(draw, column)} WHERE {one}"

    def _insert(self, pk: int, whole: bool = False) -> str:
        names = [name for name in self._settable if whole or self.draw.random() < 0.6]
        values = [str(pk), *map(str, self._row()), *(self.columns[name].literal(self.draw) for name in names)]
        columns = ", ".join(("pk", *self.clustering, *names))
        return f"INSERT INTO {self.name} ({columns}) VALUES ({', '.join(values)}) USING TIMESTAMP %TIME%"

    def _static_update(self, pk: int) -> str:
        column = self.draw.choice(list(self.statics))
        change = self.statics[column].assignment(self.draw, column)
        return f"UPDATE {self.name} USING TIMESTAMP %TIME% SET {change} WHERE pk = {pk}"

    def _row(self) -> Clustering:
        return tuple(self.draw.randrange(2 if at else 4) for at in range(len(self.clustering)))


class Writer(Repeated):
    """Changes a table until it is told to end."""

    def __init__(self, session: Session, table: SourceTable, pause: float) -> None:
        super().__init__(pause)
        self._session, self._table = session, table

    def once(self) -> None:
        self._table.change(self._session)
