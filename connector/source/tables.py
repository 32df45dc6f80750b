"""Tables: the owner of what each table is, and of how far a change of it has come.

In: descriptions that were read, the columns of pages. Out: the description in force, by which rows are read and
encoded; which tables have to be described again; which schema records are still to be written. A changed column takes
the one way through it that docs/architecture.md draws. Owned by one thread.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from connector.changes import LogLayout, layout_of
from connector.errors import RetriableSourceError
from connector.source.descriptions import DescribedTable
from connector.source.lagging import OlderSchema, lacking, older
from connector.source.pages import RawPage
from connector.table_name import TableName

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Known:
    """Of one table. ``found`` is newer than ``in_force``, and waits until its schema record is committed."""

    in_force: DescribedTable
    found: DescribedTable | None = None
    # ``stopped``: nothing is read until it was described again, ``answered``: that question was.
    stopped: bool = False
    answered: bool = True
    # What the log's pages looked like last, and for which look the table was described again.
    shape: tuple[str, ...] | None = None
    described_for: tuple[str, ...] | None = None
    # Who has answered that: another node than gave a page may not know yet what it knows.
    told: set[Any] = field(default_factory=set)
    # What pages lack that the newest description has, by what they look like; and which of them it was read anew for.
    lacks: dict[tuple[str, ...], str | None] = field(default_factory=dict)
    looked_at: set[tuple[str, ...]] = field(default_factory=set)
    # Up to when no node knew more. None: nobody looks.
    vouched_ms: int | None = None
    # The version of its schema record: the committed one, the one in the open transaction, and of what it was made.
    version: str | None = None
    writing: str | None = None
    compared: DescribedTable | None = None

    @property
    def newest(self) -> DescribedTable:
        return self.found or self.in_force


class Tables(Mapping[TableName, DescribedTable]):
    """The descriptions in force. ``missing``: tables that could not be described at the start, and why."""

    def __init__(self, described: Iterable[DescribedTable], missing: Mapping[TableName, str] | None = None) -> None:
        self._known = {each.table: _Known(each) for each in described}
        self.missing = dict(missing or {})
        # Tables that are to be described again, and by which node, if one of them has to say it.
        self._asked: dict[TableName, Any] = {}
        # Whether schema records that were written are to be written once more.
        self._once_more = False

    def __getitem__(self, table: TableName) -> DescribedTable:
        return self._known[table].in_force

    def __iter__(self) -> Iterator[TableName]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    # -- which tables ------------------------------------------------------------------------------------------
    # Both replace what is known as a whole: threads that restore slots go through it.

    def take(self, described: DescribedTable, version: str | None) -> None:
        """One more; ``version``: of the record that the schemas topic has of it."""
        self.missing.pop(described.table, None)
        self._known = {**self._known, described.table: _Known(described, version=version)}

    def drop(self, table: TableName) -> None:
        """One less."""
        self.missing.pop(table, None)
        self._asked.pop(table, None)
        self._known = {each: known for each, known in self._known.items() if each != table}

    # -- the reader: how to read a page ------------------------------------------------------------------------

    def stopped(self, table: TableName) -> bool:
        """Reads of the table wait: a row must not be read with a description that is older than its columns."""
        return self._known[table].stopped

    def layout(self, table: TableName, page: RawPage) -> LogLayout | None:
        """How to read the page's rows. None: not with what is in force; reads are `stopped` until the table was
        described again by the node that gave the page. Raises OlderSchema if others know more than that one."""
        known, shape = self._known[table], page.shape
        if (lacks := self.lacking(table, page)) is not None:
            if shape in known.looked_at and not known.stopped:
                # Should it look so because a column was dropped, the answer tells.
                self._asked[table] = page.node
                raise OlderSchema(table, lacks, page.node)
            known.looked_at.add(shape)
            self._stop(table, page.node)
            return None
        if known.shape is None:
            known.shape = shape
        # While another page has stopped the reads, this one may hold what only the new description knows.
        anew = known.described_for != shape
        if not known.stopped and not (anew and known.shape != shape):
            try:
                layout = layout_of(known.in_force.description, page.signature)
            except RetriableSourceError as error:
                log.debug("%s: %s", table, error)
            else:
                if not layout.unknown or (not anew and page.node in {None, *known.told}):
                    return layout
        if anew:
            known.told.clear()
        known.shape = known.described_for = shape
        self._stop(table, page.node)
        return None

    def stop(self, table: TableName) -> None:
        """It is another one now: nothing is read until it was described again."""
        self._stop(table, None)

    def knows(self, table: TableName, until_ms: int) -> bool:
        """Whether rows from before then may be read: their columns are known, if any node knows them."""
        vouched = self._known[table].vouched_ms
        return vouched is None or until_ms <= vouched

    def lacking(self, table: TableName, page: RawPage) -> str | None:
        """What the page lacks that the log has by the newest description: its node knows an older one, or a newer."""
        known, shape = self._known[table], page.shape
        if shape not in known.lacks:
            known.lacks[shape] = lacking(known.newest, page)
        return known.lacks[shape]

    def _stop(self, table: TableName, node: Any) -> None:
        known = self._known[table]
        known.stopped, known.answered = True, False
        self._asked[table] = node

    # -- the watch: asking and finding -------------------------------------------------------------------------

    def vouch(self, table: TableName, until_ms: int) -> None:
        """All that nodes knew then is known here."""
        if table in self._known:
            self._known[table].vouched_ms = until_ms

    def ask(self, table: TableName, node: Any = None) -> None:
        """Have the table described again, soon; by a certain node, if that matters."""
        if table in self._known:
            self._asked[table] = node

    @property
    def asked(self) -> list[TableName]:
        """Tables to be described for somebody's sake, from now on: an answer that is under way is too old."""
        return list(self._asked)

    def asking(self, table: TableName) -> Any:
        """The question is on its way. Who has to answer it; None if that does not matter."""
        return self._asked.pop(table, None)

    def older(self, described: DescribedTable) -> str | None:
        """What shows that somebody knew more before."""
        return older(described.description, self._known[described.table].newest.description)

    def found(self, described: DescribedTable, node: Any = None) -> bool:
        """The answer of a node: what the table is now. Whether that is news."""
        is_news = self._take(described)
        self.unchanged(described.table, node)
        return is_news

    def unchanged(self, table: TableName, node: Any = None) -> None:
        """The answer of a node: nothing that was not known."""
        known = self._known[table]
        known.told.add(node)
        known.answered = True
        if known.found is None:
            known.stopped = False

    def seen(self, described: DescribedTable) -> None:
        """What the table is, read without being asked: whoever waits for an answer goes on waiting."""
        if described.table in self._known and self.older(described) is None:
            self._take(described)

    def _take(self, described: DescribedTable) -> bool:
        known = self._known[described.table]
        is_news = described != known.newest
        if is_news:
            known.found = described
            known.lacks.clear()
            known.looked_at.clear()
        return is_news

    # -- transactions: schema records --------------------------------------------------------------------------

    @property
    def changed(self) -> bool:
        """A description waits to be put in force, or to be written once more."""
        return self._once_more or self.found_others

    @property
    def found_others(self) -> bool:
        """A description waits to be put in force: nothing may be encoded by it before."""
        return any(known.found is not None for known in self._known.values())

    def put_in_force(self) -> None:
        """The schema records of what was found are committed, or nobody wants any: read on by it."""
        self._once_more = False
        for known in self._known.values():
            if known.found is not None:
                known.in_force, known.found = known.found, None
                known.stopped = known.stopped and not known.answered

    def unrecorded(self) -> list[DescribedTable]:
        """The newest descriptions of which it is not known that their schema records are written."""
        return [known.newest for known in self._known.values() if known.compared is not known.newest]

    def record(self, described: DescribedTable, version: str) -> bool:
        """Its schema record has this version. Whether it is another one than was written last: then it is now."""
        known = self._known[described.table]
        known.compared = described
        if (known.writing or known.version) == version:
            return False
        known.writing = version
        return True

    def recorded(self) -> None:
        """The transaction with these records is committed."""
        for known in self._known.values():
            known.version, known.writing = known.writing or known.version, None

    def not_recorded(self) -> None:
        """It was aborted."""
        for known in self._known.values():
            if known.writing is not None:
                known.writing = known.compared = None

    def recorded_versions(self, versions: Mapping[str, str]) -> None:
        """What stands in the schemas topic, by ``keyspace.table``: others may have written since."""
        for table, known in self._known.items():
            known.version, known.compared = versions.get(str(table)), None

    def describe_again(self, versions: Mapping[str, str]) -> list[TableName]:
        """Those of whose written records none stands in the schemas topic any more: they are to be written again."""
        missed = [
            table for table, known in self._known.items() if known.version is not None and str(table) not in versions
        ]
        for table in missed:
            self._known[table].version = self._known[table].compared = None
        self._once_more |= bool(missed)
        return missed
