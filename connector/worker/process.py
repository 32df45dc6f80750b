"""One worker process: gets everything ready, with patience for servers that are away, then turns the worker.

In: the configuration, the worker's number, where to report. Out: the exit status; reports are one dictionary each.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_when_event_set, wait_exponential_jitter

from connector.config import Configuration
from connector.delivery.clients import KafkaClients
from connector.delivery.registry import SchemaRegistry
from connector.delivery.topics import TopicFacts, ensure_topics
from connector.errors import (
    CdcError,
    ConfigurationError,
    FatalSourceError,
    RetriableDeliveryError,
    RetriableSourceError,
)
from connector.formats.encoder import Encoder
from connector.source.connection import Connection
from connector.source.descriptions import DescribedTable, describe_table
from connector.source.from_config import connection_settings, reading_settings
from connector.topology import TableName
from connector.worker.schemas import SchemasTopic, last_versions
from connector.worker.settings import identity, kafka_clients, offsets_spec, slot_table, topic_specs
from connector.worker.slots import slots_in_force
from connector.worker.status import snapshot
from connector.worker.status_topic import StatusTopic
from connector.worker.worker import Worker

log = logging.getLogger(__name__)

REPORT_SECONDS = 1.0

PARTITIONS_PROPERTY = "offset.storage.partitions"

Report = Callable[[dict[str, Any]], None]

T = TypeVar("T")


class Stopped(Exception):
    """Told to stop before everything was ready."""


def run_worker(configuration: Configuration, index: int, stop: threading.Event, report: Report) -> int:
    """Work until ``stop`` is set (0), or until nothing is left to read or something fatal happened (1)."""
    try:
        worker = _prepare(configuration, index, stop, report)
    except Stopped:
        return 0
    except ConfigurationError as error:
        report({"event": "configuration", "problems": [str(problem) for problem in error.problems]})
        log.error("%s", error)
        return 2
    status_topic = StatusTopic(worker.clients, configuration, worker.who)
    try:
        return _turn(worker, stop, report, status_topic)
    finally:
        with contextlib.suppress(CdcError):
            worker.stop()
        status_topic.close(orderly=stop.is_set())
        log.info("worker %d ended", index)


def _turn(worker: Worker, stop: threading.Event, report: Report, status_topic: StatusTopic) -> int:
    worker.start()
    due = 0.0
    while not stop.is_set():
        worker.turn()
        now = time.monotonic()
        if now >= due:
            due = now + REPORT_SECONDS
            status = snapshot(worker)
            report({"event": "status", "status": status})
            status_topic.publish(status)
        if worker.transactions.fatal is not None:
            report(
                {
                    "event": "end",
                    "cause": type(worker.transactions.fatal).__name__,
                    "error": str(worker.transactions.fatal),
                }
            )
            log.error("%s", worker.transactions.fatal)
            return 1
    return 0


# -- getting ready ---------------------------------------------------------------------------------------------


def _prepare(configuration: Configuration, index: int, stop: threading.Event, report: Report) -> Worker:
    who = identity(configuration, index)
    clients = kafka_clients(configuration)
    connection = Connection(connection_settings(configuration.connector.connection))
    _patiently("connecting to ScyllaDB", connection.open, stop, report)
    _patiently("asking ScyllaDB for its time", lambda: connection.sample_clock(connection.hosts()[0]), stop, report)
    names = slot_table(configuration.connector.reading.tables)
    tables, missing = _patiently("describing tables", lambda: _described(connection, names), stop, report)
    topics = _patiently("preparing topics", lambda: _topics(clients, configuration), stop, report)
    offsets = configuration.connector.delivery.offset_topic
    slots = _patiently(
        "reading the offsets topic",
        lambda: slots_in_force(
            clients,
            connector=configuration.connector.name,
            topic=offsets,
            group=configuration.group,
            partitions=topics[offsets].partitions,
            configured=offsets_spec(configuration).partitions,
            given=PARTITIONS_PROPERTY in configuration.worker.given,
        ),
        stop,
        report,
    )
    encoder = Encoder(configuration.connector.output, *_registries(configuration))
    schema_topic = configuration.connector.output.schema_topic
    versions = _patiently(
        "reading the schemas topic", lambda: last_versions(clients, schema_topic, configuration.group), stop, report
    )
    worker = Worker(
        configuration,
        who,
        connection=connection,
        clients=clients,
        tables=tables,
        topics=topics,
        encoder=encoder,
        schemas=SchemasTopic(encoder, versions),
        slots=slots,
        reading=reading_settings(configuration.connector.reading),
    )
    for name, error in missing.items():
        log.error("%s: FAILED: %s", name, error)
        worker.failed_tables[name] = str(error)
    return worker


def _described(
    connection: Connection, names: list[TableName]
) -> tuple[dict[TableName, DescribedTable], dict[TableName, FatalSourceError]]:
    """Tables that are there, and why the others are not: one that is missing must not stop the rest."""
    tables: dict[TableName, DescribedTable] = {}
    missing: dict[TableName, FatalSourceError] = {}
    for name in names:
        try:
            tables[name] = describe_table(connection, name)
        except FatalSourceError as error:
            missing[name] = error
    return tables, missing


def _topics(clients: KafkaClients, configuration: Configuration) -> dict[str, TopicFacts]:
    return ensure_topics(clients.admin(), topic_specs(configuration))


def _registries(configuration: Configuration) -> tuple[SchemaRegistry | None, SchemaRegistry | None]:
    output = configuration.connector.output
    key, value = (
        SchemaRegistry.of(converter) if converter.kind == "avro" else None
        for converter in (output.key_converter, output.value_converter)
    )
    return key, value


def _patiently(doing: str, call: Callable[[], T], stop: threading.Event, report: Report) -> T:
    """Repeat ``call`` while servers are away, visibly; raises `Stopped` when told to stop meanwhile."""

    def say(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        report({"event": "waiting", "doing": doing, "error": str(error), "attempts": state.attempt_number})
        log.warning("%s: %s; trying again in %.1f s", doing, error, state.upcoming_sleep)

    def pause(seconds: float) -> None:
        stop.wait(seconds)

    for attempt in Retrying(
        retry=retry_if_exception_type((RetriableSourceError, RetriableDeliveryError)),
        wait=wait_exponential_jitter(initial=0.2, max=30.0, jitter=0.2),
        stop=stop_when_event_set(stop),
        before_sleep=say,
        sleep=pause,
        reraise=True,
    ):
        with attempt:
            if stop.is_set():
                raise Stopped
            return call()
    raise Stopped
