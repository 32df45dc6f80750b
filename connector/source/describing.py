"""Describing: what each table is by now, asked for when somebody needs it, and when the schema has another version.

In: the `Tables` and what they ask, the time. Out: the tables learn each description, the planner which tables are gone;
what fails is tried again with growing pauses, and told by `Background`. Questions wait in chore threads; everything
that changes state runs in the owner thread.

A description is one node's. If it is older than what is known, that node lags, is avoided, and another one is asked;
unless all nodes say the same: then something was undone that leaves no trace.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from connector.errors import CdcDisabled, FatalSourceError, TableMissing
from connector.pauses import doubled
from connector.source.background import FIRST_PAUSE, OVERDUE_SECONDS, SOURCE, Background, Purpose
from connector.source.chores import Chores
from connector.source.connection import Connection
from connector.source.descriptions import TOGETHER, DescribedTable, describe_tables
from connector.source.hosts_in_turn import HostsInTurn
from connector.source.lagging import named
from connector.source.schema_rows import OneNode
from connector.source.schema_versions import VERSION_SECONDS, Answers, schema_versions
from connector.source.settings import ReadingSettings
from connector.source.tables import Tables
from connector.table_name import TableName
from connector.topology import SetsPlan

log = logging.getLogger(__name__)

# Where no node tells the version of its schema, all tables are described so often.
LOOK_SECONDS = 30.0

# When a version is seen for the first time all tables are described, and so often in all with the looks that follow: an
# attempt may have failed, and another node, which is asked then, may know an older schema.
SEEN_OFTEN = 2

# Nodes that were all away come back one after the other, and the first may be the one that lags: so long the others are
# waited for. The driver tries to reach each every five seconds, or a little more.
BACK_SECONDS = 7.0

# Whatever the versions say, every so many looks all tables are described.
LOOKS_AT_ALL = 20

# Who looked since then reads, however short the confidence window is.
LEAST_HELD_MS = 5_000

GONE_ATTEMPTS = 5
GONE_SECONDS = 5.0
# A table that is gone may be created again.
FAILED_SECONDS = 60.0

DESCRIPTION = Purpose(
    "description",
    "changes of the table's columns are not seen",
    "rows with new columns are not read before they are",
    holds=False,
    steady=True,
    behind=SOURCE,
)
VERSIONS = Purpose(
    DESCRIPTION.kind,
    "changes of the schema are not seen",
    "what was written since then is not read before somebody has looked: it may have new columns",
    steady=True,
    behind=SOURCE,
)
LOGGED = Purpose(
    "log",
    "its log lacks what is wanted",
    "what is written meanwhile is not delivered, or not as configured",
    holds=False,
)
LAGGING = Purpose(
    "schema",
    "this node answers by an older schema",
    "other nodes are asked in its place",
    holds=False,
    partial=True,
)


def without_cdc(described: DescribedTable) -> str | None:
    """What everybody wants of a table."""
    return None if described.description.cdc.enabled else "CDC was disabled; its log stays, and nothing is added"


class Describing:
    """Owned by one thread; `tick` is called every so often."""

    def __init__(
        self,
        planner: SetsPlan,
        connection: Connection,
        settings: ReadingSettings,
        chores: Chores,
        tables: Tables,
        background: Background,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        lacks: Callable[[DescribedTable], str | None] | None = None,
    ) -> None:
        """``lacks``: what is wanted of a table, also of one that never had it. None: CDC, if it had that."""
        self._planner = planner
        self._connection = connection
        self._settings = settings
        self._chores = chores
        self._tables = tables
        self._background = background
        self._monotonic = monotonic
        self._lacks = lacks or without_cdc
        self._lacking = set() if lacks is None else {table for table in tables if lacks(tables[table]) is not None}
        background.expect(DESCRIPTION, LOGGED, LAGGING)
        # Which question about each table is under way.
        self._asked: dict[TableName, object] = {}
        self._again: dict[TableName, float] = {}
        # Rows with a new column are read a confidence window after they were written: by then the column is known. Who
        # could not look for so long looks first.
        self._pace = min(LOOK_SECONDS, settings.poll_seconds)
        self._slack_ms = max(0, LEAST_HELD_MS - settings.confidence_ms)
        self._due = monotonic()
        self._looking = False
        self._versions = background.task(VERSIONS)
        # Until when those are waited for that have not answered since nobody did.
        self._awaited = float("-inf")
        # The last look that was answered: when it began, and what each node told.
        self._looked_ms = 0
        self._told: Mapping[Any, Any] = {}
        self._look_due = monotonic() + LOOK_SECONDS
        self._looks = 0
        self._in_turn = HostsInTurn(connection)
        # Why each node that lags does so, by table; and who says that something was undone.
        self._lagging: dict[Any, dict[TableName, str]] = {}
        self._undone: dict[TableName, set[Any]] = {}
        # By version: how often each table was described since it is there.
        self._seen: dict[Any, Counter[TableName]] = {}
        # Tables that were found to be others since the last look, and by which version.
        self._news: dict[TableName, Any] = {}
        self._missing: dict[TableName, tuple[int, float]] = {}
        # FAILED since they are gone, and when to look for them.
        self._lost: dict[TableName, float] = {}
        # They were read just now.
        for table in tables:
            tables.vouch(table, connection.clock.now_ms() + self._slack_ms)

    def tick(self, now: float) -> None:
        """Start what is due."""
        for table in self._tables.asked:
            self._background.task(DESCRIPTION, table).holds = True
            self.ask(table)
        for table in [table for table, due in self._again.items() if due <= now]:
            self.ask(table)
        if self._due <= now and not self._looking:
            self._due = now + self._pace
            self._looking = True
            began = self._connection.clock.now_ms()
            # Where none is in time, all may have too much to do.
            late = self._versions.attempts if self._awaited == float("inf") else 0
            seconds = doubled(VERSION_SECONDS, late + 1, OVERDUE_SECONDS)
            self._chores.submit(lambda: schema_versions(self._connection, seconds), partial(self._looked, began))

    def look_again(self) -> None:
        """At all tables, in the next round instead of when its time has come; those that are gone included."""
        now = self._monotonic()
        self._lost = dict.fromkeys(self._lost, now)
        self._due, self._seen = now, {}

    def drop(self, table: TableName) -> None:
        """Nobody reads it any more."""
        for known in (self._asked, self._again, self._missing, self._lost, self._undone):
            known.pop(table, None)
        for node in list(self._lagging):
            self._knows(node, table)
        self._lacking.discard(table)
        for purpose in (DESCRIPTION, LOGGED):
            self._background.task(purpose, table).dismiss()

    def ask(self, *tables: TableName, node: Any = None) -> None:
        """What are they now? ``node``: by whom, if that matters."""
        asked = [table for table in tables if table not in self._asked and not self._rests(table)]
        # A server that does not answer for one of many is not asked for the others: each is tried again by itself.
        for some in [asked] if len(asked) >= TOGETHER else [[table] for table in asked]:
            self._ask(some, node)

    def _ask(self, tables: Sequence[TableName], node: Any) -> None:
        question = object()
        for table in tables:
            self._again.pop(table, None)
            self._asked[table] = question
            node = self._tables.asking(table) or node
            self._background.task(DESCRIPTION, table).asked(self._connection.address)

        def done(answer: tuple[Any, Answers] | None, error: BaseException | None) -> None:
            whom, found = answer or (node, {})
            for table in tables:
                # Else it was dropped meanwhile, and perhaps taken again: then this answer is too old.
                if self._asked.get(table) is question:
                    self._found(table, error or found[table], whom)

        self._chores.submit(lambda: self._described(tables, node), done)

    def _described(self, tables: Sequence[TableName], node: Any) -> tuple[Any, Answers]:
        """In a chore."""
        node = node or self._in_turn.next()[0]
        return node, describe_tables(OneNode(self._connection, node), tables)

    # -- versions of the schema --------------------------------------------------------------------------------

    def _looked(self, began_ms: int, versions: Mapping[Any, Any] | None, error: BaseException | None) -> None:
        self._looking = False
        now = self._monotonic()
        told = {node: version for node, version in (versions or {}).items() if version is not None}
        trouble = self._away(error, versions or (), now)
        if trouble is None:
            self._versions.worked()
            self._looked_ms, self._told = began_ms, told
        most = 1
        if self._look_due <= now:
            self._look_due = now + LOOK_SECONDS
            self._looks += 1
            most = SEEN_OFTEN
            self._look_at_who_lags()
            if not told or not self._looks % LOOKS_AT_ALL:
                self.ask(*self._tables)
        if trouble is not None:
            # Nobody vouches for anything: what a node says that lags would be all that is known.
            self._versions.failed(trouble)
            self._due = min(self._due, now + self._versions.pause(longest=self._pace))
            return
        self._seen = {version: self._seen.get(version, Counter()) for version in told.values()}
        for version, node in {version: node for node, version in told.items()}.items():
            seen = self._seen[version]
            # Who has another version than that which brought news may lag.
            due = [each for each in self._tables if seen[each] < most or self._news.get(each, version) != version]
            for each in due:
                if each in self._asked:
                    self._tables.ask(each, node)  # behind the answer that is under way
            self.ask(*due, node=node)
        self._news.clear()
        for table in self._tables:
            self._vouch(table)
            if told:
                self._unchanged(table)

    def _away(self, error: BaseException | None, answered: Collection[Any], now: float) -> BaseException | str | None:
        """Why a look counts for nothing: nobody was heard; or nobody was just before, and some are not yet."""
        if error is not None:
            self._awaited = float("inf")
            return error
        self._awaited = min(self._awaited, now + BACK_SECONDS)
        away = len(self._connection.asked_hosts()) - len(answered)
        if away > 0 and now < self._awaited:
            return f"nodes that do not answer yet: {away}"
        self._awaited = float("-inf")
        return None

    def _vouch(self, table: TableName) -> None:
        """If there was nothing new, or it was found: rows from until then may be read."""
        if all(seen[table] for seen in self._seen.values()):
            self._tables.vouch(table, self._looked_ms + self._slack_ms)
        else:
            self._background.task(DESCRIPTION, table).holds = True

    def _unchanged(self, table: TableName) -> None:
        if self._planner.tables[table].failure is not None:
            self.ask(table)
        elif table not in self._asked and table not in self._again:
            self._background.task(DESCRIPTION, table).worked()

    # -- answers -----------------------------------------------------------------------------------------------

    def _found(self, table: TableName, found: DescribedTable | BaseException, node: Any) -> None:
        self._asked.pop(table)
        task = self._background.task(DESCRIPTION, table)
        # A node that knows no such table has answered as well.
        if isinstance(found, DescribedTable | FatalSourceError) and (version := self._told.get(node)) in self._seen:
            self._seen[version][table] += 1
        if table in self._tables.asked:
            # Asked for meanwhile: this answer is too old to be the one that is waited for, and may be all the news.
            if isinstance(found, DescribedTable):
                self._tables.seen(found)
                self._vouch(table)
            self.ask(table)
        elif isinstance(found, DescribedTable) and self._is_older(found, node):
            task.answered()
            self._again[table] = self._monotonic() + FIRST_PAUSE
            self._tables.unchanged(table, node)
            self._vouch(table)
        elif isinstance(found, DescribedTable):
            task.worked()
            task.holds = DESCRIPTION.holds
            self._knows(node, table)
            self._missing.pop(table, None)
            self._look_for_what_it_lacks(found)
            if self._tables.found(found, node):
                self._news[table] = self._told.get(node)
            self._vouch(table)
            if self._lost.pop(table, None) is not None:
                log.info("%s: it is there again", table)
                self._planner.revive_table(table)
        else:
            task.failed(found)
            pause = task.pause()
            if isinstance(found, TableMissing | CdcDisabled):
                pause = max(pause, self._settings.poll_seconds)
                self._gone(table, found)
            else:
                self._missing.pop(table, None)
            self._again[table] = self._monotonic() + pause
            if self._planner.tables[table].failure is not None:
                self._again.pop(table)
                task.dismiss()

    def _is_older(self, found: DescribedTable, node: Any) -> bool:
        table, lacks = found.table, self._tables.older(found)
        said = self._undone.setdefault(table, set())
        said.add(node)
        if lacks is None or said.issuperset(self._connection.hosts()):
            del self._undone[table]
            return False
        known = self._lagging.setdefault(node, {})
        known[table] = f"it has {lacks} in {table}"
        self._background.task(LAGGING, named(node)).failed("; ".join(known.values()))
        self._connection.avoid(node, 2 * LOOK_SECONDS)
        return True

    def _knows(self, node: Any, table: TableName) -> None:
        """A node does not lag, or nobody cares."""
        known = self._lagging.get(node, {})
        if known.pop(table, None) is not None and not known:
            del self._lagging[node]
            self._background.task(LAGGING, named(node)).worked()

    def _look_at_who_lags(self) -> None:
        present = set(self._connection.hosts())
        for node, known in list(self._lagging.items()):
            if node in present:
                self.ask(*known, node=node)
            else:
                del self._lagging[node]
                self._background.task(LAGGING, named(node)).dismiss()

    def _look_for_what_it_lacks(self, found: DescribedTable) -> None:
        """What it never had may be no news, as of a table whose log an index has brought."""
        table, lack = found.table, self._lacks(found)
        if lack is None:
            self._lacking.discard(table)
        elif self._lacks(self._tables[table]) is None:
            self._lacking.add(table)
        self._background.task(LOGGED, table).is_now(lack if table in self._lacking else None)

    def _gone(self, table: TableName, error: FatalSourceError) -> None:
        """A table that is missing may be a schema change on its way; one that stays missing is gone."""
        attempts, since = self._missing.get(table, (0, self._monotonic()))
        self._missing[table] = (attempts + 1, since)
        if attempts + 1 >= GONE_ATTEMPTS and self._monotonic() - since >= GONE_SECONDS:
            if table not in self._lost:
                log.error("%s: FAILED: %s", table, error)
                self._planner.fail_table(table, str(error), gone=True)
            self._lost[table] = self._monotonic() + FAILED_SECONDS

    def _rests(self, table: TableName) -> bool:
        """It is FAILED: it is looked for now and then if it was gone, and not any more for other reasons."""
        failed = self._planner.tables[table].failure is not None
        return failed and self._lost.get(table, float("inf")) > self._monotonic()
