"""The generated history that a preload puts into a log: the same rows again for the same table, seed and
numbers.

Comes in: a table and a `PreloadSpec`. Goes out: `GeneratedWrite`s by number. Neither streams nor the server's
state have a part in it, so that whoever has the description of the table can tell what the log must hold.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from connector.values import CqlType, encoder
from embedded.scylla.cdc.changes import INSERT, PARTITION_DELETE, ROW_DELETE, UPDATE
from embedded.scylla.cdc.log_schema import value_type
from embedded.scylla.execute.validation import checker
from embedded.scylla.preload_values import distinct_value, random_value
from embedded.scylla.schema import Table

#: Different values of a column (a power of two); neighbouring rows take different ones, and no two columns step through
#: them alike.
POOL = 1024
_STRIDES = (1, 3, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59)


@dataclass(frozen=True, slots=True)
class PreloadSpec:
    """What to generate.

    `rows` changes (log rows but for images), in batches of `batch_rows` with one `cdc$time`, over
    `partitions` partition keys. `keys`: so many rows of the base table are written again and again; 0 means
    that every change has a row of its own. `mixed` turns some inserts into updates and row deletes. `nulls`
    is the share of cells that are null. The times spread over `span_seconds`, ending at `end_us`
    (microseconds).
    """

    rows: int
    end_us: int
    seed: int = 0
    partitions: int = 1000
    keys: int = 0
    batch_rows: int = 1
    mixed: bool = False
    nulls: float = 0.0
    span_seconds: float = 600.0

    def problems(self) -> list[str]:
        """All that is wrong with it."""
        wrong = [
            f"{name} must be at least 1" for name in ("rows", "partitions", "batch_rows") if getattr(self, name) < 1
        ]
        if self.keys < 0:
            wrong.append("keys cannot be negative")
        if not 0 <= self.nulls <= 1:
            wrong.append("nulls must lie between 0 and 1")
        if self.span_us < self.batches:
            wrong.append("span_seconds is too short: every batch needs a microsecond of its own")
        return wrong

    @property
    def batches(self) -> int:
        return -(-self.rows // max(1, self.batch_rows))

    @property
    def span_us(self) -> int:
        return int(self.span_seconds * 1_000_000)

    @property
    def start_us(self) -> int:
        return self.end_us - self.span_us

    def time_of(self, batch: int) -> int:
        """The write timestamp of a batch: rising from batch to batch."""
        return self.start_us + batch * self.span_us // self.batches


class GeneratedWrite(NamedTuple):
    """One change of one row; `RowSource` tells its keys and values."""

    number: int
    batch: int
    partition: int
    row: int
    operation: int


class RowSource:
    """Everything a preload writes, by number."""

    def __init__(self, table: Table, spec: PreloadSpec) -> None:
        self.table, self.spec = table, spec
        self.columns = table.regular
        self._mixing = random.Random(spec.seed).getrandbits(64) | 1
        self.pools = [_pool(value_type(column), f"{spec.seed}/{column.name}", spec.nulls) for column in self.columns]
        self.strides = [_STRIDES[at % len(_STRIDES)] for at in range(len(self.columns))]
        self._key_encoders = [encoder(column.type) for column in table.primary_key]
        self._constant_keys = tuple(
            encode(distinct_value(column.type, 0)) for encode, column in zip(self._key_encoders, table.primary_key)
        )
        self._clustered = bool(table.clustering)
        self._rows_per_partition = -(-spec.keys // spec.partitions) if spec.keys else 0
        problems = spec.problems()
        if not self._clustered and spec.batch_rows > 1:
            problems.append("batch_rows above 1 needs a table with clustering columns")
        if 0 < self._rows_per_partition < spec.batch_rows:
            problems.append("keys are too few: a batch would write a row twice")
        if problems:
            raise ValueError("; ".join(problems))

    def writes(self) -> Iterator[GeneratedWrite]:
        """All changes in the order of their times."""
        spec, mixing = self.spec, self._mixing
        clustered, limit = self._clustered, self._rows_per_partition
        delete = ROW_DELETE if clustered else PARTITION_DELETE
        partitions, batch_rows, mixed = spec.partitions, spec.batch_rows, spec.mixed
        operation = INSERT
        for number in range(spec.rows):
            batch, place = divmod(number, batch_rows)
            if clustered:
                turn, partition = divmod(batch, partitions)
                row = turn * batch_rows + place
                if limit:
                    row %= limit
            else:
                partition, row = number % spec.keys if spec.keys else number, 0
            if mixed:
                dice = ((number + 1) * mixing >> 20) % 10
                operation = INSERT if dice < 6 else UPDATE if dice < 9 else delete
            yield GeneratedWrite(number, batch, partition, row, operation)

    def places(self) -> Iterator[tuple[int, int]]:
        """Partition and row of every change, where every batch is a single one."""
        spec, partitions, limit = self.spec, self.spec.partitions, self._rows_per_partition
        if not self._clustered:
            for number in range(spec.rows):
                yield number % spec.keys if spec.keys else number, 0
            return
        for number in range(spec.rows):
            turn, partition = divmod(number, partitions)
            yield partition, turn % limit if limit else turn

    def partition_key(self, partition: int) -> tuple[bytes, ...]:
        """The key columns of a partition; the last one tells partitions apart."""
        count = len(self.table.partition_key)
        return self._key(range(count), partition)

    def clustering_key(self, row: int) -> tuple[bytes, ...]:
        first = len(self.table.partition_key)
        return self._key(range(first, len(self._key_encoders)), row) if self._clustered else ()

    def _key(self, places: range, number: int) -> tuple[bytes, ...]:
        """The last column of the places takes the number, those before it are always the same."""
        key = self._constant_keys[places.start : places.stop]
        last = places.stop - 1
        return (*key[:-1], self._key_encoders[last](distinct_value(self.table.primary_key[last].type, number)))

    def picks(self, number: int) -> list[int]:
        """Which value of its pool each regular column takes in a change."""
        return [number * stride % POOL for stride in self.strides]

    def values(self, number: int) -> list[bytes | None]:
        """The values of the regular columns that a change writes, in the order of their names, as the log
        shows them; None is null."""
        return [pool[at] for pool, at in zip(self.pools, self.picks(number))]


def _pool(type_: CqlType, seed: str, nulls: float) -> list[bytes | None]:
    source = random.Random(seed)
    encode, normal = encoder(type_), checker(type_)
    return [None if source.random() < nulls else normal(encode(random_value(type_, source))) for _ in range(POOL)]
