"""One worker process: gets everything ready, with patience for servers that are away, then turns the worker.

In: the configuration, the worker's number, where to report. Out: the exit status; reports are `Message`s.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import wait
from functools import partial
from typing import TypeVar, assert_never

from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_exponential, wait_random

from connector.aside import LISTEN_SECONDS, LONGEST_PAUSE, SILENT_SECONDS, aside
from connector.config import Configuration, login_digest
from connector.delivery import KafkaClients, TopicFacts, prepare_topics, topic_partitions
from connector.errors import (
    AccessDenied,
    CdcError,
    ConfigurationError,
    FatalDeliveryError,
    MissingRight,
    RetriableDeliveryError,
    RetriableSourceError,
    RightMissing,
)
from connector.formats import Encoder
from connector.native import load_native
from connector.registry import PatientRegistry, SchemaRegistry
from connector.source import Connection, DescribedTable, Tables, connection_settings, describe_tables, instant
from connector.table_name import TableName
from connector.worker.about import about
from connector.worker.blocked import BlockedTurns
from connector.worker.collector import Leftovers
from connector.worker.instructions import Asked, Instruction, ReadTables, TellStreams
from connector.worker.messages import EndMessage, Report, SlotsMessage, StatusMessage, WaitingMessage
from connector.worker.refused_logins import RefusedLogins
from connector.worker.schemas import last_versions
from connector.worker.settings import WorkerIdentity, identity, kafka_clients, specs_of_present
from connector.worker.slots import Noted, check_partitions, slots_in_force
from connector.worker.status import Snapshots
from connector.worker.status_topic import StatusTopic
from connector.worker.told_streams import told_streams
from connector.worker.wiring import Prepared, build_worker
from connector.worker.worker import Worker

log = logging.getLogger(__name__)

# A report of many tables costs milliseconds: it may take this part of a core, and comes later for it, but never so late
# that somebody takes the worker for silent.
REPORT_SECONDS, LONGEST_REPORT_SECONDS, REPORT_SHARE = 1.0, 2.0, 0.002

T = TypeVar("T")


class Stopped(Exception):
    """Told to stop before everything was ready."""


def run_worker(
    configuration: Configuration,
    index: int,
    stop: threading.Event,
    report: Report,
    instructions: queue.Queue[Asked],
    *,
    who: WorkerIdentity | None = None,
    noted: Noted | None = None,
    start: str | None = None,
    warnings: tuple[str, ...] = (),
    ending: Callable[[int], None] = lambda status: None,
) -> int:
    """Work until ``stop`` is set (0), or until nothing is left to read or something fatal happened (1).

    ``who``: what it is called, if somebody has decided that.
    ``noted`` is what the offsets topic says, where somebody has read it before; else it is read here, and the number of
    slots is reported.
    ``warnings`` are shown in its status.
    ``ending`` is told the status when all that is left to do is to close what is open.
    """
    with RefusedLogins(report, login_digest(configuration)) as logins:
        try:
            worker = _prepare(configuration, who or identity(configuration, index), stop, report, noted, start, logins)
        except Stopped:
            return 0
        except ConfigurationError as error:
            report(EndMessage(cause="; ".join(map(str, error.problems))))
            log.error("%s", error)
            return 2
        return _work(worker, configuration, stop, report, instructions, warnings, ending)


def _work(
    worker: Worker,
    configuration: Configuration,
    stop: threading.Event,
    report: Report,
    instructions: queue.Queue[Asked],
    warnings: tuple[str, ...],
    ending: Callable[[int], None],
) -> int:
    status_topic = StatusTopic(worker.clients, configuration, worker.who, worker.background)
    status = 1
    try:
        _turn(worker, stop, report, instructions, status_topic, warnings)
        status = 0
    except ConfigurationError as error:
        report(EndMessage(cause="; ".join(map(str, error.problems))))
        log.error("%s", error)
        status = 2
    except FatalDeliveryError as error:
        report(EndMessage.of(error))
        log.error("%s", error)
    finally:
        ending(status)
        if stop.is_set() or status == 2:
            # On its way while slots are given back: a busy broker may need longer for it than is left after that.
            # Who is refused leaves no more behind: those that others go on without are not waited for.
            status_topic.take_away()
        with contextlib.suppress(CdcError):
            worker.stop()
        status_topic.close()
        log.info("worker %d ended", worker.who.index)
    return status


def _turn(
    worker: Worker,
    stop: threading.Event,
    report: Report,
    instructions: queue.Queue[Asked],
    status_topic: StatusTopic,
    warnings: tuple[str, ...],
) -> None:
    snapshots = Snapshots(worker, about(worker.connection, worker.clients, warnings))
    due, leftovers = 0.0, Leftovers()
    with BlockedTurns(report, worker.clients) as turns:
        worker.start()
        while not stop.is_set():
            worker.turn()
            turns.turned()
            while not instructions.empty():
                _obey(worker, instructions.get(), report)
            now = time.monotonic()
            leftovers.clear(now)
            if now >= due:
                began = time.monotonic()
                status = snapshots.take()
                report(StatusMessage(status=status))
                status_topic.publish(status)
                due = now + until_the_next(time.monotonic() - began)


def until_the_next(spent: float) -> float:
    """Seconds from a report to the next one."""
    return min(max(REPORT_SECONDS, spent / REPORT_SHARE), LONGEST_REPORT_SECONDS)


def _obey(worker: Worker, instruction: Asked, report: Report) -> None:
    match instruction:
        case Instruction.TRY_AGAIN:
            log.info("asked to try again what is FAILED")
            worker.try_again()
        case Instruction.FORGET_TOPICS:
            worker.pipeline.written.clear()
        case TellStreams(table=table):
            report(told_streams(worker, table))
        case ReadTables(tables=tables, written=written):
            worker.read_tables(tables, written)
        case _:
            assert_never(instruction)


# -- getting ready ---------------------------------------------------------------------------------------------


def _prepare(
    configuration: Configuration,
    who: WorkerIdentity,
    stop: threading.Event,
    report: Report,
    noted: Noted | None,
    start: str | None,
    logins: RefusedLogins,
) -> Worker:
    clients = kafka_clients(configuration)
    native = load_native(configuration.worker.native, configuration.connector.output)
    connection = Connection(connection_settings(configuration.connector.connection), native.kernel)
    registries = _registries(configuration)
    logins.heed(
        lambda: clients.health.refusal,
        lambda: connection.refusal,
        *(partial(getattr, each, "refusal") for each in registries if each is not None),
    )
    _patiently("connecting to ScyllaDB", connection.open, stop, report, connection)
    _patiently("asking ScyllaDB for its time", lambda: _first_sample(connection), stop, report, connection)
    names = configuration.connector.reading.tables
    tables = _patiently("describing tables", lambda: _described(connection, names), stop, report, connection)
    topics, unusable = _patiently(
        "preparing topics", lambda: _topics(clients, configuration, tables.missing), stop, report, clients
    )
    offsets = configuration.connector.delivery.offset_topic
    partitions = topics[offsets].partitions
    if noted is None:
        noted = _patiently(
            "reading the offsets topic",
            lambda: slots_in_force(clients, configuration, partitions, stop.is_set),
            stop,
            report,
            clients,
        )
        report(SlotsMessage(connector=configuration.connector.name, slots=noted.slots))
    else:
        check_partitions(offsets, partitions, noted.slots)
    encoder = Encoder(configuration.connector.output, *registries)
    schema_topic = configuration.connector.output.schema_topic
    tables.recorded_versions(
        _patiently(
            "reading the schemas topic",
            lambda: last_versions(clients, schema_topic, configuration.group),
            stop,
            report,
            clients,
        )
    )
    return build_worker(
        Prepared(
            configuration=configuration,
            who=who,
            connection=connection,
            clients=clients,
            tables=tables,
            topics=topics,
            unusable=unusable,
            encoder=encoder,
            noted=noted,
            native=native,
            start=start,
        )
    )


def _first_sample(connection: Connection) -> None:
    connection.require_an_answer()
    connection.sample_clocks()


def _described(connection: Connection, names: Iterable[TableName]) -> Tables:
    """Tables that are there, and why the others are not: one that is missing must not stop the rest."""
    described: list[DescribedTable] = []
    missing: dict[TableName, str] = {}
    for name, found in describe_tables(connection, list(names)).items():
        if isinstance(found, DescribedTable):
            described.append(found)
        else:
            log.error("%s: FAILED: %s", name, found)
            missing[name] = str(found)
    return Tables(described, missing)


def _topics(
    clients: KafkaClients, configuration: Configuration, missing: Collection[TableName]
) -> tuple[dict[str, TopicFacts], dict[str, str]]:
    """Topics that are there, and why others take no records: a table without its topic must not stop the rest."""
    admin = clients.admin()
    existing = topic_partitions(admin) if missing else ()
    specs = specs_of_present(configuration, missing, existing)
    try:
        found, unusable = prepare_topics(admin, specs)
    except ConfigurationError as error:
        essential = {spec.name for spec in specs if spec.essential}
        needed = [each for each in error.problems if each.value in essential]
        if needed and all(isinstance(each, MissingRight) for each in needed):
            raise RightMissing("; ".join(map(str, needed))) from None
        raise
    for topic, why in unusable.items():
        log.error("topic %s takes no records: %s", topic, why)
    return found, unusable


def _registries(configuration: Configuration) -> tuple[PatientRegistry | None, PatientRegistry | None]:
    output = configuration.connector.output
    key, value = (
        PatientRegistry(partial(SchemaRegistry.of, converter)) if converter.kind == "avro" else None
        for converter in (output.key_converter, output.value_converter)
    )
    return key, value


def _patiently(
    doing: str, call: Callable[[], T], stop: threading.Event, report: Report, server: KafkaClients | Connection
) -> T:
    """Repeat ``call`` while servers are away or refuse us, visibly; raises `Stopped` when told to stop.

    What `run` began with was accepted: where it is refused now somebody changes it, here or there, and is not done."""

    since, told = instant(time.time()), False

    def say(state: RetryCallState) -> None:
        nonlocal told
        told = True
        error = state.outcome.exception() if state.outcome else None
        report(WaitingMessage(doing=doing, error=f"{error} (since {since})"))
        log.warning("%s: %s; since %s, retrying in %.1f s", doing, error, since, state.upcoming_sleep)

    def pause(seconds: float) -> None:
        stop.wait(seconds)

    def attempted() -> T:
        nonlocal told

        def named() -> T:
            with server.named() if isinstance(server, KafkaClients) else contextlib.nullcontext():
                return call()

        answer = aside(named, "preparing")
        began = time.monotonic()
        while not wait([answer], LISTEN_SECONDS).done:
            if stop.is_set():
                raise Stopped
            if not told and time.monotonic() - began >= SILENT_SECONDS:
                told, silence = True, _silence(server)
                report(WaitingMessage(doing=doing, error=silence))
                log.warning("%s: %s", doing, silence)
        return answer.result()

    for attempt in Retrying(
        retry=retry_if_exception_type((RetriableSourceError, AccessDenied, RetriableDeliveryError, RightMissing)),
        wait=wait_exponential(multiplier=0.2, max=LONGEST_PAUSE) + wait_random(0, 0.2),
        before_sleep=say,
        sleep=pause,
        reraise=True,
    ):
        with attempt:
            if stop.is_set():
                raise Stopped
            return attempted()
    raise Stopped


def _silence(server: KafkaClients | Connection) -> str:
    silent = "no answer yet"
    return server.explained(silent) if isinstance(server, KafkaClients) else f"{server.address}: {silent}"
