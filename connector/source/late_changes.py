"""Late changes: rows in closed streams that came after the streams' end, looked for once a change of streams is over.

In: a planner that says which closed groups are due, a consumer. Out: what is found, delivered by time where the order
of its key still allows that, else given up by the consumer; a warning and a count in either case. Queries wait in chore
threads; everything that changes state runs in the owner thread. The rules are in `connector.topology.looks`.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from connector.changes import Batch, BatchAssembler, layout_of
from connector.cql_names import quote_identifier
from connector.errors import CdcError, PoisonRow, RetriableSourceError, TooLate
from connector.source.base_rows import read_pages
from connector.source.chores import Chores
from connector.source.connection import Connection
from connector.source.consumer import Consumer, Postponed
from connector.source.lagging import OlderSchema
from connector.source.log_reader import LogTable
from connector.source.pages import RawPage, Row
from connector.source.reading import LARGEST_IN_LIST, Reading
from connector.source.tables import Tables
from connector.table_name import TableName
from connector.timeuuid import lowest_uuid, time_key, uuid_text
from connector.topology import Held, LooksPlan, Read, beyond

log = logging.getLogger(__name__)

# Chore threads are few, and stream sets and claims need them as well.
LOOKS_AT_ONCE = 2

# Pause before a look that failed is tried again.
RETRY_MS = 5_000

# Pause until stream sets were polled again.
POLL_MS = 500

# So often what other workers may overtake is taken back, and searched for again, before it is given up.
TRIES = 10

# Nothing is written later than this after now: ScyllaDB refuses it.
FUTURE_MS = 60_000

# A description may be older than the rows; it is read again so often before what it lacks is taken as it comes.
DESCRIPTIONS = 3

DELIVERED, DEAD_LETTER, LOST = "delivered", "dead_letter", "lost"


class LateConsumer(Consumer, Protocol):
    """Whoever delivers, as for `Reading`."""

    def give_up(self, read: Read, batch: Batch, reason: str) -> bool:
        """Called with a batch that would come behind a later one of its key. Whether it was kept elsewhere."""

    @property
    def takes_back(self) -> bool:
        """What was delivered may be taken back until it is settled."""

    def settle(self, by: float | None) -> None:
        """All that a look found was handed on. ``by``: if it is not delivered by then, on the monotonic clock, it must
        be taken back, and TooLate raised."""


class LateChanges:
    """All looks of one process. ``found`` counts batches by table and what became of them."""

    def __init__(
        self,
        planner: LooksPlan,
        connection: Connection,
        chores: Chores,
        tables: Tables,
        reading: Reading,
        consumer: LateConsumer,
    ) -> None:
        self._planner = planner
        self._connection = connection
        self._asking = _Asking(connection, reading.log.charge_look)
        self._chores = chores
        self._tables = tables
        self._reading = reading
        self._consumer = consumer
        self._under_way = 0
        self._described: Counter[TableName] = Counter()
        self._tries: Counter[tuple[TableName, bytes]] = Counter()
        self.found: Counter[tuple[TableName, str]] = Counter()
        self.looks = 0
        self.last: str | None = None

    def pump(self, now_ms: int) -> None:
        """Start what is due, within the share of the budget that looks have."""
        if not self._reading.log.may_look:
            return
        for read in self._planner.looks(now_ms, LOOKS_AT_ONCE - self._under_way):
            self._under_way += 1
            self.looks += 1
            table = self._tables[read.table].log
            ask = partial(_rows, self._asking, table, "*", read.streams, read.read_to, read.limit)
            self._chores.submit(ask, partial(self._seen, read))

    # -- steps of a look -------------------------------------------------------------------------------------

    def _seen(self, read: Read, pages: Sequence[RawPage], error: BaseException | None) -> None:
        if not self._goes_on(read, error):
            return
        try:
            batches = self._batches(read, pages)
        except PoisonRow as poison:
            log.error("%s: late changes cannot be read: %s", read.table, poison)
            batches = []
        if batches is None:
            self._later(read)
            return
        if not batches:
            self._end(read)
            self._planner.finish_look(read, False, self._now)
            return
        held = self._planner.hold(read, self._now)
        if held is None:
            self._later(read, POLL_MS)
            return
        if held.within_ms is not None and not (self._consumer.takes_back and self._tries[_place(read)] < TRIES):
            self._hand_on(read, batches, None, None)
            return
        by = None if held.within_ms is None else time.monotonic() + held.within_ms / 1000
        table = self._tables[read.table].log
        keys = {key for batch in batches for key in _partitions(batch)}
        columns = [place.name for place in batches[0].layout.partition_key]
        first = min(batch.timestamp_us // 1000 for batch in batches)
        ask = partial(_newest, self._asking, table, columns, held, (first, self._now + FUTURE_MS), keys)
        self._chores.submit(ask, lambda newest, failed: self._searched(read, batches, newest, by, failed))

    def _searched(
        self,
        read: Read,
        batches: Sequence[Batch],
        newest: dict[Row, int],
        by: float | None,
        error: BaseException | None,
    ) -> None:
        if not self._goes_on(read, error):
            return
        if by is not None and time.monotonic() >= by:
            self._tries[_place(read)] += 1
            self._later(read)
            return
        self._hand_on(read, batches, newest, by)

    def _hand_on(self, read: Read, batches: Sequence[Batch], newest: dict[Row, int] | None, by: float | None) -> None:
        """Deliver by time what comes behind nothing later; ``newest`` per partition is None where nobody can tell."""
        self._end(read)
        outcomes: Counter[str] = Counter()
        for batch in batches:
            if not self._planner.is_current(read):
                return  # a commit in between found the slot gone: whoever has it now looks again
            at = time_key(batch.time)
            in_order = newest is not None and all(newest.get(key, 0) <= at for key in _partitions(batch))
            reason = None if in_order else _reason(batch, newest is None)
            if reason is None:
                try:
                    self._consumer.deliver(read, [batch])
                except Postponed as error:
                    self._reading.postpone(read, error)
                    self._planner.look_later(read, self._now + RETRY_MS)
                    return
                except PoisonRow as poison:
                    # Nobody waits for the group any more: it need not fail, as one in the middle of its life does.
                    reason = str(poison)
            outcome = DELIVERED
            if reason is not None:
                outcome = DEAD_LETTER if self._consumer.give_up(read, batch, reason) else LOST
            # A transaction that was cut in front of the batch can have lost the slot.
            if not self._planner.advance(read, batch.stream_id, batch.time):
                return
            outcomes[outcome] += 1
        try:
            self._consumer.settle(by)
        except TooLate:
            self._tries[_place(read)] += 1
            raise
        self._tries.pop(_place(read), None)
        self._report(read, batches, outcomes)
        self._reading.retries.over(read.state)
        self._planner.finish_look(read, True, self._now)

    def _report(self, read: Read, batches: Sequence[Batch], outcomes: Counter[str]) -> None:
        self.found.update({(read.table, outcome): count for outcome, count in outcomes.items()})
        assert read.state.close is not None
        streams = sorted({batch.stream_id.hex() for batch in batches})
        first, last = (_moment(batches[at].timestamp_us // 1000) for at in (0, -1))
        self.last = (
            f"{read.table}: {len(batches)} change{'' if len(batches) == 1 else 's'} came into streams that had "
            f"ended at {_moment(read.state.close)} ({', '.join(streams[:4])}), written from {first} to {last}: "
            + ", ".join(f"{count} {_SHOWN[outcome]}" for outcome, count in sorted(outcomes.items()))
            + "; a node learnt too late of the new streams (is its ring_delay too short?)"
        )
        log.log(logging.ERROR if outcomes[LOST] else logging.WARNING, "%s", self.last)

    # -- inside ----------------------------------------------------------------------------------------------

    @property
    def _now(self) -> int:
        return self._connection.clock.now_ms()

    def _end(self, read: Read) -> None:
        self._under_way -= 1

    def _later(self, read: Read, pause_ms: int = RETRY_MS) -> None:
        self._end(read)
        self._planner.look_later(read, self._now + pause_ms)

    def _goes_on(self, read: Read, error: BaseException | None) -> bool:
        if not self._planner.is_current(read):
            self._end(read)
            return False
        if error is None:
            return True
        if not isinstance(error, CdcError):
            raise error
        log.warning("%s: looking for late changes: %s; retrying", read.table, error)
        self._later(read)
        return False

    def _batches(self, read: Read, pages: Sequence[RawPage]) -> list[Batch] | None:
        """What was not handed on before, by time; None if the table has to be described anew first."""
        assembler = BatchAssembler()
        found: list[Batch] = []
        for page in pages:
            if (lacks := self._tables.lacking(read.table, page)) is not None:
                log.warning("looking for late changes: %s; retrying", OlderSchema(read.table, lacks, page.node))
                self._reading.log.avoid(page.node)
                self._tables.ask(read.table, page.node)
                return None
            described = self._tables[read.table].description
            try:
                layout = layout_of(described, page.signature)
            except RetriableSourceError:
                layout = None
            if layout is None or (layout.unknown and self._described[read.table] < DESCRIPTIONS):
                self._described[read.table] += 1
                self._tables.ask(read.table)
                return None
            found += assembler.feed(layout, page.rows)
        found += assembler.finish()
        self._described.pop(read.table, None)
        return sorted(
            (batch for batch in found if beyond(read.state, batch.stream_id, batch.time)),
            key=lambda batch: time_key(batch.time),
        )


_SHOWN = {
    DELIVERED: "delivered in the order of its key",
    DEAD_LETTER: "in the dead-letter topic, since it would have come behind later changes of its partition",
    LOST: "not delivered, since it would have come behind later changes of its partition",
}


def _reason(batch: Batch, unknown: bool) -> str:
    why = (
        "other workers read what its partition is written to since, and nothing shows in time that they have not "
        "delivered later changes of it"
        if unknown
        else "a later change of its partition was delivered already, or is about to be by another worker"
    )
    return f"the change at {uuid_text(batch.time)} came into stream 0x{batch.stream_id.hex()} after its end, and {why}"


def _place(read: Read) -> tuple[TableName, bytes]:
    return read.table, read.streams[0]


def _partitions(batch: Batch) -> set[Row]:
    places = [place.value or 0 for place in batch.layout.partition_key]
    return {tuple(row[at] for at in places) for row in batch.rows}


@dataclass(frozen=True, slots=True)
class _Asking:
    """Whom looks ask, and who is told of every query."""

    connection: Connection
    charge: Callable[[], None]

    def statement(self, query: str, values: Sequence[object]) -> object:
        """Bound for one page."""
        self.charge()
        return self.connection.statement(query, values)


def _rows(
    asking: _Asking, table: LogTable, columns: str, streams: Sequence[bytes], lower_ms: int, upper_ms: int
) -> list[RawPage]:
    """All pages of the streams from one ms to another. In a chore."""
    query = (
        f'SELECT {columns} FROM {table.cql} WHERE "cdc$stream_id" IN ? '
        'AND "cdc$time" >= ? AND "cdc$time" < ? BYPASS CACHE'
    )
    bounds = [uuid.UUID(bytes=lowest_uuid(ms)) for ms in (lower_ms, upper_ms)]
    pages: list[RawPage] = []
    for at in range(0, len(streams), LARGEST_IN_LIST):
        some = list(streams[at : at + LARGEST_IN_LIST])
        pages += read_pages(asking.connection, partial(asking.statement, query, [some, *bounds]))
    return pages


def _newest(
    asking: _Asking,
    table: LogTable,
    columns: Iterable[str],
    held: Held,
    between: tuple[int, int],
    keys: set[Row],
) -> dict[Row, int]:
    """The newest time of each of the partitions in what the relatives have, or may have, delivered. In a chore."""
    wanted = ", ".join(['"cdc$time"', *map(quote_identifier, columns)])
    newest: dict[Row, int] = {}
    lower_ms, upper_ms = between
    for relative in held.relatives:
        upto = upper_ms if relative.upto is None else relative.upto
        if upto <= lower_ms:
            continue
        for page in _rows(asking, table, wanted, relative.streams, lower_ms, upto):
            for at, *key in page.rows:
                if at is not None and tuple(key) in keys:
                    newest[tuple(key)] = max(newest.get(tuple(key), 0), time_key(at))
    return newest


def _moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
