"""The demo's seeded workload: what applications do to rows, and what goes wrong when they do it.

In: a driver's session, a seed, a number of writes. Out: rows in the source, counts by kind, and the story of one key.
Writes with a time of their own stay well inside the confidence window, as the connector's promise asks.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from cassandra.cluster import Session
from cassandra.encoder import Encoder
from cassandra.query import bind_params
from cassandra.util import unix_time_from_uuid1, uuid_from_time

from embedded.demo.schema import LINES, ORDERS, STOCK

STORY_KEY: Final = ("ada", 1)
LATE_US: Final = 50_000
"""So much older than the newest write is a late one."""

WRITES_PER_SECOND: Final = 250
"""So that the changes of streams and the killed worker come in the middle of it, on fast machines too."""

STATES: Final = ("new", "paid", "packed", "sent", "returned")
TAGS: Final = ("gift", "express", "fragile", "abroad")
CITIES: Final = ("Porto", "Gdańsk", "Lyon", "Ōsaka")
SKUS: Final = tuple(f"sku-{number:03}" for number in range(40))


def customers(rows: int) -> list[str]:
    """Those of a workload of so many writes: few enough for their rows to be written again and again."""
    return [f"customer-{number}" for number in range(max(4, rows // 25))]


@dataclass(frozen=True)
class Told:
    """One write to the story's key: its statement, its time in µs, the columns it is about, and what is special."""

    statement: str
    at_us: int
    columns: tuple[str, ...]
    remark: str = ""


class Workload:
    """Writes in parts, so that other things can happen between them."""

    def __init__(self, session: Session, seed: int, rows: int) -> None:
        self._session = session
        self._random = random.Random(seed)
        self._encoder = Encoder()
        self._customers = customers(rows)
        self._skus = list(SKUS)
        self._time = 0
        self.rows = rows
        # No SELECT tells the keys of a list's elements: a snapshot waits for a list that grows all the time.
        self.appends = False
        self.done = 0
        self.kinds: Counter[str] = Counter()
        self.story: list[Told] = []
        self.seconds = 0.0
        self._choices: list[tuple[int, Callable[[], None]]] = [
            (28, self._insert),
            (20, self._update),
            (7, self._null),
            (6, self._delete),
            (4, self._delete_range),
            (10, self._batch),
            (14, self._stock),
            (4, self._late),
            (4, self._tied),
            (2, self._repeated),
            (3, self._static),
        ]

    def part(self, share: float, meanwhile: Callable[[], None]) -> None:
        """Writes on until this share of all writes is done; `meanwhile` is called after each."""
        began = time.monotonic()
        before = self.done
        pause = threading.Event()
        while self.done < self.rows * share:
            self.one()
            meanwhile()
            pause.wait(max(0.0, (self.done - before) / WRITES_PER_SECOND - (time.monotonic() - began)))
        self.seconds += time.monotonic() - began

    def one(self) -> None:
        """Another write."""
        self._random.choices(self._choices, [weight for weight, _ in self._choices])[0][1]()
        self.done += 1

    # -- what applications do -----------------------------------------------------------------------------------

    def _insert(self) -> None:
        customer, number = self._order()
        self._run(
            "insert",
            f"INSERT INTO {ORDERS.name} (customer, number, status, total, placed, note, tags, address) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s, {street: %s, city: %s})",
            (
                *(customer, number, "new", self._amount(), self._now() // 1000, None),
                *(set(self._random.sample(TAGS, 2)), f"{number} Main St", self._random.choice(CITIES)),
            ),
        )

    def _update(self) -> None:
        what, value = self._random.choice(
            [
                ("status = %s", self._random.choice(STATES)),
                ("total = %s", self._amount()),
                ("tags = tags + %s", {self._random.choice(TAGS)}),
                ("note = '', tags = tags - %s", {self._random.choice(TAGS)}),
                ("address.city = %s", self._random.choice(CITIES)),
            ]
        )
        self._run(
            "partial update",
            f"UPDATE {ORDERS.name} SET {what} WHERE customer = %s AND number = %s",
            (value, *self._order()),
        )

    def _null(self) -> None:
        # No SELECT tells rows that live by their values alone from those that do not, so no row loses its last one.
        column = self._random.choice(["note", "total", "tags", "address"])
        self._run(
            "explicit null",
            f"INSERT INTO {ORDERS.name} (customer, number, {column}) VALUES (%s, %s, null)",
            self._order(),
        )

    def _delete(self) -> None:
        if self._random.random() < 0.7:
            self._run("row delete", f"DELETE FROM {ORDERS.name} WHERE customer = %s AND number = %s", self._order())
        else:
            self._run("partition delete", f"DELETE FROM {ORDERS.name} WHERE customer = %s", self._order()[:1])

    def _delete_range(self) -> None:
        start = self._random.randrange(4)
        self._run(
            "range delete",
            f"DELETE FROM {LINES.name} WHERE customer = %s AND number = %s AND line >= %s AND line < %s",
            (*self._order(), start, start + 3),
        )

    def _batch(self) -> None:
        customer, number = self._order()
        statement = (
            f"INSERT INTO {LINES.name} (customer, number, line, sku, quantity, price) VALUES (%s, %s, %s, %s, %s, %s)"
        )
        lines = [
            self._bound(
                statement,
                (customer, number, line, self._random.choice(self._skus), self._random.randint(1, 9), self._amount()),
            )
            for line in range(self._random.randint(2, 6))
        ]
        self._run("batch", f"BEGIN UNLOGGED BATCH {'; '.join(lines)}; APPLY BATCH")

    def _stock(self) -> None:
        sku, draw = self._random.choice(self._skus), self._random.random()
        if draw < 0.4:
            self._run(
                "insert",
                f"INSERT INTO {STOCK.name} (sku, on_hand, weight, photo, since, shelves, reserved) "
                "VALUES (%s, %s, %s, %s, '2024-05-01', %s, %s)",
                (
                    *(sku, self._random.randrange(1000), self._random.random(), self._random.randbytes(4)),
                    *([f"A{self._random.randrange(9)}"], {self._random.choice(self._customers): 1}),
                ),
            )
        elif draw < 0.7:
            shelves = "shelves + %s" if self.appends else "%s"
            self._run(
                "collection update",
                f"UPDATE {STOCK.name} SET reserved[%s] = %s, shelves = {shelves} WHERE sku = %s",
                (
                    self._random.choice(self._customers),
                    self._random.randint(1, 9),
                    [f"B{self._random.randrange(9)}"],
                    sku,
                ),
            )
        elif draw < 0.9:
            self._run(
                "collection update",
                f"DELETE reserved[%s] FROM {STOCK.name} WHERE sku = %s",
                (self._random.choice(self._customers), sku),
            )
        else:
            self._run("row delete", f"DELETE FROM {STOCK.name} WHERE sku = %s", (sku,))

    def _static(self) -> None:
        tier = self._random.choice(["silver", "gold"])
        self._run("static", f"UPDATE {ORDERS.name} SET tier = %s WHERE customer = %s", (tier, self._order()[0]))

    # -- what goes wrong ----------------------------------------------------------------------------------------

    def _late(self) -> None:
        order, now = self._order(), self._now()
        statement = f"UPDATE {ORDERS.name} USING TIMESTAMP %s SET status = %s WHERE customer = %s AND number = %s"
        self._run("partial update", statement, (now, "sent", *order))
        self._run("late write", statement, (now - LATE_US, "packed", *order))

    def _tied(self) -> None:
        order, now = self._order(), self._now()
        for note in self._random.sample(["call first", "leave at the door", "ring twice"], 2):
            self._run(
                "tied write",
                f"UPDATE {ORDERS.name} USING TIMESTAMP %s SET note = %s WHERE customer = %s AND number = %s",
                (now, note, *order),
            )

    def _repeated(self) -> None:
        order, now = self._order(), self._now()
        for kind in ("insert", "repeated write"):
            self._run(
                kind,
                f"INSERT INTO {ORDERS.name} (customer, number, status) VALUES (%s, %s, %s) USING TIMESTAMP %s",
                (*order, "paid", now),
            )

    def write_malformed_row(self) -> None:
        """Puts a row into the log that no write could have made: an operation that does not exist."""
        self._run("insert", f"INSERT INTO {ORDERS.name} (customer, number, status) VALUES ('mallory', 1, 'new')")
        rows = self._session.execute(f'SELECT "cdc$stream_id", "cdc$time" FROM {ORDERS.log}')
        stream, written = max(rows, key=lambda row: row[1].time)
        # Right behind the row that was just written: whatever the streams do, this one holds that time.
        just_after = unix_time_from_uuid1(written) + 10e-6
        self._session.execute(
            f'INSERT INTO {ORDERS.log} ("cdc$stream_id", "cdc$time", "cdc$batch_seq_no", "cdc$operation", '
            '"cdc$end_of_batch", customer, number) VALUES (%s, %s, 0, 99, true, %s, 1)',
            (stream, uuid_from_time(just_after), "mallory"),
        )

    # -- the story of one key -----------------------------------------------------------------------------------

    def story_begins(self) -> None:
        self._tell(
            "INSERT INTO {} (customer, number, status, total, placed, note, tags, address) "
            "VALUES ({key}, 'new', 120.50, '2024-05-01 12:00:00+0000', 'call first', {{'gift'}}, "
            "{{street: '1 Main St', city: 'Porto'}}) USING TIMESTAMP {at}",
            ("status", "total", "placed", "note", "tags", "address"),
        )
        self._tell("UPDATE {} USING TIMESTAMP {at} SET tier = 'gold' WHERE customer = {customer}", ("tier",))

    def story_goes_on(self) -> None:
        paid = self._now()
        self._tell("UPDATE {} USING TIMESTAMP {at} SET status = 'paid' WHERE {where}", ("status",), at=paid)
        self._tell(
            "UPDATE {} USING TIMESTAMP {at} SET status = 'void' WHERE {where}",
            ("status",),
            at=paid - LATE_US,
            remark="late",
        )
        self._tell(
            "UPDATE {} USING TIMESTAMP {at} SET tags = tags + {{'express'}}, address.city = 'Lyon' WHERE {where}",
            ("tags", "address"),
        )

    def story_ends(self) -> None:
        tied = self._now()
        for note in ("ring twice", "leave at the door"):
            self._tell(
                f"UPDATE {{}} USING TIMESTAMP {{at}} SET note = '{note}' WHERE {{where}}", ("note",), tied, "tied"
            )
        self._tell("UPDATE {} USING TIMESTAMP {at} SET total = null WHERE {where}", ("total",), remark="null")

    def _tell(self, pattern: str, columns: Sequence[str], at: int | None = None, remark: str = "") -> None:
        at = at or self._now()
        customer, number = STORY_KEY
        statement = pattern.format(
            ORDERS.name,
            key=f"'{customer}', {number}",
            where=f"customer = '{customer}' AND number = {number}",
            customer=f"'{customer}'",
            at=at,
        )
        self._run({"late": "late write", "tied": "tied write", "null": "explicit null"}.get(remark, "story"), statement)
        self.story.append(Told(statement, at, tuple(columns), remark))

    # -- statements ---------------------------------------------------------------------------------------------

    def _order(self) -> tuple[str, int]:
        return self._random.choice(self._customers), self._random.randint(1, 5)

    def _amount(self) -> Decimal:
        return Decimal(self._random.randrange(100, 100_000)).scaleb(-2)

    def _now(self) -> int:
        """µs, never the same twice, so that only what is meant to be tied is tied."""
        self._time = max(self._time + 1, time.time_ns() // 1000)
        return self._time

    def _bound(self, statement: str, values: Sequence[Any]) -> str:
        return str(bind_params(statement, values, self._encoder))

    def _run(self, kind: str, statement: str, values: Sequence[Any] = ()) -> None:
        self._session.execute(self._bound(statement, values) if values else statement)
        self.kinds[kind] += 1
