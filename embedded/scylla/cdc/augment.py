"""What every write to a CDC table adds: the log rows, or an error that rejects the whole write.

Comes in: the merged mutations of a request, with a reader of the base tables. Goes out: the same mutations
followed by those of the log tables. Each group of changes looks up its stream by its own timestamp.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from embedded.scylla.cdc.changes import (
    INSERT,
    PARTITION_DELETE,
    ROW_DELETE,
    SERVICE_PARTITION_DELETE,
    SERVICE_ROW_DELETE,
    UPDATE,
    change_groups,
)
from embedded.scylla.cdc.images import ImageStates
from embedded.scylla.cdc.log_rows import LogMutation, RowEncoder, finish_group, insert_row
from embedded.scylla.cdc.plan import LogPlan
from embedded.scylla.clock import Clock
from embedded.scylla.hooks import Reader
from embedded.scylla.mutation import Cell, PartitionMutation, RowMutation
from embedded.scylla.results import RequestContext
from embedded.scylla.schema import Table

StreamPicker = Callable[[int, int], bytes]
"""Token and write timestamp (µs) → stream; raises the error that rejects the write."""

_SERVICE = {ROW_DELETE: SERVICE_ROW_DELETE, PARTITION_DELETE: SERVICE_PARTITION_DELETE}


@dataclass(frozen=True, slots=True)
class Logged:
    """A table that is being logged: how, and into which streams."""

    plan: LogPlan
    pick_stream: StreamPicker


class Augmenter:
    """Adds log rows to writes. `resolve` tells for a table how it is logged, None if it is not."""

    def __init__(self, clock: Clock, resolve: Callable[[Table], Logged | None], seed: int | None = None) -> None:
        self._clock = clock
        self._resolve = resolve
        self._known: dict[uuid.UUID, tuple[Table, Logged | None]] = {}
        self._random = random.Random(seed)
        self._operations: dict[int, int] = {}

    def forget(self) -> None:
        """The schema changed: resolve every table anew."""
        self._known.clear()

    @contextmanager
    def system_originated(self) -> Iterator[None]:
        """Deletes inside are logged as the server's own (operations -3 and -4), as those of per-row TTL
        are."""
        self._operations = _SERVICE
        try:
            yield
        finally:
            self._operations = {}

    def augment(
        self, mutations: list[PartitionMutation], context: RequestContext, reader: Reader
    ) -> list[PartitionMutation]:
        """All that is to be applied: the mutations, and their log rows behind them."""
        added: list[PartitionMutation] = []
        for mutation in mutations:
            logged = self._logged(mutation.table)
            if logged is not None:
                added += self._log_mutations(mutation, logged, reader)
        return mutations + added if added else mutations

    def _logged(self, table: Table) -> Logged | None:
        known = self._known.get(table.id)
        if known is None or known[0] is not table:
            known = self._known[table.id] = (table, self._resolve(table))
        return known[1]

    def _log_mutations(self, mutation: PartitionMutation, logged: Logged, reader: Reader) -> list[LogMutation]:
        plan = logged.plan
        if not plan.options.images and len(mutation.rows) == 1:
            simple = self._simple(mutation, logged)
            if simple is not None:
                return [simple]
        groups = change_groups(mutation)
        if not groups:
            return []
        # The streams are looked up first: a rejected write reads nothing.
        streams = [logged.pick_stream(mutation.token, group.timestamp) for group in groups]
        states = ImageStates.read(mutation, plan, reader) if plan.options.images else None
        encoder = RowEncoder(plan, mutation, self._operations)
        expiry = self._expiry(plan)
        made = []
        for group, stream in zip(groups, streams):
            rows = encoder.rows(group, states)
            made.append(finish_group(plan, rows, stream, group.timestamp, expiry, self._random.getrandbits(62)))
        return made

    def _simple(self, mutation: PartitionMutation, logged: Logged) -> LogMutation | None:
        """The log row of a plain insert or update of one row, without the general machinery; None if it is
        not one."""
        if mutation.static or mutation.ranges or mutation.deletion is not None:
            return None
        ((clustering, row),) = mutation.rows.items()
        found = _single_time_and_ttl(row, logged.plan)
        if found is None:
            return None
        timestamp, ttl = found
        plan = logged.plan
        stream = logged.pick_stream(mutation.token, timestamp)
        operation = UPDATE if row.marker is None else INSERT
        only = insert_row(plan, mutation, clustering, row.cells, ttl, operation)
        return finish_group(plan, [only], stream, timestamp, self._expiry(plan), self._random.getrandbits(62))

    def _expiry(self, plan: LogPlan) -> int:
        return self._clock.now_seconds() + plan.options.ttl if plan.options.ttl else 0


def _single_time_and_ttl(row: RowMutation, plan: LogPlan) -> tuple[int, int] | None:
    """Timestamp and TTL of an upsert of single cells that agree on both; None for everything else."""
    if row.deletion is not None:
        return None
    timestamp, ttl = -1, 0
    known = False
    if row.marker is not None:
        timestamp, ttl, known = row.marker.timestamp, row.marker.ttl, True
    for written in row.cells.values():
        if type(written) is not Cell:
            return None
        own = written.ttl if written.value is not None else 0
        if not known:
            timestamp, ttl, known = written.timestamp, own, True
        elif written.timestamp != timestamp or own != ttl:
            return None
    return (timestamp, ttl) if known else None
