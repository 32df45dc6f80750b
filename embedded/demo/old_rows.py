"""What the demo's tables hold before their logs begin: rows that no change tells of, so that a snapshot has to.

In: a driver's session, a seed, the size of the workload. Out: rows of customers and wares that the workload changes
while they are read, and of others that nothing ever touches.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from embedded.demo.schema import LINES, ORDERS, STOCK
from embedded.demo.workload import CITIES, SKUS, STATES, customers

_QUIET = 30


def write_old_rows(session: Any, seed: int, rows: int) -> None:
    draw = random.Random(seed)
    for customer in [*customers(rows)[::2], *(f"regular-{number}" for number in range(_QUIET))]:
        session.execute(_batch(_orders_of(draw, customer)))
        for number in (1, 2):
            session.execute(_batch(_lines_of(draw, customer, number)))
    for sku in [*SKUS[::2], *(f"shelf-warmer-{number}" for number in range(_QUIET))]:
        session.execute(
            f"INSERT INTO {STOCK.name} (sku, on_hand, weight, photo, since, shelves, reserved) VALUES ('{sku}', "
            f"{draw.randrange(1000)}, {draw.random()}, 0x{draw.randbytes(4).hex()}, '2023-11-05', ['A0', 'A1'], "
            f"{{'customer-0': {draw.randint(1, 9)}}})"
        )


def _orders_of(draw: random.Random, customer: str) -> Iterator[str]:
    yield f"INSERT INTO {ORDERS.name} (customer, tier) VALUES ('{customer}', 'silver')"
    for number in (1, 2, 3):
        yield (
            f"INSERT INTO {ORDERS.name} (customer, number, status, total, tags, address) VALUES "
            f"('{customer}', {number}, '{draw.choice(STATES)}', {draw.randrange(100, 9999)}.50, {{'gift'}}, "
            f"{{street: '{number} Main St', city: '{draw.choice(CITIES)}'}})"
        )
    # Of its key alone.
    yield f"INSERT INTO {ORDERS.name} (customer, number) VALUES ('{customer}', 4)"


def _lines_of(draw: random.Random, customer: str, number: int) -> Iterator[str]:
    for line in range(3):
        yield (
            f"INSERT INTO {LINES.name} (customer, number, line, sku, quantity, price) VALUES "
            f"('{customer}', {number}, {line}, '{draw.choice(SKUS)}', {draw.randint(1, 9)}, {draw.randrange(1, 99)}.95)"
        )


def _batch(statements: Iterator[str]) -> str:
    return f"BEGIN UNLOGGED BATCH {'; '.join(statements)}; APPLY BATCH"
