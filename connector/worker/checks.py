"""What the servers say about a configuration, before anything is read.

In: a configuration whose files are in order. Out: all problems at once, apart from servers that do not answer:
`validate` counts those as problems too, `run` waits for them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Container, Iterable, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from connector.aside import LISTEN_SECONDS, LONGEST_PAUSE, SILENT_SECONDS, aside
from connector.config import Configuration, KeystoreError, of_deltas
from connector.delivery import (
    TOO_LONG,
    CheckedTopics,
    KafkaClients,
    check_topics,
    group_refusal,
    patiently,
    transaction_refusal,
)
from connector.errors import (
    AccessDenied,
    CdcError,
    ConfigurationError,
    DeliveryError,
    FatalSourceError,
    Problem,
    RetriableDeliveryError,
    RetriableSourceError,
    SourceError,
    UnsupportedServer,
)
from connector.registry import SchemaRegistry
from connector.source import (
    Connection,
    DescribedTable,
    TabletStreams,
    VnodeGenerations,
    base_query,
    connection_settings,
    describe_tables,
    instant,
    loose_datacenter,
)
from connector.table_name import TableName
from connector.topology import MAX_TOKEN
from connector.worker.objections import TABLES, altered, objections, without_cdc
from connector.worker.refused_logins import login_attempts
from connector.worker.settings import configs_spec, kafka_clients, topic_specs
from connector.worker.slots import marks_now, slots_by_marks

log = logging.getLogger(__name__)

ADDRESSES = "scylla.cluster.ip.addresses"
KAFKA = "bootstrap.servers"
GROUP = "group.id"
FIRST_PAUSE = 0.5
# For all that Kafka is asked. Each question has a limit of its own, which librdkafka takes for the list of topics up to
# twice: of a Kafka that answers byte by byte they add up to three quarters of a minute.
KAFKA_SECONDS = 20.0
# A range that costs nothing to read.
LAST_TOKEN = (MAX_TOKEN - 1, MAX_TOKEN)


@dataclass(slots=True)
class Findings:
    """``missing``: tables that are not there, or have no CDC. ``unreachable``: nobody answered, so nothing is known.
    ``awaited``: some table's records wait until it is mended, and others go on. ``refused``: the login was, by one that
    is ``unreachable`` for it. ``warnings``: true, but no reason to refuse."""

    problems: list[Problem] = field(default_factory=list)
    missing: dict[TableName, Problem] = field(default_factory=dict)
    unreachable: list[Problem] = field(default_factory=list)
    awaited: list[Problem] = field(default_factory=list)
    refused: bool = False
    warnings: list[str] = field(default_factory=list)


class Waiting(Protocol):
    """Whoever shows what `run` is waiting for."""

    waiting_for: str | None


def live_problems(configuration: Configuration) -> Sequence[Problem]:
    """For `validate`: everything, servers that do not answer included."""
    found = check(configuration)
    for warning in found.warnings:
        log.warning("%s", warning)
    problems = [*found.problems, *found.missing.values(), *found.awaited, *found.unreachable]
    return [*problems, *_of_positions(configuration, {problem.property for problem in problems})]


def _of_positions(configuration: Configuration, wrong: Container[str]) -> Sequence[Problem]:
    """What `run` finds out as it reads them, behind these checks. Who may not join the group may not read them."""
    if KAFKA in wrong or GROUP in wrong:
        return []
    try:
        slots_by_marks(configuration, lambda: False)
    except ConfigurationError as error:
        return error.problems
    except CdcError as error:
        return [Problem("offset.storage.topic", str(error), configuration.connector.delivery.offset_topic)]
    return []


def wait_until_checked(
    configuration: Configuration,
    stop: threading.Event,
    waiting: Waiting,
    warnings: list[str] | None = None,
    again: Callable[[Configuration], Configuration] = lambda before: before,
) -> Sequence[Problem]:
    """For `run`: what reachable servers object to; waits, visibly, for those that do not answer. ``warnings`` gets what
    stays true while it runs, and is logged. ``again``: the configuration with what its references name by then, asked
    for where servers refuse the login."""
    pause, since, first, refusals = FIRST_PAUSE, instant(time.time()), True, login_attempts()
    while not stop.is_set():
        found = _checked(configuration, stop, waiting if first else None, since)
        first = False
        if found is None:
            break
        problems = [*found.problems, *_never_read(configuration, found, stop)]
        if problems or not found.unreachable:
            for warning in [*found.warnings, *map(str, found.awaited)]:
                log.warning("%s", warning)
            if warnings is not None:
                warnings += found.warnings
            return problems
        unreachable = "; ".join(problem.problem for problem in found.unreachable)
        waiting.waiting_for = f"{unreachable} (since {since})"
        log.warning("waiting for servers: %s; retrying in %.1f s", waiting.waiting_for, pause)
        stop.wait(pause)
        pause = min(LONGEST_PAUSE, pause * 2)
        if found.refused and not stop.is_set() and refusals.is_due(time.monotonic()):
            configuration = again(configuration)
    return []


def _never_read(configuration: Configuration, found: Findings, stop: threading.Event) -> list[Problem]:
    """Of tables that are not there, or have no CDC. One that was read before fails alone, and goes on when it has."""
    if found.problems or len(found.missing) == len(configuration.connector.reading.tables):
        return list(found.missing.values())
    if not found.missing or found.unreachable:
        return []
    try:
        noted = marks_now(configuration, stop.is_set)
    except RetriableDeliveryError as error:
        found.unreachable.append(_no_kafka(str(error), configuration))
        return []
    read = frozenset[TableName]() if noted is None else noted.tables
    return [problem for table, problem in found.missing.items() if table not in read]


def _checked(
    configuration: Configuration, stop: threading.Event, waiting: Waiting | None, since: str
) -> Findings | None:
    """What all of them say; ``waiting`` shows who says nothing, as soon as that is long."""
    asked, began = _ask(configuration), time.monotonic()
    while wait([each.answer for each in asked], LISTEN_SECONDS).not_done:
        if stop.is_set():
            return None
        if waiting is not None and time.monotonic() - began >= SILENT_SECONDS:
            waiting.waiting_for = f"{_told(asked)} (since {since})"
    return _together(asked)


def check(configuration: Configuration) -> Findings:
    """As somebody waits for it: tells what is waited for, and gives up who has not answered in its time."""
    asked, began, told = _ask(configuration, once=True), time.monotonic(), False
    while awaited := [each for each in asked if each.is_awaited(time.monotonic() - began)]:
        wait([each.answer for each in awaited], LISTEN_SECONDS)
        if not told and time.monotonic() - began >= SILENT_SECONDS:
            told = True
            log.info("waiting for servers: %s", _told(awaited))
    return _together(asked)


@dataclass(frozen=True, slots=True)
class Limit:
    """How long an answer is waited for, and what is wrong then."""

    seconds: float
    problem: Callable[[], Problem]


class Asked:
    """One kind of server: none waits for another's answer. ``limit``: where its own ones do not add up to one."""

    def __init__(self, silence: Callable[[], str], ask: Callable[[Findings], None], limit: Limit | None = None) -> None:
        self._silence, self._ask, self._limit = silence, ask, limit
        self.answer = aside(self._findings, "checks")

    def is_awaited(self, seconds: float) -> bool:
        return not self.answer.done() and (self._limit is None or seconds < self._limit.seconds)

    def findings(self) -> Findings:
        """What it said; of one that is not awaited any longer, that it said nothing."""
        if self._limit is not None and not self.answer.done():
            return Findings(unreachable=[self._limit.problem()])
        return self.answer.result()

    def told(self) -> list[str]:
        """Why nothing is known of it, so far."""
        if not self.answer.done():
            return [self._silence()]
        return [problem.problem for problem in self.answer.result().unreachable]

    def _findings(self) -> Findings:
        found = Findings()
        self._ask(found)
        return found


def _told(asked: Iterable[Asked]) -> str:
    """Each thing once: both converters may have the same registry."""
    return "; ".join(dict.fromkeys(text for each in asked for text in each.told()))


def _ask(configuration: Configuration, once: bool = False) -> list[Asked]:
    """``once``: nobody asks again."""
    clients, points = kafka_clients(configuration), configuration.connector.connection.contact_points
    source = ", ".join(map(str, points))

    def without_kafka() -> Problem:
        text = clients.explained(f"not all was answered in {KAFKA_SECONDS:.0f} s")
        return _no_kafka(text, configuration)

    asked = [
        Asked(lambda: f"no answer from ScyllaDB at {source} yet", partial(_check_source, configuration)),
        Asked(
            lambda: clients.explained("no answer yet"),
            partial(_check_kafka, configuration, clients, once),
            Limit(KAFKA_SECONDS, without_kafka),
        ),
    ]
    if once:
        # A worker is told by itself, as it begins: nobody's start waits for that.
        asked.append(Asked(lambda: clients.explained("no answer yet"), partial(_check_rights, configuration)))
    return asked + [
        Asked(partial("no answer from {} yet".format, registry.address), partial(_check_registry, name, registry))
        for name, registry in _registries(configuration).items()
    ]


def _together(asked: Iterable[Asked]) -> Findings:
    found = Findings()
    for each in asked:
        its = each.findings()
        found.problems += its.problems
        found.missing |= its.missing
        found.unreachable += its.unreachable
        found.awaited += its.awaited
        found.warnings += its.warnings
        found.refused |= its.refused
    return found


def _check_source(configuration: Configuration, found: Findings) -> None:
    for table in _check_scylla(configuration, found):
        if (off := without_cdc(table)) is not None:
            # What the log still has is read, if the table was read before: as by a worker that was there.
            found.missing[table.table] = off
        else:
            found.problems += objections(configuration, table)


# -- ScyllaDB --------------------------------------------------------------------------------------------------


def _check_scylla(configuration: Configuration, found: Findings) -> list[DescribedTable]:
    try:
        connection = Connection(connection_settings(configuration.connector.connection))
    except KeystoreError as error:
        found.problems.append(Problem("scylla.ssl.truststore.path", str(error)))
        return []
    try:
        connection.open()
        loose = loose_datacenter(connection.settings, connection.datacenters())
        found.warnings += [] if loose is None else [loose]
        described = describe_tables(connection, list(configuration.connector.reading.tables))
        tables = [table for name, answer in described.items() if (table := _readable(connection, name, answer, found))]
        found.warnings += _untold(configuration, tables) + _refused_rows(configuration, connection, tables)
        _check_streams(connection, tables, found)
        return tables
    except AccessDenied as error:
        found.problems.append(Problem("scylla.user", str(error), configuration.connector.connection.user))
    except RetriableSourceError as error:
        found.unreachable.append(Problem(ADDRESSES, f"unable to connect to the ScyllaDB cluster: {error}"))
        found.refused = connection.refusal is not None
    except FatalSourceError as error:
        found.problems.append(Problem(ADDRESSES, str(error)))
    except SourceError as error:
        # No word of a server: no thread could be started, say. Nothing is wrong with the files, so it is tried again.
        found.unreachable.append(Problem(ADDRESSES, f"unable to connect to the ScyllaDB cluster: {error}"))
    finally:
        connection.close()
    return []


def _readable(
    connection: Connection, name: TableName, table: DescribedTable | FatalSourceError, found: Findings
) -> DescribedTable | None:
    """The table, if it is there and its log may be read."""
    if isinstance(table, FatalSourceError):
        found.missing[name] = Problem(TABLES, str(table), str(name))
        return None
    try:
        connection.query(f'SELECT "cdc$time" FROM {table.log.cql} LIMIT 1 BYPASS CACHE', consistency="ONE")
    except RetriableSourceError:
        raise
    except FatalSourceError as error:
        found.problems.append(Problem(TABLES, str(error), str(name)))
        return None
    return table


def _untold(configuration: Configuration, tables: Iterable[DescribedTable]) -> list[str]:
    """Records tell TTLs in their metadata only, and what was written as the log has it."""
    output, untold = configuration.connector.output, list[str]()
    for table in tables:
        if table.default_ttl and not output.metadata:
            untold.append(
                f"{table.table} has default_time_to_live={table.default_ttl}, which records do not tell without "
                "cdc.include.metadata=true: landed cells do not expire"
            )
        if of_deltas(output.format) and table.description.cdc.delta == "keys":
            untold.append(
                f"{table.table} logs keys only ('delta': 'keys'), so that records have no values: "
                f"{altered(table, delta='full')}, or cdc.output.format=advanced with images"
            )
    return untold


def _refused_rows(configuration: Configuration, connection: Connection, tables: Iterable[DescribedTable]) -> list[str]:
    """A snapshot reads the tables themselves. Changes are delivered without, and it may have been made long ago."""
    mode, refused = configuration.connector.reading.snapshot_mode, list[str]()
    if configuration.connector.output.strict or mode in ("no_data", "never"):
        return refused
    for table in tables:
        try:
            connection.query(base_query(table.description, ()).by_token(), LAST_TOKEN)
        except AccessDenied as error:
            refused.append(f"{table.table} has no rows for snapshot.mode={mode}, which reads the table itself: {error}")
        except RetriableSourceError as error:
            # It would keep the others waiting as long, each of them.
            log.debug("%s: whether its rows may be read: %s", table.table, error)
            break
        except SourceError as error:
            log.debug("%s: whether its rows may be read: %s", table.table, error)
    return refused


def _check_streams(connection: Connection, tables: Iterable[DescribedTable], found: Findings) -> None:
    refused: list[Exception] = []
    if any(not table.tablets for table in tables):
        try:
            VnodeGenerations(connection).listed()
        except (UnsupportedServer, AccessDenied) as error:
            refused.append(error)
    with_tablets = [TabletStreams(connection, table.table) for table in tables if table.tablets]
    for answer in TabletStreams.listed_together(with_tablets):
        if isinstance(answer, UnsupportedServer | AccessDenied):
            refused.append(answer)
        elif isinstance(answer, Exception):
            raise answer
    found.problems += [Problem(ADDRESSES, text) for text in dict.fromkeys(map(str, refused))]


# -- Kafka and the Schema Registry -----------------------------------------------------------------------------


def _check_kafka(configuration: Configuration, clients: KafkaClients, once: bool, found: Findings) -> None:
    def look() -> CheckedTopics:
        return check_topics(clients.admin(), topic_specs(configuration), [configs_spec(configuration)])

    try:
        with clients.named():
            topics = patiently(look) if once else look()
        found.problems += topics.problems
        found.awaited += topics.awaited
        found.warnings += topics.warnings
    except RetriableDeliveryError as error:
        found.unreachable.append(_no_kafka(str(error), configuration))
        found.refused = clients.health.refusal is not None
    except DeliveryError as error:
        found.problems.append(Problem(KAFKA, str(error), configuration.worker.bootstrap_servers))
    except ConfigurationError as error:
        found.problems += error.problems


def lacking_rights(configuration: Configuration) -> list[Problem]:
    """What a worker would be refused as it begins, beside topics."""
    clients, group = kafka_clients(configuration), configuration.group
    refused = {GROUP: group_refusal(clients, group)}
    if configuration.connector.delivery.exactly_once:
        # As those of workers begin.
        name, timeout = f"{configuration.client_name}-validate", configuration.worker.transaction_timeout_ms
        why = transaction_refusal(clients, name, timeout)
        refused["transaction.timeout.ms" if why and TOO_LONG in why else "exactly.once.support"] = why
    return [Problem(name, why) for name, why in refused.items() if why is not None]


def _check_rights(configuration: Configuration, found: Findings) -> None:
    found.problems += lacking_rights(configuration)


def _no_kafka(why: str, configuration: Configuration) -> Problem:
    servers = configuration.worker.bootstrap_servers
    return Problem(KAFKA, f"unable to reach Kafka: {why}", servers)


def _registries(configuration: Configuration) -> dict[str, SchemaRegistry]:
    """By the property that says where it is."""
    output = configuration.connector.output
    return {
        f"{side}.converter.schema.registry.url": SchemaRegistry.of(converter)
        for side, converter in (("key", output.key_converter), ("value", output.value_converter))
        if converter.kind == "avro"
    }


def _check_registry(name: str, registry: SchemaRegistry, found: Findings) -> None:
    try:
        registry.subjects()
    except RetriableDeliveryError as error:
        found.unreachable.append(Problem(name, str(error)))
    except CdcError as error:
        found.problems.append(Problem(name, str(error)))
