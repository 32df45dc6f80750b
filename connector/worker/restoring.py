"""Restoring: from "the group gave us these slots" to "the planner has their committed state".

In: slots gained and gone. Out: the planner restores them, and the tables know what became of them and of their schema
records in the meantime. Restoring waits for servers, so it runs as a chore; a slot that goes away meanwhile is simply
not heard of again.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from connector.config import Configuration
from connector.delivery import KafkaClients, LastingTopic, RestoredSlot, Standing, Unseen, restore
from connector.errors import CdcError, ConfigurationError, ForeignGroup
from connector.offsets_entry import OffsetsEntry
from connector.source import (
    Background,
    Chores,
    Connection,
    DescribedTable,
    Expired,
    Purpose,
    Tables,
    describe_tables,
    expired,
)
from connector.table_name import TableName
from connector.topology import SlotsPlan, snapshot_passed_over, told_apart
from connector.worker.one_group import OneGroup
from connector.worker.pipeline import Pipeline
from connector.worker.schemas import last_versions

log = logging.getLogger(__name__)

# How long a worker waits for another group to go, in session timeouts: a member that was killed is one until its own
# ends. Not all wait equally long, so that of two that were started together one stays; one that has run already has the
# longer breath.
FIRST_BREATH = (1.2, 2.0)
LONG_BREATH = (2.5, 3.0)
FOREIGN_PAUSE = 1.0

CLAIMS = Purpose("claims", "slots assigned to this worker are not restored", "their streams are not read")


@dataclass(frozen=True, slots=True)
class _Restored:
    """What a chore found: the slots, the versions in the schemas topic, and *then* what the tables are.

    A worker that was slow to get its slots would otherwise write the description it started with behind a newer one
    of somebody else, and a table's last record is taken for what it is now.
    """

    slots: dict[int, RestoredSlot]
    versions: dict[str, str]
    described: list[DescribedTable]


class Restoring:
    """Which slots are on their way. Owned by one thread; only `_read` runs elsewhere."""

    def __init__(
        self,
        *,
        configuration: Configuration,
        clients: KafkaClients,
        connection: Connection,
        planner: SlotsPlan,
        tables: Tables,
        pipeline: Pipeline,
        chores: Chores,
        background: Background,
        one_group: OneGroup,
        unseen: Unseen,
        stood: Standing,
        positions: LastingTopic,
    ) -> None:
        self._positions = positions
        self._one_group = one_group
        self._session = configuration.worker.session_timeout_ms / 1000
        self._breath = self._session * random.uniform(*FIRST_BREATH)
        self._foreign_since: float | None = None
        self._refused: ConfigurationError | None = None
        self._configuration = configuration
        self._clients = clients
        self._connection = connection
        self._planner = planner
        self._tables = tables
        self._pipeline = pipeline
        self._unseen = unseen
        self._stood = stood
        self._chores = chores
        self._tickets: dict[int, int] = {}
        self._ticket = 0
        self._again: list[tuple[float, frozenset[int]]] = []
        self._task = background.task(CLAIMS)
        self.expired: dict[tuple[TableName, int, bytes | None], Expired] = {}
        self._passed_over: set[TableName] = set()

    @property
    def error(self) -> str | None:
        return self._task.error

    @property
    def pending(self) -> frozenset[int]:
        return frozenset(self._tickets)

    def begin(self, slots: Iterable[int]) -> None:
        """Restore ``slots`` anew, whatever was known of them."""
        wanted = frozenset(slots)
        if not wanted:
            return
        self._ticket += 1
        ticket = self._ticket
        for slot in wanted:
            self._tickets[slot] = ticket
        self._task.asked(self._clients.address)
        self._chores.submit(
            lambda: self._read(wanted, ticket), lambda found, error: self._done(ticket, wanted, found, error)
        )

    def look_at_positions(self, gone: Callable[[CdcError], None]) -> None:
        """A slot began anew: ``gone`` is called if its topic is another one."""

        def told(_: None, error: BaseException | None) -> None:
            if self._positions.replaced and isinstance(error, CdcError):
                gone(error)

        self._chores.submit(self._positions.check, told)

    def forget(self, slots: Iterable[int]) -> None:
        """Slots that are ours no more."""
        for slot in slots:
            self._tickets.pop(slot, None)
        if not self._tickets:
            self._task.dismiss()

    def tick(self) -> None:
        """Try again what failed. Raises ConfigurationError when another group runs the connector, and stays."""
        if self._refused is not None:
            raise self._refused
        now = time.monotonic()
        due = [slots for at, slots in self._again if at <= now]
        self._again = [(at, slots) for at, slots in self._again if at > now]
        for slots in due:
            self.begin(slot for slot in slots if slot in self._tickets)

    def _read(self, wanted: frozenset[int], ticket: int) -> _Restored:
        connector, group = self._configuration.connector, self._configuration.group
        # One that was made anew says that nothing was ever delivered.
        self._positions.check()
        # What comes next takes the transactional ids of former owners.
        self._one_group.take()
        slots = restore(
            self._clients,
            connector=connector.name,
            topic=connector.delivery.offset_topic,
            group=group,
            slots=wanted,
            topics=lambda: self._pipeline.all_topics,
            unseen=self._unseen,
            stood=self._stood,
            cancelled=lambda: not any(self._tickets.get(slot) == ticket for slot in wanted),
        )
        versions = last_versions(self._clients, connector.output.schema_topic, group)
        # Of those that cannot be described their reads will tell.
        answers = describe_tables(self._connection, list(self._tables)).values()
        described = [each for each in answers if isinstance(each, DescribedTable)]
        return _Restored(slots, versions, described)

    def _done(self, ticket: int, slots: frozenset[int], found: _Restored | None, error: BaseException | None) -> None:
        still = frozenset(slot for slot in slots if self._tickets.get(slot) == ticket)
        if not still:
            return
        if found is None:
            # Whatever it is: slots that are ours and that nobody restores would stand still for ever.
            self._task.failed(error or "no answer")
            pause = self._task.pause()
            if isinstance(error, ForeignGroup):
                pause = min(pause, FOREIGN_PAUSE)
                self._look_at_patience(error)
            self._again.append((time.monotonic() + pause, still))
            return
        self._task.worked()
        self._foreign_since, self._breath = None, self._session * random.uniform(*LONG_BREATH)
        self.forget(still)
        self._tables.recorded_versions(found.versions)
        for table in found.described:
            self._tables.seen(table)
        now = self._connection.clock.now_ms()
        for slot in sorted(still):
            entries = found.slots[slot].entries
            self._planner.restore(slot, entries)
            readable, wrong = told_apart(entries)
            for each in wrong:
                log.error("%s", each)
            self.look_for_expired(readable, now)
        self.look_for_passed_over(self._planner.tables)

    def look_for_expired(self, entries: Iterable[OffsetsEntry], now: int) -> None:
        """Of tables that are read, what their logs may not have any more."""
        for gone in expired(entries, self._tables, now):
            told = self.expired.get((gone.table, gone.slot, gone.stream))
            # A restore that is repeated, or a slot that comes back, is no news; but what was to be committed with the
            # news may never have been.
            if told is not None and gone.from_ms <= told.to_ms:
                self._need_snapshot(gone)
            else:
                self.report(gone)

    def look_for_passed_over(self, tables: Iterable[TableName]) -> None:
        """Whoever sets a mode after the first start waits for rows that never come."""
        for table in tables:
            if table not in self._passed_over and snapshot_passed_over(self._planner.tables[table]):
                self._passed_over.add(table)
                log.warning(
                    "%s: its positions are of a start without a snapshot, so that snapshot.mode=%s writes none of the "
                    "rows that it holds: `scylla-cdc snapshot start` asks for them (see docs/snapshots.md)",
                    table,
                    self._configuration.connector.reading.snapshot_mode,
                )

    def _look_at_patience(self, error: ForeignGroup) -> None:
        now = time.monotonic()
        if self._foreign_since is None:
            self._foreign_since = now
        if now - self._foreign_since >= self._breath:
            self._refused = self._one_group.refused(error)

    def report(self, gone: Expired) -> None:
        """Changes that may be lost."""
        self.expired[gone.table, gone.slot, gone.stream] = gone
        self._need_snapshot(gone)
        log.warning("%s", gone)

    def _need_snapshot(self, gone: Expired) -> None:
        self._planner.need_snapshot(gone.table, gone.slot, gone.from_ms + gone.kept_ms)
