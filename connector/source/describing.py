"""Describing: what each table is by now, asked for when somebody needs it, and when the schema has another version.

In: the `Tables` and what they ask, the time. Out: the tables learn each description, the planner which tables are gone;
what fails is tried again with growing pauses, and told by `Background`. Questions wait in chore threads; everything
that changes state runs in the owner thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from connector.errors import CdcDisabled, FatalSourceError, TableMissing
from connector.source.background import Background, Purpose
from connector.source.chores import Chores
from connector.source.connection import Connection
from connector.source.descriptions import TOGETHER, DescribedTable, describe_tables
from connector.source.hosts_in_turn import HostsInTurn
from connector.source.settings import ReadingSettings
from connector.source.tables import Tables
from connector.table_name import TableName
from connector.topology import SetsPlan

log = logging.getLogger(__name__)

# A column that nobody writes does not show in pages; landing wants to hear of it all the same.
LOOK_SECONDS = 30.0

# A version is believed to say that nothing has changed once all tables were described when it had been seen so often:
# the first time another node, which answers then, may still know an older schema.
SEEN_OFTEN = 2

# Whatever the version says, every so many looks all tables are described.
LOOKS_AT_ALL = 20

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
)
LOGGED = Purpose(
    "log",
    "its log lacks what is wanted",
    "what is written meanwhile is not delivered, or not as configured",
    holds=False,
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
        monotonic: Callable[[], float] = time.monotonic,
        lacks: Callable[[DescribedTable], str | None] = without_cdc,
    ) -> None:
        self._planner = planner
        self._connection = connection
        self._settings = settings
        self._chores = chores
        self._tables = tables
        self._background = background
        self._monotonic = monotonic
        self._lacks = lacks
        self._lacking: set[TableName] = set()
        background.expect(DESCRIPTION, LOGGED)
        # Which question about each table is under way.
        self._asked: dict[TableName, object] = {}
        self._again: dict[TableName, float] = {}
        self._due = monotonic() + LOOK_SECONDS
        self._looking = False
        self._in_turn = HostsInTurn(connection)
        self._version: object = None
        self._seen = 0
        self._looks = 0
        self._missing: dict[TableName, tuple[int, float]] = {}
        # FAILED since they are gone, and when to look for them.
        self._lost: dict[TableName, float] = {}

    def tick(self, now: float) -> None:
        """Start what is due."""
        for table in self._tables.asked:
            self._background.task(DESCRIPTION, table).holds = True
            self.ask(table)
        for table in [table for table, due in self._again.items() if due <= now]:
            self.ask(table)
        if self._due <= now and not self._looking:
            self._due = now + LOOK_SECONDS
            self._looking = True
            self._chores.submit(self._ask_version, self._looked)

    def look_again(self) -> None:
        """At all tables, in the next round instead of when its time has come; those that are gone included."""
        now = self._monotonic()
        self._lost = dict.fromkeys(self._lost, now)
        self._due, self._seen = now, 0

    def drop(self, table: TableName) -> None:
        """Nobody reads it any more."""
        for known in (self._asked, self._again, self._missing, self._lost):
            known.pop(table, None)
        self._lacking.discard(table)
        for purpose in (DESCRIPTION, LOGGED):
            self._background.task(purpose, table).dismiss()

    def ask(self, *tables: TableName) -> None:
        """What are they now?"""
        asked = [table for table in tables if table not in self._asked and not self._rests(table)]
        # A server that does not answer for one of many is not asked for the others: each is tried again by itself.
        for some in [asked] if len(asked) >= TOGETHER else [[table] for table in asked]:
            self._ask(some)

    def _ask(self, tables: Sequence[TableName]) -> None:
        question = object()
        for table in tables:
            self._again.pop(table, None)
            self._asked[table] = question
            self._tables.asking(table)
            self._background.task(DESCRIPTION, table).asked(self._connection.address)

        def done(found: Mapping[TableName, DescribedTable | BaseException] | None, error: BaseException | None) -> None:
            for table in tables:
                # Else it was dropped meanwhile, and perhaps taken again: then this answer is too old.
                if self._asked.get(table) is question:
                    self._found(table, error or (found or {})[table])

        self._chores.submit(lambda: describe_tables(self._connection, tables), done)

    # -- the version of the schema -----------------------------------------------------------------------------

    def _ask_version(self) -> Any:
        """One node in turn: who does not hear of changes shows when it is asked."""
        question = "SELECT schema_version FROM system.local WHERE key = 'local'"
        rows = self._connection.query(question, host=self._in_turn.next()[0])
        return rows[0]["schema_version"] if rows else None

    def _looked(self, version: Any, error: BaseException | None) -> None:
        self._looking = False
        self._looks += 1
        if error is not None or version is None or version != self._version:
            self._version, self._seen = version if error is None else None, 0
        if self._version is not None and self._seen >= SEEN_OFTEN and self._looks % LOOKS_AT_ALL:
            for table in self._tables:
                self._unchanged(table)
            return
        self._seen += 1
        self.ask(*self._tables)

    def _unchanged(self, table: TableName) -> None:
        if self._planner.tables[table].failure is not None:
            self.ask(table)
        elif table not in self._asked and table not in self._again:
            self._background.task(DESCRIPTION, table).worked()

    # -- answers -----------------------------------------------------------------------------------------------

    def _found(self, table: TableName, found: DescribedTable | BaseException) -> None:
        self._asked.pop(table)
        task = self._background.task(DESCRIPTION, table)
        if table in self._tables.asked:
            self.ask(table)  # asked for meanwhile: this answer is too old
        elif isinstance(found, DescribedTable):
            task.worked()
            task.holds = DESCRIPTION.holds
            self._missing.pop(table, None)
            self._look_for_what_it_lacks(found)
            self._tables.found(found)
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

    def _look_for_what_it_lacks(self, found: DescribedTable) -> None:
        """Since it is read: what it lacked before is no news, as of a table whose log an index has brought."""
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
