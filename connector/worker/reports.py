"""What `status` knows: every worker's last words from the status topic, and the committed positions.

In: a configuration. Out: one document; it needs no worker to answer, so it works when the connector is down.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import ValidationError

from connector.config import Configuration
from connector.delivery import READ_COMMITTED, KafkaClients, parse_json, partitions_of, read_topic
from connector.errors import CdcError, RetriableDeliveryError
from connector.worker.aging import known_slots, of_owners
from connector.worker.positions import Positions
from connector.worker.settings import kafka_clients
from connector.worker.state import State
from connector.worker.status_document import (
    ReportedWorker,
    SnapshotStatus,
    StatusReport,
    TableReport,
    TableStatus,
    WorkerStatus,
    last_to_end,
)

log = logging.getLogger(__name__)

#: What a connector is by request, in Connect's words.
_HELD = ("PAUSED", "STOPPED")

# A worker publishes every three seconds: one that has not for so long is stopped, hangs, cannot reach Kafka or is gone,
# whatever it last said; and after the longer time it is gone for good, and others have its slots.
SILENT_MS = 8_000
STALE_MS = 15_000
# What was said by so much later than now was said by a clock that is right.
CLOCKS_APART_MS = 2_000
# A process speaks every three seconds: one with a wrong clock says something else by then, a killed one nothing.
AGAIN_SECONDS = 4.0
# Of who was killed a word is kept for a day.
KEPT_MS = 86_400_000


class _RunBy(NamedTuple):
    """What a process says of a connector, in Connect's words; ``why`` it has no workers there."""

    state: str
    why: str | None


def status_report(configuration: Configuration) -> StatusReport:
    """State of the connector, its tables and its workers."""
    clients = kafka_clients(configuration)
    committed: dict[str, int] = {}
    in_slots: dict[tuple[str, int], int] = {}
    snapshots: dict[str, SnapshotStatus] = {}
    unread: list[str] = []
    with clients.named():
        said, now = _said(clients, configuration), int(time.time() * 1000)
        before = None
        if _says_what_may_be_old(said, configuration, now):
            time.sleep(AGAIN_SECONDS)
            before, said, now = said, _said(clients, configuration), int(time.time() * 1000)
        workers = tuple(_workers(_last_words(said, configuration), now))
        try:
            positions, last = Positions(configuration).stored_with_snapshots()
            snapshots = {str(table): SnapshotStatus.of(*each) for table, each in last.items()}
            for stored in positions:
                name = str(stored.table)
                committed[name] = min(committed.get(name, stored.read_to), stored.read_to)
                place = name, stored.slot
                in_slots[place] = min(in_slots.get(place, stored.read_to), stored.read_to)
        except RetriableDeliveryError:
            raise
        except CdcError as error:
            # Mostly that it never ran: there is no offsets topic yet.
            unread = [f"committed positions are not shown: {error}"]
    present = [worker for worker in workers if not worker.stale]
    names = [str(table) for table in configuration.connector.reading.tables]
    left = _left_behind(workers, in_slots, now)
    run_by = [*_processes(said, configuration, now, before)]
    given_up = next((each.why or "no reason is known" for each in run_by if each.state == "FAILED"), None)
    held = next((each.state for each in run_by if each.state in _HELD), None) if not present else None
    # Nobody is to take over what was asked to stand still.
    orphaned = held is None and _orphaned(workers)
    tables = {name: _table(name, present, committed.get(name), now, orphaned, left(name)) for name in names}
    for name, table in tables.items():
        if table.snapshot is None and name in snapshots:
            tables[name] = table.model_copy(update={"snapshot": snapshots[name]})
    states = [*(worker.state for worker in present), *(table.state for table in tables.values())]
    if given_up is not None:
        states = [State.FAILED]
    elif held is not None or not (workers or run_by):
        states = [State.STOPPED]
    elif not present:
        states = [*states, State.WAITING]
    return StatusReport(
        connector=configuration.connector.name,
        state=max(states),
        given_up=given_up,
        target=held or "RUNNING",
        waiting_for=None if present or held or given_up else next((each.why for each in run_by if each.why), None),
        tables=tables,
        workers=workers,
        warnings=tuple(dict.fromkeys([*_warnings(configuration, present), *(unread if present else [])])),
    )


def reported_workers(configuration: Configuration) -> tuple[ReportedWorker, ...]:
    """The connector's workers in all processes, by what they said last."""
    clients = kafka_clients(configuration)
    with clients.named():
        words = _last_words(_said(clients, configuration), configuration)
        return tuple(_workers(words, int(time.time() * 1000)))


def ages_of(
    configuration: Configuration, names: Collection[str], clients: KafkaClients | None = None
) -> dict[str, int]:
    """Milliseconds since each of these workers reported, of whichever connector it is."""
    clients = clients or kafka_clients(configuration)
    with clients.named():
        said, found = _said(clients, configuration), dict[str, WorkerStatus]()
    for key, value in said.items():
        _take(None, key, value, found, names)
    now = int(time.time() * 1000)
    return {name: _age(status, now) for name, status in found.items()}


def _workers(words: Iterable[WorkerStatus], now: int) -> list[ReportedWorker]:
    return of_owners(list(_aged(words, now)), lambda worker: worker.age_ms)


def _age(status: WorkerStatus, now: int) -> int:
    """Of its last words, by the clock here. Its own may be wrong, or ScyllaDB's, which it tells as well: that it is
    there says whichever of them is as ours. If it is there by neither, the worst is believed."""
    ages = [now - told for told in (status.time_ms, status.server_time_ms) if told]
    return min((age for age in ages if -CLOCKS_APART_MS <= age <= SILENT_MS), default=max(ages, default=now))


def _aged(words: Iterable[WorkerStatus], now: int) -> Iterator[ReportedWorker]:
    for status in words:
        age = _age(status, now)
        document = {**status.document(), "age_ms": age, "stale": age > STALE_MS}
        if age > SILENT_MS:
            silence = f"no status for {age / 1000:.0f} s: the worker is stopped, hangs, cannot reach Kafka, or is gone"
            document["waiting_for"] = silence
            for each in (document, *document["tables"].values()):
                each["state"] = max(State(each["state"]), State.WAITING).value
            for table in document["tables"].values():
                if table.get("lag_ms") is not None:
                    table["lag_ms"] += age
        yield ReportedWorker.model_validate(document)


def _table(
    name: str,
    workers: list[ReportedWorker],
    committed: int | None,
    now: int,
    orphaned: bool = False,
    left: int | None = None,
) -> TableReport:
    """What all workers together say of a table, and the offsets topic. ``left``: see `_left_behind`."""
    parts = [
        worker.tables[name]
        for worker in workers
        if name in worker.tables and (worker.slots or worker.tables[name].state is State.FAILED)
    ]
    unread = _unread(name, workers)
    lag = max((lag for lag in (left, *(part.lag_ms for part in parts)) if lag is not None), default=None)
    if unread and left is None:
        lag = None  # nobody has ever read it there
    elif lag is None and committed:  # 0 is "from the oldest", and says nothing of how far that is
        lag = max(0, now - committed)
    return TableReport(
        state=max([part.state for part in parts] + [State.WAITING] * (orphaned or bool(unread)), default=State.STOPPED),
        position_ms=min((part.position_ms for part in parts if part.position_ms is not None), default=None),
        lag_ms=lag,
        records=sum(part.records for part in parts),
        dead_letters=sum(part.dead_letters for part in parts),
        late_changes=_summed(parts, lambda part: part.late_changes),
        skipped=_summed(parts, lambda part: part.skipped),
        failed_groups=sum(part.failed_groups for part in parts),
        expired=sum(part.expired for part in parts),
        waiting=tuple(each for part in parts for each in part.waiting),
        failing=tuple(dict.fromkeys(text for part in parts for text in part.failing)),
        error=next((part.error for part in parts if part.error), None),
        committed_ms=committed,
        snapshot=_snapshot(parts),
    )


def _left_behind(
    workers: Sequence[ReportedWorker], committed: Mapping[tuple[str, int], int], now: int
) -> Callable[[str], int | None]:
    """How far a table is behind in slots that nobody has, or nobody who reads it: no more than whoever had them said
    last, and than what is committed. Those who are there know nothing of it until they have them."""
    present = [worker for worker in workers if not worker.stale]
    nobody = _without_owner(present) if present else []
    had = {slot: worker for worker in sorted(workers, key=lambda each: -each.age_ms) for slot in known_slots(worker)}

    def left(name: str) -> int | None:
        found: list[int] = []
        for slot in {*nobody, *_unread(name, present)}:
            said = had[slot].tables[name].lag_ms if slot in had and name in had[slot].tables else None
            at = committed.get((name, slot))
            bounds = [said, max(0, now - at) if at else None]  # 0 is "from the oldest", however far that is
            known = [bound for bound in bounds if bound is not None]
            found += [min(known)] if known else []
        return max(found, default=None)

    return left


def _snapshot(parts: list[TableStatus]) -> SnapshotStatus | None:
    """Of the last one that any worker knows. What is committed somebody may see later than others."""
    found = [part.snapshot for part in parts if part.snapshot is not None]
    if not found:
        return None
    began = max(each.began_ms for each in found)
    last = [each for each in found if each.began_ms == began]
    refused = sum(each.refused for each in last)
    return SnapshotStatus(
        ended=any(each.ended for each in last),
        kind=last[0].kind,
        paused=any(each.paused for each in last),
        stopped=any(each.stopped for each in last),
        began_ms=began,
        done=max(each.done for each in last),
        rows=sum(each.rows for each in last),
        chunks=sum(each.chunks for each in last),
        rereads=sum(each.rereads for each in last),
        undecided=sum(each.undecided for each in last),
        refused=refused,
        held_bytes=sum(each.held_bytes for each in last),
        rows_per_second=round(sum(each.rows_per_second for each in last), 1),
        seconds_left=last_to_end(refused, (each.seconds_left for each in last)),
    )


def _summed(parts: list[TableStatus], counts: Callable[[TableStatus], dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(counts(part))
    return dict(total)


def _warnings(configuration: Configuration, workers: list[ReportedWorker]) -> list[str]:
    if not workers:
        return []
    warnings = [each for worker in workers for each in worker.warnings]
    fingerprints = {worker.fingerprint for worker in workers}
    if len(fingerprints) > 1:
        warnings.append(f"workers run with {len(fingerprints)} different configurations")
    if configuration.fingerprint() not in fingerprints:
        warnings.append("no worker runs with the configuration of these files")
    nobody = _without_owner(workers)
    if nobody:
        warnings.append(f"slots {', '.join(map(str, nobody))} have no owner")
    budget = configuration.connector.reading.max_queries_per_second
    for worker in workers:
        missing = {str(table) for table in configuration.connector.reading.tables} - set(worker.tables_configured)
        if missing and worker.slots:
            warnings.append(
                f"worker {worker.worker} does not know {', '.join(sorted(missing))}: they are not read in its slots"
            )
        if worker.reading.late_ms:
            warnings.append(
                f"changes may be up to {worker.reading.late_ms / 1000:.1f} s later than they need to be: "
                f"scylla.max.queries.per.second ({budget}) is less than "
                f"worker {worker.worker} has use for"
            )
    return warnings


def _orphaned(workers: Sequence[ReportedWorker]) -> bool:
    """Slots that nobody reads: a rebalance is under way, or their owners ended without a word (an orderly end takes the
    record away) and nobody has taken over."""
    present = [worker for worker in workers if not worker.stale]
    return bool(_without_owner(present)) if present else bool(workers)


def _unread(name: str, workers: Iterable[ReportedWorker]) -> set[int]:
    """Slots in which a table is not read: whoever has them runs by a configuration without it."""
    return {slot for worker in workers if name not in worker.tables for slot in worker.slots}


def _without_owner(workers: list[ReportedWorker]) -> list[int]:
    slot_count = max(worker.slot_count for worker in workers)
    return sorted(set(range(slot_count)) - {slot for worker in workers for slot in worker.slots})


def _said(clients: KafkaClients, configuration: Configuration) -> dict[bytes | None, bytes | None]:
    """The newest record of each key in the status topic."""
    topic = configuration.worker.status.name
    partitions = partitions_of(clients.admin(), topic)
    if not partitions:
        return {}
    # A worker reports every second or two, and long: only what it said last is parsed.
    records = read_topic(clients, topic, partitions, configuration.group, READ_COMMITTED)
    return {record.key: record.value for record in records}


def _last_words(said: Mapping[bytes | None, bytes | None], configuration: Configuration) -> list[WorkerStatus]:
    found: dict[str, WorkerStatus] = {}
    for key, value in said.items():
        _take(configuration.connector.name, key, value, found)
    return [found[name] for name in sorted(found)]


def _processes(
    said: Mapping[bytes | None, bytes | None],
    configuration: Configuration,
    now: int,
    before: Mapping[bytes | None, bytes | None] | None = None,
) -> Iterator[_RunBy]:
    """Those that run it, or would: where there are no workers, nobody else can say why. See `Processes`. ``before``:
    what was said a while ago; who says something else is there, whatever time it is where he is."""
    for key, at, word in _words_of_processes(said, configuration):
        if _is_of_now(now - at) or (before is not None and key in before and before[key] != said[key]):
            yield word


def _says_what_may_be_old(said: Mapping[bytes | None, bytes | None], configuration: Configuration, now: int) -> bool:
    """Whether a process says more than that it runs, at a time that is not now: it was killed then, or has another
    clock."""
    return any(
        not _is_of_now(now - at) and abs(now - at) < KEPT_MS and (word.why is not None or word.state != "RUNNING")
        for _, at, word in _words_of_processes(said, configuration)
    )


def _is_of_now(age: int) -> bool:
    return -CLOCKS_APART_MS <= age <= STALE_MS


def _words_of_processes(
    said: Mapping[bytes | None, bytes | None], configuration: Configuration
) -> Iterator[tuple[bytes | None, int, _RunBy]]:
    """By the keys of those who say so, and when they did by their own clocks."""
    for key, value in said.items():
        with contextlib.suppress(TypeError, ValueError, LookupError, AttributeError):  # of somebody else
            name, who = parse_json(key or b"")
            if name != "" or who["group"] != configuration.worker.group_id or value is None:
                continue
            process = parse_json(value)
            for view in process["connectors"]:
                if view["name"] == configuration.connector.name:
                    why = view["instance"]["trace"]
                    yield (
                        key,
                        int(process["at_ms"]),
                        _RunBy(str(view["instance"]["state"]), None if why is None else str(why)),
                    )


def _take(
    connector: str | None,
    key: bytes | None,
    value: bytes | None,
    found: dict[str, WorkerStatus],
    names: Collection[str] | None = None,
) -> None:
    """``connector`` and ``names`` of workers: None, if any is to be taken."""
    try:
        name, who = parse_json(key or b"[0,0]")
        if connector not in (None, name) or not isinstance(who, dict) or not isinstance(who.get("worker"), str):
            return
        if names is not None and who["worker"] not in names:
            return
        status = parse_json(value) if value is not None else None
    except (TypeError, ValueError):
        return
    if status is None:
        found.pop(who["worker"], None)
        return
    try:
        found[who["worker"]] = WorkerStatus.model_validate(status)
    except ValidationError:
        log.warning("the status topic holds no status of worker %s: something else wrote it", who["worker"])
