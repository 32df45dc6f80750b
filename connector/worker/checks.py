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
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from connector.aside import LISTEN_SECONDS, LONGEST_PAUSE, SILENT_SECONDS, aside
from connector.config import Configuration
from connector.errors import CdcError, ConfigurationError, Problem, RetriableDeliveryError, RightMissing
from connector.source import instant
from connector.table_name import TableName
from connector.worker.findings import GROUP, KAFKA, Findings
from connector.worker.kafka_checks import (
    check_kafka,
    check_registry,
    check_rights,
    check_topic_rights,
    no_kafka,
    registries,
)
from connector.worker.refused_logins import login_attempts
from connector.worker.settings import kafka_clients
from connector.worker.slots import marks_now, slots_by_marks
from connector.worker.source_checks import check_source

log = logging.getLogger(__name__)

FIRST_PAUSE = 0.5
# For all that Kafka is asked. Each question has a limit of its own, which librdkafka takes for the list of topics up to
# twice: of a Kafka that answers byte by byte they add up to three quarters of a minute.
KAFKA_SECONDS = 20.0


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
        if isinstance(error, RightMissing) and "offset.storage.topic" in wrong:
            return []  # told already, with whose login lacks it
        return [of_offsets_topic(error, configuration)]
    return []


def of_offsets_topic(error: CdcError, configuration: Configuration) -> Problem:
    """Why it cannot be read."""
    return Problem("offset.storage.topic", str(error), configuration.connector.delivery.offset_topic)


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
        found.unreachable.append(no_kafka(str(error), configuration))
        return []
    except RightMissing as error:
        return [of_offsets_topic(error, configuration)]
    read = frozenset[TableName]() if noted is None else noted.tables
    return [problem for table, problem in found.missing.items() if table not in read]


def _checked(
    configuration: Configuration, stop: threading.Event, waiting: Waiting | None, since: str
) -> Findings | None:
    """What all of them say; ``waiting`` shows who says nothing, as soon as that is long."""
    asked, began, told = _ask(configuration), time.monotonic(), False
    while wait([each.answer for each in asked], LISTEN_SECONDS).not_done:
        if stop.is_set():
            return None
        if waiting is not None and time.monotonic() - began >= SILENT_SECONDS:
            waiting.waiting_for = f"{_told(asked)} (since {since})"
            if not told:
                told = True
                log.warning("waiting for servers: %s", waiting.waiting_for)
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
        return no_kafka(text, configuration)

    asked = [
        Asked(lambda: f"no answer from ScyllaDB at {source} yet", partial(check_source, configuration)),
        Asked(
            lambda: clients.explained("no answer yet"),
            partial(check_kafka, configuration, clients, once),
            Limit(KAFKA_SECONDS, without_kafka),
        ),
    ]
    if once:
        # A worker is told by itself, as it begins: nobody's start waits for that.
        asked += [
            Asked(lambda: clients.explained("no answer yet"), partial(ask, configuration))
            for ask in (check_rights, check_topic_rights)
        ]
    return asked + [
        Asked(partial("no answer from {} yet".format, registry.address), partial(check_registry, name, registry))
        for name, registry in registries(configuration).items()
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
