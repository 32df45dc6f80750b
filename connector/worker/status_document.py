"""The documents of the status: what `/status`, `/health`, the status topic and `scylla-cdc status --json` hold.

They are a public contract: names are never changed, members only added. The status topic may hold documents of other
versions: members that are not known here are kept as they are, missing ones have defaults, but for those that every
version has.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticSerializationError

from connector.secrets import scrubbed, scrubbed_json
from connector.topology import Snapshot
from connector.worker.state import State

#: More than any topic has partitions: what claims more was written by something else.
MOST_SLOTS = 1_000_000


class Document(BaseModel):
    """Frozen; `document` is its JSON."""

    model_config = ConfigDict(frozen=True, extra="allow")

    def document(self) -> dict[str, Any]:
        """Plain data, with the members that were given."""
        return self.model_dump(mode="json", exclude_unset=True)


def scrubbed_text(model: BaseModel) -> str:
    """Its JSON, with the members that were given, without the secrets that are known."""
    try:
        text = model.model_dump_json(exclude_unset=True)
    except PydanticSerializationError:
        # Halves of characters in the text of an error: no reader takes them, not even escaped.
        said = scrubbed(model.model_dump(mode="json", exclude_unset=True))
        text = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return scrubbed_json(text)


class WaitingStatus(Document):
    """Something that is not read, and what for: a table, a slot of it (``slot``), or a group of streams."""

    reason: str
    slot: int | None = None
    streams: tuple[str, ...] = ()
    read_to: int | None = None
    at: int | None = None
    waits_for: tuple[str, ...] = ()
    waits_for_slot: int | None = None
    note: str | None = None


class HistogramStatus(Document):
    """Counts by upper bound, the last one behind all bounds; not cumulative."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float


class SnapshotStatus(Document):
    """The last snapshot of a table. ``done``: the part of its tokens whose rows are committed, whoever did it; the
    other figures are the worker's own, but for ``seconds_left``: an estimate for all of it, while that can be told.
    ``refused``: of how many groups of streams rows are not to be had, without which it does not end."""

    ended: bool
    kind: str = "initial"
    paused: bool = False
    stopped: bool = False
    began_ms: int = 0
    done: float = 0.0
    rows: int = 0
    chunks: int = 0
    rereads: int = 0
    undecided: int = 0
    refused: int = 0
    held_bytes: int = 0
    rows_per_second: float = 0.0
    seconds_left: int | None = None

    @classmethod
    def of(cls, snapshot: Snapshot, done: float, **own: Any) -> SnapshotStatus:
        """What is committed of it, and the figures of who tells, if that is a worker."""
        return cls(
            ended=snapshot.ended is not None,
            kind=snapshot.kind,
            paused=snapshot.paused,
            stopped=snapshot.stopped,
            began_ms=snapshot.began,
            done=1.0 if snapshot.ended is not None else round(done, 4),
            **own,
        )


def last_to_end(refused: int, seconds_left: Iterable[int | None]) -> int | None:
    """In how many seconds the last of several parts of snapshots ends, as far as they tell. No end is promised while
    rows are refused: there is none without them."""
    return None if refused else max((each for each in seconds_left if each is not None), default=None)


class TableStatus(Document):
    """A table, as one worker has it. One that could not be described at the start has no figures."""

    state: State
    all_failed: bool = True
    position_ms: int | None = None
    lag_ms: int | None = None
    groups: int = 0
    failed_groups: int = 0
    stream_set: int | None = None
    records: int = 0
    dead_letters: int = 0
    late_changes: dict[str, int] = {}
    skipped: dict[str, int] = {}
    error: str | None = None
    failing: tuple[str, ...] = ()
    expired: int = 0
    waiting: tuple[WaitingStatus, ...] = ()
    waiting_count: int = 0
    log_ttl_seconds: int | None = None
    latency_seconds: HistogramStatus | None = None
    batch_rows: HistogramStatus | None = None
    snapshot: SnapshotStatus | None = None

    @property
    def has_figures(self) -> bool:
        return "records" in self.model_fields_set


class ReadingStatus(Document):
    """Counters of a worker's reading, and how much of it is under way. ``late_ms``: by how much the budget of queries
    makes changes later than they would be with a larger one."""

    rows: int = 0
    pages: int = 0
    reads: int = 0
    batches: int = 0
    queries: int = 0
    in_flight: int = 0
    waiting: int = 0
    pause_ms: int = 0
    late_ms: int = 0
    retries: int = 0


class DeliveryStatus(Document):
    """Counters of a worker's transactions; ``open``: there is one now."""

    commits: int = 0
    aborts: int = 0
    open: bool = False
    rebalances: int = 0
    transaction_records: HistogramStatus | None = None


class RetryStatus(Document):
    """A group of streams whose read failed and is tried again."""

    slot: int | None = None
    attempts: int = 0
    error: str = ""


class PollStatus(Document):
    """A place where stream sets are listed."""

    tables: tuple[str, ...] = ()
    error: str | None = None
    attempts: int = 0


class FailingStatus(Document):
    """Work beside the reading that fails."""

    task: str
    about: str | None = None
    since: str = ""
    since_ms: int = 0
    seconds: float = 0.0
    attempts: int = 0
    error: str = ""
    what: str = ""
    waits: str = ""
    holds_delivery: bool = False
    text: str = ""


class NativeStatus(Document):
    """Whether records are made natively, and handed to Kafka in blocks; ``why_not`` where one of them is not."""

    on: bool = False
    blocks: bool = False
    why_not: str | None = None


class WorkerStatus(Document):
    """One worker: what it reports every second, and its record in the status topic."""

    worker: str
    index: int = 0
    connector: str = ""
    host: str = ""
    pid: int = 0
    version: str = ""
    started_ms: int = 0
    scylla_version: str | None = None
    kafka_version: str | None = None
    native: NativeStatus = NativeStatus()
    fingerprint: str
    tables_configured: tuple[str, ...]
    time_ms: int
    server_time_ms: int = 0
    clock_skew_ms: int = 0
    state: State
    waiting_for: str | None = None
    slots: tuple[int, ...]
    slots_pending: tuple[int, ...] = ()
    in_group: bool = True
    slot_count: int = Field(ge=0, le=MOST_SLOTS)
    tables: dict[str, TableStatus]
    reading: ReadingStatus = ReadingStatus()
    delivery: DeliveryStatus = DeliveryStatus()
    retrying: tuple[RetryStatus, ...] = ()
    polls: tuple[PollStatus, ...] = ()
    background: tuple[FailingStatus, ...] = ()
    background_seconds: dict[str, float] = {}
    errors: dict[str, str | None] = {}
    topics: tuple[str, ...] = ()
    snapshots_over: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def nothing_left(self) -> bool:
        """The worker has work, and all of it has failed."""
        tables = self.tables.values()
        owned = bool(self.slots) and not self.slots_pending
        return owned and bool(tables) and all(each.state is State.FAILED and each.all_failed for each in tables)


class RunningWorker(WorkerStatus):
    """A worker's last report, in `/status`. ``starting``: it is that of its predecessor."""

    last_report_age_seconds: float = 0.0
    starting: bool = False


class ConnectorStatus(Document):
    """One of the connectors of a `scylla-cdc run`. ``waiting_for``: why it has no workers, or none any more.

    ``given_up``: why it has failed for good. ``crashing``: why its workers end again and again; ``crashing_workers``:
    why some of them do, by their numbers, though others commit. ``login_refused``: by which server its workers' is;
    ``logins_renewed``: how often one was started anew since what it logs in with had changed. ``workers``: the numbers
    that its workers have, or will have. ``target``: RUNNING, or what was asked for instead, PAUSED or STOPPED.
    """

    state: State
    waiting_for: str | None = None
    given_up: str | None = None
    crashing: str | None = None
    crashing_workers: dict[int, str] = {}
    login_refused: str | None = None
    logins_renewed: int = 0
    target: str = "RUNNING"
    workers: tuple[int, ...] = ()
    workers_wanted: int = 0
    workers_running: int = 0
    restarts: int = 0


class ServiceStatus(Document):
    """`/status`: all workers of one `scylla-cdc run`."""

    connector: str = ""
    host: str = ""
    pid: int = 0
    version: str = ""
    started_ms: int = 0
    state: State = State.WAITING
    waiting_for: str | None = None
    failing: tuple[str, ...] = ()
    workers_wanted: int = 0
    workers_running: int = 0
    restarts: int = 0
    workers: tuple[RunningWorker, ...] = ()
    connectors: dict[str, ConnectorStatus] = {}

    def failures(self) -> tuple[str, ...]:
        """The tables that are FAILED, and why: each once, however many workers read it."""
        return tuple(
            dict.fromkeys(
                f"{name} is FAILED: {table.error or 'no reason is known'}"
                for worker in self.workers
                for name, table in sorted(worker.tables.items())
                if table.state is State.FAILED
            )
        )


class Liveness(Document):
    """`/live`: whether the supervisor does its rounds. A process that is not alive needs a restart."""

    alive: bool
    last_round_age_seconds: float


class Readiness(Document):
    """`/ready`: whether each worker has slots, or waits for them in order."""

    ready: bool
    waiting_for: str | None


class Health(Document):
    """`/health`. ``failing``: tables that are FAILED, and background tasks. Changes that came too late are worth an
    operator's look, and no reason for a restart."""

    state: State
    waiting_for: str | None
    failing: tuple[str, ...]
    late_changes: dict[str, dict[str, int]]
    expired: dict[str, int] = {}


class ReportedWorker(WorkerStatus):
    """A worker's record in the status topic, in `scylla-cdc status`. ``stale``: it is not running any more."""

    age_ms: int
    stale: bool


class TableReport(Document):
    """What all workers together say of a table."""

    state: State
    position_ms: int | None
    lag_ms: int | None
    records: int
    dead_letters: int
    late_changes: dict[str, int]
    skipped: dict[str, int]
    failed_groups: int
    expired: int = 0
    waiting: tuple[WaitingStatus, ...]
    failing: tuple[str, ...]
    error: str | None
    committed_ms: int | None
    snapshot: SnapshotStatus | None = None


class StatusReport(Document):
    """`scylla-cdc status`: the connector, its tables and its workers; ``warnings`` name what needs a look.
    ``given_up``: why a process has given it up, or cannot use its definition; ``target``: what was asked for, if it has
    no workers for that, else RUNNING; ``waiting_for``: why processes that run it have no workers yet."""

    connector: str
    state: State
    given_up: str | None = None
    target: str = "RUNNING"
    waiting_for: str | None = None
    tables: dict[str, TableReport]
    workers: tuple[ReportedWorker, ...]
    warnings: tuple[str, ...]
