"""A connector of this process as Kafka Connect's API shows it: itself, and each of its workers as a task.

In: its configuration, the status of the service. Out: a `ConnectorView`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from connector import __version__
from connector.config import CONNECTOR_CLASS, Configuration, as_written
from connector.rest import ConnectorView, Instance
from connector.topology import Reason
from connector.worker.connectors import Broken
from connector.worker.state import State
from connector.worker.status_document import ConnectorStatus, RunningWorker, ServiceStatus
from connector.worker.unlike import converters_of


def view_of(
    configuration: Configuration, status: ServiceStatus, topics: Sequence[str], worker_id: str
) -> ConnectorView:
    """``worker_id``: of the process that runs it."""
    name = configuration.connector.name
    connector = status.connectors[name]
    workers = {worker.index: worker for worker in status.workers}
    mine = [workers.get(index) for index in connector.workers]
    return ConnectorView(
        name=name,
        config=_config_of(configuration),
        instance=_connector(connector, worker_id),
        tasks=_tasks(connector, mine, worker_id),
        topics=tuple(topics),
        converters=converters_of(configuration.connector.output),
    )


def _connector(connector: ConnectorStatus, worker_id: str) -> Instance:
    if connector.given_up is not None:
        return Instance("FAILED", worker_id, __version__, connector.given_up)
    if connector.target != "RUNNING":
        return Instance("PAUSED" if connector.target == "PAUSED" else "STOPPED", worker_id, __version__)
    waits = connector.waiting_for is not None and not connector.workers_running
    if waits:
        return Instance("UNASSIGNED", worker_id, __version__, connector.waiting_for)
    return Instance("RUNNING", worker_id, __version__)


def _tasks(connector: ConnectorStatus, workers: Sequence[RunningWorker | None], worker_id: str) -> tuple[Instance, ...]:
    if connector.given_up is not None or connector.target == "STOPPED":
        return ()
    if connector.target == "PAUSED":
        return tuple(Instance("PAUSED", worker_id, __version__) for _ in workers)
    # Where others run the connector, nothing but its tasks here says what these wait for.
    why = None if connector.workers_running else connector.waiting_for
    crashing = [connector.crashing or connector.crashing_workers.get(index) for index in connector.workers]
    return tuple(_task(worker, why, ends, worker_id) for worker, ends in zip(workers, crashing, strict=True))


def _task(worker: RunningWorker | None, why: str | None, crashing: str | None, worker_id: str) -> Instance:
    """What waits or is tried again is RUNNING, as a task of Connect is that tries again. ``why`` there is none.
    ``crashing``: why it ends again and again."""
    if crashing is not None:
        # Nobody would look at a task that is shown as restarting, or running for a moment, for hours.
        return Instance("FAILED", worker_id, __version__, crashing)
    if worker is None:
        return Instance("UNASSIGNED", worker_id, __version__, why)
    if worker.state is State.FAILED:
        return Instance("FAILED", worker_id, worker.version, _trace_of(worker))
    return Instance("RESTARTING" if worker.starting else "RUNNING", worker_id, worker.version)


def view_of_broken(
    broken: Broken, given: Mapping[str, str], runs: ConnectorView | None, worker_id: str
) -> ConnectorView:
    """``given``: the definition that cannot be loaded. ``runs``: by the one before."""
    instance = Instance("FAILED", worker_id, __version__, broken.reason)
    tasks, topics = ((), ()) if runs is None else (runs.tasks, runs.topics)
    return ConnectorView(broken.name, as_written(given), instance, tasks, topics)


def _config_of(configuration: Configuration) -> dict[str, str]:
    """As it was given, with references as they are written, and secrets as asterisks."""
    connector = configuration.connector
    return {**connector.written, "name": connector.name, "connector.class": _class_of(connector.written)}


def _class_of(written: Mapping[str, str]) -> str:
    return written.get("connector.class") or CONNECTOR_CLASS


def _trace_of(worker: RunningWorker) -> str:
    """Which tables and groups of streams have failed, and why."""
    return "\n".join(line for name, table in sorted(worker.tables.items()) for line in _lines(name, worker))


def _lines(name: str, worker: RunningWorker) -> Iterator[str]:
    table = worker.tables[name]
    if table.state is not State.FAILED:
        return
    yield f"{name} is FAILED: {table.error or 'no reason is known'}"
    for each in table.waiting:
        if each.reason == Reason.FAILED.value and each.slot is not None:
            streams = ", ".join(f"0x{stream}" for stream in each.streams)
            yield f"\tslot {each.slot}, streams {streams}, read to {each.read_to}: {each.note or table.error}"
