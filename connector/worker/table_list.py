"""The tables that a worker reads, which may become others while it reads.

In: the configuration that counts now. Out: a table that is new to it is described, gets its topics, and is claimed and
read from where it stood; one that is no more is let go behind a commit, and keeps its positions. The others are read on
all the time. Servers are asked in a chore; everything that changes state runs in the owner's thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from connector.config import Configuration
from connector.delivery import (
    LARGEST_BATCH,
    KafkaClients,
    TopicFacts,
    prepare_topics,
    present_members,
    topic_partitions,
)
from connector.errors import CdcError, FatalSourceError
from connector.source import Background, Chores, Connection, DescribedTable, Purpose, Tables, Watch, describe_table
from connector.table_name import TableName
from connector.topology import TablesPlan
from connector.worker.objections import objections
from connector.worker.pipeline import Pipeline
from connector.worker.restoring import Restoring
from connector.worker.schemas import last_versions
from connector.worker.settings import specs_of_present
from connector.worker.topic_troubles import Unseen
from connector.worker.transactions import Transactions

log = logging.getLogger(__name__)

NEW_TABLES = Purpose(
    "new tables", "tables that were added are not read", "their changes wait in the log until its TTL", holds=False
)

# One that is not there may be created one day.
MISSING_SECONDS = 60.0
MEMBERS_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Found:
    """What the servers say of tables. ``strangers``: who wrote to their topics, and may have left something open."""

    described: list[DescribedTable] = field(default_factory=list)
    missing: dict[TableName, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, TopicFacts] = field(default_factory=dict)
    unusable: Mapping[str, str] = field(default_factory=dict)
    strangers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Looking:
    """What is asked of servers, in a chore."""

    clients: KafkaClients
    connection: Connection

    def at(
        self,
        configuration: Configuration,
        new: Sequence[TableName],
        missing: Collection[TableName],
        known: Collection[str],
        owners: Collection[str],
    ) -> _Found:
        """``missing`` are tables that are looked for at other times, ``known`` topics that need no look, ``owners``
        those that the tables' marks name."""
        group = configuration.group
        with self.clients.named():
            # An owner that is a member is alive, and its transactions are its own.
            present = present_members(self.clients, group, time.monotonic() + MEMBERS_SECONDS) if owners else set()
            versions = last_versions(self.clients, configuration.connector.output.schema_topic, group)
        found = _Found([], {}, versions, strangers=frozenset(owners) - present)
        # Behind the versions: an older description is not written behind a newer one.
        for table in new:
            try:
                described = describe_table(self.connection, table)
            except FatalSourceError as error:
                found.missing[table] = str(error)
                continue
            problems = objections(configuration, described)
            if problems:
                found.missing[table] = "; ".join(map(str, problems))
            else:
                found.described.append(described)
        with self.clients.named():
            admin = self.clients.admin()
            absent = {*missing, *found.missing}
            specs = specs_of_present(configuration, absent, topic_partitions(admin) if absent else ())
            topics, unusable = prepare_topics(admin, [spec for spec in specs if spec.name not in known])
        return replace(found, topics=topics, unusable=unusable)


class TableList:
    """Of one worker."""

    def __init__(
        self,
        *,
        configuration: Configuration,
        planner: TablesPlan,
        tables: Tables,
        watch: Watch,
        transactions: Transactions,
        restoring: Restoring,
        pipeline: Pipeline,
        looking: Looking,
        chores: Chores,
        unseen: Unseen,
        background: Background,
    ) -> None:
        self._configuration = configuration
        self._planner = planner
        self._tables = tables
        self._watch = watch
        self._transactions = transactions
        self._restoring = restoring
        self._pipeline = pipeline
        self._looking = looking
        self._chores = chores
        self._unseen = unseen
        self._background = background
        background.expect(NEW_TABLES)
        self._task = background.task(NEW_TABLES)
        self._under_way = False
        # All that is wanted is read, and nothing else: nothing to do before somebody wants something else.
        self._settled = False
        self._due = dict.fromkeys(tables.missing, time.monotonic() + MISSING_SECONDS)

    def want(self, configuration: Configuration) -> None:
        """Its tables count from now on."""
        self._configuration = configuration
        self.look_again()

    def look_again(self) -> None:
        """For tables that are not there, in the next round instead of when their time has come."""
        self._due.clear()
        self._settled = False

    def tick(self) -> None:
        """Let go what is no more wanted, and begin what is wanted and not read yet."""
        if self._settled:
            return
        wanted = self._configuration.connector.reading.tables
        for table in [each for each in self._tables.missing if each not in wanted]:
            self._tables.drop(table)
        gone = [each for each in self._tables if each not in wanted]
        if gone:
            self._let_go(gone)
        now = time.monotonic()
        new = [each for each in wanted if each not in self._tables and self._due.get(each, now) <= now]
        if new and not self._under_way:
            self._look_at(new)
        self._settled = self._tables.keys() == set(wanted)

    # -- letting go ------------------------------------------------------------------------------------------

    def _let_go(self, gone: Sequence[TableName]) -> None:
        """Behind the end of the transaction: a plan that has something in an open one would lose track of it."""
        transactions = self._transactions
        if transactions.ready:
            try:
                transactions.commit(move_marks=True)
            except CdcError as error:
                transactions.recover(error)
        if transactions.delivery.is_open:
            return
        for table in gone:
            log.info("%s: not read any more, as configured; its positions are kept", table)
            self._planner.drop_table(table)
            self._watch.drop(table)
            self._tables.drop(table)
            self._background.dismiss(table)

    # -- taking ----------------------------------------------------------------------------------------------

    def _look_at(self, new: Sequence[TableName]) -> None:
        self._under_way = True
        self._task.asked(self._looking.connection.address)
        known = self._pipeline.all_topics
        stored = [entry for table in new for entry in self._planner.stored(table)]
        owners = {entry.owner for entry in stored if entry.owner is not None}
        configuration, missing = self._configuration, self._tables.missing.keys() - set(new)
        self._chores.submit(
            lambda: self._looking.at(configuration, new, missing, known, owners),
            lambda found, error: self._seen(new, found, error),
        )

    def _seen(self, new: Sequence[TableName], found: _Found | None, error: BaseException | None) -> None:
        self._under_way = False
        if found is None:
            self._task.failed(error or "no answer")
            self._due |= dict.fromkeys(new, time.monotonic() + self._task.pause())
            return
        self._task.worked()
        wanted = self._configuration.connector.reading.tables
        self._take_topics(found)
        for table, why in found.missing.items():
            if table in wanted:
                self._fail(table, why)
        for described in found.described:
            if described.table in wanted:
                self._take(described, found.versions.get(str(described.table)))

    def _take_topics(self, found: _Found) -> None:
        for topic, why in found.unusable.items():
            log.error("topic %s takes no records: %s", topic, why)
            self._pipeline.suspend_topic(topic, why)
        for topic, facts in found.topics.items():
            if found.strangers:
                # Nobody has looked there when these were fenced: nothing is produced behind what they left open.
                self._unseen(topic, "transactions may be open in it", found.strangers)
            elif facts.max_message_bytes < LARGEST_BATCH:
                self._pipeline.suspend_topic(topic, "it takes smaller records than others")
            else:
                self._pipeline.resume_topic(facts)

    def _fail(self, table: TableName, why: str) -> None:
        if self._tables.missing.get(table) != why:
            log.error("%s: FAILED: %s", table, why)
        self._tables.missing[table] = why
        self._due[table] = time.monotonic() + MISSING_SECONDS

    def _take(self, described: DescribedTable, version: str | None) -> None:
        table = described.table
        log.info("%s: read from now on, from where it stood", table)
        self._due.pop(table, None)
        self._tables.take(described, version)
        self._planner.take_table(table)
        self._watch.take(table)
        now = self._looking.connection.clock.now_ms()
        self._restoring.look_for_expired(self._planner.stored(table), now)
        self._restoring.look_for_passed_over([table])
