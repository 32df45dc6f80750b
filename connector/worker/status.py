"""Status of one worker: what `status`, `/health`, metrics and the status topic show.

In: a worker. Out: its `WorkerStatus`, from small builders; no secret is ever in it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator

from connector.config import Configuration
from connector.source import STREAM_SETS, Failing, instant
from connector.table_name import TableName
from connector.topology import (
    Reason,
    TableState,
    Waiting,
    committed_in,
    last_snapshot,
    share_done,
    snapshot_over,
    visible_to,
)
from connector.worker.about import About
from connector.worker.grace import Grace
from connector.worker.snapshot_paces import Pace, SnapshotPaces
from connector.worker.state import State
from connector.worker.status_document import (
    DeliveryStatus,
    FailingStatus,
    NativeStatus,
    PollStatus,
    ReadingStatus,
    RetryStatus,
    SnapshotStatus,
    TableStatus,
    WaitingStatus,
    WorkerStatus,
    last_to_end,
)
from connector.worker.unclaimed import Unclaimed
from connector.worker.worker import Worker

# Of what waits or is being retried, this many are listed; the numbers count all of them.
LISTED = 20


class Snapshots:
    """Of one worker. It remembers the last position of each table that was known."""

    def __init__(self, worker: Worker, about: About) -> None:
        self._worker = worker
        self._about = about
        self._positions: dict[TableName, int] = {}
        self._paces = SnapshotPaces()
        self._grace = Grace()
        self._unclaimed = Unclaimed()
        self._configuration: tuple[Configuration, str] | None = None

    def take(self) -> WorkerStatus:
        """Everything worth knowing, now."""
        worker = self._worker
        clock, connector = worker.connection.clock, worker.configuration.connector
        now = clock.now_ms()
        reasons = waiting_for(worker)
        lasting = any(failing.holds for failing in worker.background.failing(lasting=True))
        if passing := self._grace.covers(bool(reasons), lasting):
            reasons = []
        tables = self._tables(now, passing, bool(reasons) and stands_still(worker))
        failed = any(table.state is State.FAILED for table in tables.values())
        return WorkerStatus(
            worker=worker.who.client_id,
            index=worker.who.index,
            connector=connector.name,
            host=self._about.host,
            pid=self._about.pid,
            version=self._about.version,
            started_ms=self._about.started_ms,
            scylla_version=self._about.scylla_version,
            kafka_version=self._about.kafka_version,
            native=NativeStatus(
                on=worker.native.kernel is not None,
                blocks=worker.native.client is not None,
                why_not=worker.native.why_not,
            ),
            fingerprint=self._fingerprint(),
            tables_configured=tuple(sorted(tables)),
            time_ms=int(time.time() * 1000),
            server_time_ms=now,
            clock_skew_ms=round(clock.skew_ms),
            warnings=self._about.warnings,
            state=State.FAILED if failed else State.WAITING if reasons else State.RUNNING,
            waiting_for="; ".join(reasons) or None,
            slots=tuple(sorted(worker.membership.owned)),
            slots_pending=tuple(sorted(worker.restoring.pending)),
            in_group=bool(worker.membership.member_id),
            slot_count=worker.planner.book.slots,
            tables=tables,
            reading=_reading(worker),
            delivery=DeliveryStatus(
                commits=worker.delivery.commits,
                aborts=worker.delivery.aborts,
                open=worker.delivery.is_open,
                rebalances=worker.membership.rebalances,
                transaction_records=worker.transactions.measures.records.status(),
            ),
            retrying=_retrying(worker),
            polls=tuple(
                PollStatus(tables=tuple(map(str, poll.tables)), error=poll.error, attempts=poll.attempts)
                for poll in worker.watch.polls
            ),
            background=tuple(map(_failing, worker.background.failing())),
            background_seconds={kind: round(age, 1) for kind, age in worker.background.kinds().items()},
            errors={
                "last": worker.transactions.last_error,
                "kafka": worker.clients.health.error,
                "claiming": worker.restoring.error,
                "dead_letter": worker.pipeline.last_dead_letter,
                "late_changes": worker.late.last,
            },
            topics=tuple(sorted(worker.pipeline.written)),
            snapshots_over=not worker.tables.missing and all(map(snapshot_over, worker.planner.tables.values())),
        )

    def _fingerprint(self) -> str:
        """Made anew only where another configuration is in force: it names all tables."""
        configuration = self._worker.configuration
        if self._configuration is None or self._configuration[0] is not configuration:
            self._configuration = configuration, configuration.fingerprint()
        return self._configuration[1]

    def _tables(self, now: int, passing: bool, stands: bool) -> dict[str, TableStatus]:
        """``passing``: what the worker waits for is no state yet; ``stands``: nothing is delivered meanwhile."""
        waiting: defaultdict[TableName, list[Waiting]] = defaultdict(list)
        for each in self._worker.planner.waiting(now):
            waiting[each.table].append(each)
        failing = self._worker.background.failing(lasting=True)
        tables = {
            str(name): self._table(plan, waiting[name], failing, now, passing, stands)
            for name, plan in self._worker.planner.tables.items()
        }
        for name, reason in self._worker.tables.missing.items():
            tables[str(name)] = TableStatus(state=State.FAILED, error=reason, failed_groups=0, waiting=())
        return tables

    def _table(
        self, plan: TableState, waiting: list[Waiting], everywhere: list[Failing], now: int, passing: bool, stands: bool
    ) -> TableStatus:
        worker, table, name = self._worker, plan.table, str(plan.table)
        measures = worker.transactions.measures
        broken = [each for each in waiting if each.reason is Reason.FAILED]
        failed = [each for each in broken if each.range_end is not None]
        # Of a slot whose entries cannot be read nobody knows how far it is.
        position = (
            None if any(each.slot is not None and each.range_end is None for each in broken) else visible_to(plan)
        )
        whole = plan.failure is not None
        failing = [each for each in everywhere if concerns(worker, each, plan)]
        waits = stands or (_waits(waiting, position) and not passing) or any(each.holds for each in failing)
        return TableStatus(
            state=State.FAILED if broken else State.WAITING if waits else State.RUNNING,
            # One that is gone is looked for: whoever reads nothing else waits for it.
            all_failed=not plan.gone and (whole or _all_of(plan, len(failed))),
            position_ms=position,
            lag_ms=self._lag(plan, position, now),
            groups=plan.groups,
            failed_groups=len(failed),
            stream_set=plan.newest.timestamp if plan.newest is not None else None,
            records=worker.pipeline.records[name],
            dead_letters=worker.pipeline.dead_letters[name],
            late_changes={what: count for (where, what), count in worker.late.found.items() if where == table},
            skipped={what: count for (where, what), count in worker.encoder.skipped.items() if where == name},
            error=broken[0].note if broken else None,
            failing=tuple(map(str, failing)),
            expired=sum(where[0] == table for where in worker.restoring.expired),
            waiting=tuple(map(_waiting, waiting[:LISTED])),
            waiting_count=len(waiting),
            log_ttl_seconds=self._kept(plan, position),
            latency_seconds=measures.latency[name].status() if name in measures.latency else None,
            batch_rows=measures.rows[name].status() if name in measures.rows else None,
            snapshot=self._snapshot(plan, now),
        )

    def _lag(self, plan: TableState, position: int | None, now: int) -> int | None:
        """How far behind. While slots are restored no position is known: then the last one that was, or an outage would
        show as no lag at all; and in those that came to us since, what is committed."""
        table = plan.table
        if position is not None:
            self._positions[table] = position
        elif self._worker.membership.settled and self._worker.membership.owned <= plan.readable_slots():
            self._positions.pop(table, None)  # others have its slots, or all in which it has streams
        known = [at for at in (self._positions.get(table), *self._unread(plan)) if at is not None]
        return max(0, now - max(min(known), self._oldest(table, now))) if known else None

    def _unread(self, plan: TableState) -> Iterator[int | None]:
        """Where slots stand that are ours and not read yet, and those of which nobody else may tell."""
        owned = self._worker.membership.owned
        for slot in (owned - plan.active) | self._worker.silent_slots.besides(owned):
            yield committed_in(plan, slot)
        if owned:
            yield self._unclaimed.stands(plan, owned)

    def _snapshot(self, plan: TableState, now: int) -> SnapshotStatus | None:
        last = last_snapshot(plan)
        if last is None:
            return None
        (name, snapshot), snapshots = last, self._worker.snapshots
        counters, done = snapshots.counters, share_done(plan, name)
        if snapshot.ended is not None or snapshot.paused:
            self._paces.forget(plan.table)
            pace = Pace()
        else:
            pace = self._paces.of(plan.table, name, now, done, counters.rows[plan.table, name])
        refused = snapshots.refused(plan.table)
        return SnapshotStatus.of(
            snapshot,
            done,
            rows=counters.rows[plan.table, name],
            chunks=counters.chunks[plan.table, name],
            rereads=counters.rereads[plan.table, name],
            undecided=snapshots.undecided(plan.table),
            refused=refused,
            held_bytes=snapshots.held_bytes_of(plan.table),
            rows_per_second=pace.rows_per_second,
            seconds_left=last_to_end(refused, [pace.seconds_left]),
        )

    def _oldest(self, table: TableName, now: int) -> int:
        """Before this no row of the log can be: "from the oldest" is stored as 0."""
        if table not in self._worker.tables:
            return 0
        ttl, listed = self._ttl(table), self._worker.planner.tables[table].lineage.oldest_listed
        return max(listed or 0, now - ttl * 1000 if ttl else 0)

    def _kept(self, plan: TableState, position: int | None) -> int | None:
        """For how long the log keeps what is not read; None for ever."""
        kept = None if position is None else plan.kept.least(position)
        return self._ttl(plan.table) if kept is None else kept or None

    def _ttl(self, table: TableName) -> int | None:
        """For how long the log keeps a row that is written now; None for ever."""
        described = self._worker.tables.get(table)
        return None if described is None else described.description.cdc.ttl or None


def _all_of(plan: TableState, failed: int) -> bool:
    """Whether so many are all groups in which there is something to read."""
    if not failed:
        return False
    groups = (state for slot in plan.active for state in plan.lineage.groups(slot))
    return failed >= sum(not state.drained for state in groups)


def waiting_for(worker: Worker) -> list[str]:
    """What keeps the worker, or a table of it, from delivering all that there is."""
    reasons = [str(failing) for failing in worker.background.failing(lasting=True) if failing.holds]
    if not worker.delivery.ready and not reasons:
        cause = worker.clients.health.error
        reasons.append(f"a Kafka producer (Kafka at {worker.clients.address}{f': {cause}' if cause else ''})")
    if not worker.membership.member_id and not reasons:
        reasons.append(f"the consumer group {worker.configuration.group} to take the worker in")
    elif not worker.membership.settled and not reasons:
        reasons.append(f"the consumer group {worker.configuration.group} to say which slots are the worker's")
    if worker.restoring.pending and not reasons:
        reasons.append(f"slots {', '.join(map(str, sorted(worker.restoring.pending)))} to be restored")
    return reasons


def stands_still(worker: Worker) -> bool:
    """Whether what the worker waits for is waited for by all of its tables: Kafka, the group, ScyllaDB as a whole. That
    a transaction was taken back because of one of them is that one's."""
    holding = [failing for failing in worker.background.failing(lasting=True) if failing.holds]
    told = {failing.error for failing in holding if failing.about}
    return not holding or any(not failing.about and failing.error not in told for failing in holding)


def concerns(worker: Worker, failing: Failing, plan: TableState) -> bool:
    """Whether a task is about the table, by itself or among others."""
    if failing.about == str(plan.table):
        return True
    polls = worker.watch.polls
    return failing.kind == STREAM_SETS.kind and any(
        plan.table in poll.tables and poll.task.about == failing.about for poll in polls
    )


def _waits(listed: list[Waiting], position: int | None) -> bool:
    waiting = [each for each in listed if each.reason is not Reason.FAILED]
    # Nothing is known yet of where these stand: without them the position would promise more than is true.
    unplaced = any(each.slot is not None and each.range_end is None for each in waiting)
    return unplaced or (bool(waiting) and position is None)


def _reading(worker: Worker) -> ReadingStatus:
    reading, counters = worker.reading, worker.reading.counters
    return ReadingStatus(
        rows=counters.rows,
        pages=counters.pages,
        reads=counters.reads,
        batches=counters.batches,
        queries=worker.connection.queries,
        in_flight=reading.log.in_flight,
        waiting=reading.log.waiting,
        pause_ms=reading.pause_ms,
        late_ms=reading.late_ms,
        retries=reading.retries.total,
    )


def _retrying(worker: Worker) -> tuple[RetryStatus, ...]:
    listed = list(worker.reading.retries.groups.items())[:LISTED]
    return tuple(
        RetryStatus(slot=getattr(group, "slot", None), attempts=trouble.attempts, error=str(trouble.error))
        for group, trouble in listed
    )


def _failing(failing: Failing) -> FailingStatus:
    return FailingStatus(
        task=failing.kind.replace(" ", "_"),
        about=failing.about or None,
        since=instant(failing.since),
        since_ms=round(failing.since * 1000),
        seconds=round(failing.seconds, 1),
        attempts=failing.attempts,
        error=failing.error,
        what=failing.broken,
        waits=failing.waits,
        holds_delivery=failing.holds,
        text=str(failing),
    )


def _waiting(each: Waiting) -> WaitingStatus:
    return WaitingStatus(
        reason=each.reason.value,
        slot=each.slot,
        streams=tuple(stream.hex() for stream in each.streams[:4]),
        read_to=each.read_to,
        at=each.at,
        waits_for=tuple(stream.hex() for stream in each.waits_for[:4]),
        waits_for_slot=each.waits_for_slot,
        note=each.note,
    )
