"""Random writes on random tables: every form of INSERT, UPDATE and DELETE, batches, ties and times that go back.

In: a seed. Out: a `Seeded` recording without answers, logs and rows, the same for the same seed; a server that plays it
adds those. Keys come from small pools, so that writes meet on partitions and rows.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from connector.values import CqlType, ListType, MapType, SetType, UserType, encode, is_multi_cell, native
from embedded.scylla.recordings.files import UNSET, Seeded, Write
from embedded.scylla.recordings.random_tables import ADDRESS, RandomTable, random_tables
from embedded.scylla.recordings.random_values import random_cell

# 2026-01-01: the times of a generated recording are moved to the present when it is played anyhow.
FLOOR_US: Final = 1_767_225_600_000_000
_TTL = "TTL 86400 AND "
_BATCHED: Final = ("insert", "insert", "update", "update", "delete-row", "delete-range", "delete-columns")

# A statement's text with its bound values in the order of the markers; None stands for null.
Bound = tuple[str, list[str | None]]


def random_recording(seed: int, tablets: bool, statements: int = 1500) -> Seeded:
    """`statements` writes, each a statement or a batch."""
    source = random.Random(seed)
    keyspace = f"diff{seed}{'t' if tablets else 'v'}"
    tables = random_tables(source)
    writers = [_Writer(source, keyspace, table) for table in tables]
    writes, at, past = [], FLOOR_US, [FLOOR_US]
    for number in range(statements):
        # Every table in turn first, so that none stays empty in a short recording.
        writer = writers[number % len(writers)]
        at += source.randint(200, 9_000)
        moment, kind = at, source.random()
        if kind < 0.03:
            moment = source.choice(past[-50:])
        elif kind < 0.12:
            moment = max(FLOOR_US, at - source.randint(1, 600_000))
        past.append(moment)
        writes.append(writer.write(moment))
    return Seeded(
        keyspace=keyspace,
        tablets=tablets,
        floor=FLOOR_US,
        types=ADDRESS,
        creates=[(table.name, table.create(keyspace)) for table in tables],
        writes=writes,
    )


class _Writer:
    """Makes writes on one table."""

    def __init__(self, source: random.Random, keyspace: str, table: RandomTable) -> None:
        self._source = source
        self._table = table
        self._name = f"{keyspace}.{table.name}"
        self._partitions = [self._key(table.partition) for _ in range(5)]
        self._rows = {
            column: [random_cell(source, type_, key=True).hex() for _ in range(4)]
            for column, type_ in table.clustering.items()
        }
        self._kinds: dict[str, Callable[[int, list[str]], Bound]] = {
            "insert": self._insert,
            "update": self._update,
            "static": self._static,
            "delete-row": self._delete_row,
            "delete-columns": self._delete_columns,
            "delete-range": self._delete_range,
            "delete-partition": self._delete_partition,
        }

    def write(self, moment: int) -> Write:
        source, table = self._source, self._table
        if source.random() < 0.09:
            return self._batch(moment)
        kinds, weights = ["insert", "update", "delete-row", "delete-columns"], [33, 36, 7, 6]
        if table.clustering:
            kinds, weights = [*kinds, "delete-range", "delete-partition"], [*weights, 5, 2]
        if table.static:
            kinds, weights = [*kinds, "static"], [*weights, 6]
        (kind,) = source.choices(kinds, weights)
        return Write(kind, [self._kinds[kind](moment, self._partition())])

    def _batch(self, moment: int) -> Write:
        """Mostly on one partition and at one time, which makes one batch of log rows; else several."""
        source, statements = self._source, []
        partition, apart, elsewhere = self._partition(), source.random() < 0.3, source.random() < 0.15
        for number in range(source.randint(2, 4)):
            kind = source.choice(_BATCHED)
            if kind == "delete-range" and not self._table.clustering:
                kind = "delete-row"
            at = moment + number if apart else moment
            statements.append(self._kinds[kind](at, self._partition() if elsewhere else partition))
        return Write("batch", statements)

    # -- statements ----------------------------------------------------------------------------------------------

    def _insert(self, moment: int, partition: list[str]) -> Bound:
        row = self._row()
        chosen = self._some(self._table.regular, least=0)
        if self._table.static and self._source.random() < 0.15:
            chosen |= self._some(self._table.static)
        names = [*self._table.partition, *self._table.clustering, *chosen]
        values = [*partition, *row, *(self._cell(type_) for type_ in chosen.values())]
        markers = ", ".join("?" * len(names))
        text = f"INSERT INTO {self._name} ({', '.join(names)}) VALUES ({markers}) USING {self._ttl()}TIMESTAMP ?"
        return text, [*values, _timestamp(moment)]

    def _update(self, moment: int, partition: list[str]) -> Bound:
        return self._set(moment, self._some(self._table.regular), partition, self._row())

    def _static(self, moment: int, partition: list[str]) -> Bound:
        return self._set(moment, self._some(self._table.static), partition, [])

    def _set(self, moment: int, columns: dict[str, CqlType], partition: list[str], row: list[str]) -> Bound:
        changes, values = [], []
        for name, type_ in columns.items():
            text, bound = self._change(name, type_)
            changes.append(text)
            values += bound
        text = f"UPDATE {self._name} USING {self._ttl()}TIMESTAMP ? SET {', '.join(changes)} WHERE {self._where(row)}"
        return text, [_timestamp(moment), *values, *partition, *row]

    def _change(self, name: str, type_: CqlType) -> tuple[str, list[str | None]]:
        """One assignment: the whole column, or some of its elements or fields."""
        source = self._source
        if not is_multi_cell(type_) or source.random() < 0.45:
            return f"{name} = ?", [self._cell(type_)]
        whole = random_cell(source, type_).hex()
        if isinstance(type_, UserType):
            field, kind = source.choice(type_.fields)
            return f"{name}.{field} = ?", [self._cell(kind)]
        if isinstance(type_, ListType):
            return (f"{name} = ? + {name}" if source.random() < 0.4 else f"{name} = {name} + ?"), [whole]
        if isinstance(type_, MapType):
            choice = source.random()
            if choice < 0.3:
                return f"{name}[?] = ?", [random_cell(source, type_.key).hex(), self._cell(type_.value)]
            if choice < 0.6:
                return f"{name} = {name} - ?", [random_cell(source, SetType(type_.key)).hex()]
        elif source.random() < 0.5:
            return f"{name} = {name} - ?", [whole]
        return f"{name} = {name} + ?", [whole]

    def _delete_row(self, moment: int, partition: list[str]) -> Bound:
        row = self._row()
        return f"DELETE FROM {self._name} USING TIMESTAMP ? WHERE {self._where(row)}", [
            _timestamp(moment),
            *partition,
            *row,
        ]

    def _delete_columns(self, moment: int, partition: list[str]) -> Bound:
        row, chosen = self._row(), dict(list(self._some(self._table.regular).items())[:3])
        parts, values = [], []
        for name, type_ in chosen.items():
            if isinstance(type_, MapType) and not type_.frozen and self._source.random() < 0.4:
                parts.append(f"{name}[?]")
                values.append(random_cell(self._source, type_.key).hex())
            else:
                parts.append(name)
        text = f"DELETE {', '.join(parts)} FROM {self._name} USING TIMESTAMP ? WHERE {self._where(row)}"
        return text, [*values, _timestamp(moment), *partition, *row]

    def _delete_partition(self, moment: int, partition: list[str]) -> Bound:
        return f"DELETE FROM {self._name} USING TIMESTAMP ? WHERE {self._where([])}", [_timestamp(moment), *partition]

    def _delete_range(self, moment: int, partition: list[str]) -> Bound:
        """Rows below a prefix of the clustering key: open or closed ends, one row, several columns at once."""
        source, columns = self._source, list(self._table.clustering)
        fixed = source.randrange(len(columns))
        prefix = self._row()[:fixed]
        if not fixed and len(columns) > 1 and source.random() < 0.25:
            subject, markers = f"({', '.join(columns)})", f"({', '.join('?' * len(columns))})"
            bounds = [self._row(), self._row()]
        else:
            subject, markers = columns[fixed], "?"
            bounds = [[source.choice(self._rows[subject])] for _ in range(2)]
        low, high = source.choice(((">", "<"), (">", "<="), (">=", "<"), (">=", "<="), (">=", None), (None, "<")))
        if (low, high) == (">=", "<=") and source.random() < 0.5:
            bounds[1] = bounds[0]
        conditions, values = [self._where(prefix)], [*partition, *prefix]
        for operator, bound in zip((low, high), bounds, strict=True):
            if operator is not None:
                conditions.append(f"{subject} {operator} {markers}")
                values += bound
        return f"DELETE FROM {self._name} USING TIMESTAMP ? WHERE {' AND '.join(conditions)}", [
            _timestamp(moment),
            *values,
        ]

    # -- parts ---------------------------------------------------------------------------------------------------

    def _where(self, row: list[str]) -> str:
        names = [*self._table.partition, *list(self._table.clustering)[: len(row)]]
        return " AND ".join(f"{name} = ?" for name in names)

    def _key(self, columns: dict[str, CqlType]) -> list[str]:
        return [random_cell(self._source, type_, key=True).hex() for type_ in columns.values()]

    def _partition(self) -> list[str]:
        return self._source.choice(self._partitions)

    def _row(self) -> list[str]:
        return [self._source.choice(values) for values in self._rows.values()]

    def _some(self, columns: dict[str, CqlType], least: int = 1) -> dict[str, CqlType]:
        most = len(columns)
        names = self._source.sample(list(columns), self._source.randint(least, most))
        return {name: columns[name] for name in names}

    def _cell(self, type_: CqlType) -> str | None:
        chance = self._source.random()
        if chance < 0.1:
            return None
        return UNSET if chance < 0.12 else random_cell(self._source, type_).hex()

    def _ttl(self) -> str:
        return _TTL if self._source.random() < 0.2 else ""


def _timestamp(moment: int) -> str:
    return encode(native("bigint"), moment).hex()
