"""All processes of a group, each with its tasks: whichever is asked answers for all of them.

In: the connectors of this process, as the API shows them; the status topic, where each process says its own. Out: all
of them together, in the same order wherever it is asked. A process that says nothing for a while is gone, unless its
workers still report there: then it hangs, and obeys nothing.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from connector.config import Configuration
from connector.delivery import KafkaClients, LastingLogin, ReportingProducer, SmallTopic, compact_json, parse_json
from connector.errors import CdcError, DeliveryError
from connector.rest import ConnectorView, ConnectState, Instance
from connector.secrets import scrubbed
from connector.worker.departed import Departed
from connector.worker.reports import ages_of
from connector.worker.settings import kafka_clients, status_spec
from connector.worker.signs_of_life import SignsOfLife
from connector.worker.status_topic import words_producer
from connector.worker.unlike import Unlike

log = logging.getLogger(__name__)

POLL_SECONDS = 0.3
# Between looks at what this process has to say.
LOOK_SECONDS = 0.5
# Said again, though nothing has changed; a process that was not heard for several times as long is gone.
REPEAT_SECONDS = 3.0
GONE_SECONDS = 10.0
# Until then it is known whether its workers go on.
SILENT_SECONDS = 6.0
# What we say ourselves comes back within that, unless Kafka is away, or we stood still: of others we hear as little.
ECHO_SECONDS = REPEAT_SECONDS + 2.0
# Clocks of machines differ; what is older than that, and all that is heard of a process, was said by one that ended
# without a word.
OLD_SECONDS = 60.0
# While the topic is missing or Kafka is away.
PAUSE_SECONDS = 1.0
# Workers make the topic as they start, and most do before this is over. Until there is one, nobody would know what ails
# a connector without any, or that it was asked to stand still; nothing is made for a `run` that its checks end.
MISSING_SECONDS = 5.0
FAREWELL_SECONDS = 1.0

_PREFIX = b'["",'

# Another one on each machine, the same as long as it is up.
_BOOT = Path("/proc/sys/kernel/random/boot_id")
# Another one in each container, where the first process is 1.
_PIDS = Path("/proc/self/ns/pid")

#: What a connector is that is not the same everywhere, the first of these: what has failed is to be looked at, what was
#: asked for is on its way, and where somebody runs it, it runs, though others wait until they can.
_FIRST: tuple[ConnectState, ...] = ("FAILED", "STOPPED", "PAUSED", "RUNNING", "RESTARTING", "UNASSIGNED")
#: What a connector is by request.
_HELD: set[ConnectState] = {"STOPPED", "PAUSED"}


@dataclass(frozen=True, slots=True)
class Process:
    """One of them, at a time. ``id`` is unique among those that run. ``workers``: the names of those that run."""

    id: str
    started_ms: int
    at_ms: int
    connectors: tuple[ConnectorView, ...]
    workers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """Where the task of a number is: the number that it has in its own process."""

    process: str
    number: int


_DOCUMENT = TypeAdapter(Process)


def together(processes: Iterable[Process]) -> list[ConnectorView]:
    """Each connector once, with the tasks of all."""
    found: dict[str, ConnectorView] = {}
    for process in _in_order(processes):
        for view in process.connectors:
            known = found.get(view.name)
            found[view.name] = view if known is None else _joined(known, view)
    return list(found.values())


def as_known_here(
    views: Iterable[ConnectorView], own: Iterable[ConnectorView], deleted: Collection[str]
) -> list[ConnectorView]:
    """What was asked of this process is told by it at once, while others may not have heard of it."""
    known = {view.name: view for view in own}
    return [
        _newer(view, known[view.name]) if view.name in known else view for view in views if view.name not in deleted
    ]


def _newer(view: ConnectorView, own: ConnectorView) -> ConnectorView:
    view = replace(view, config=own.config)
    if not {view.instance.state, own.instance.state} & _HELD:
        return view
    return replace(view, instance=own.instance, tasks=() if own.instance.state == "STOPPED" else view.tasks)


def tasks_of(processes: Iterable[Process], connector: str) -> list[Task]:
    """In the order of their numbers among all."""
    return [
        Task(process.id, number)
        for process in _in_order(processes)
        for view in process.connectors
        if view.name == connector
        for number in range(len(view.tasks))
    ]


def _in_order(processes: Iterable[Process]) -> list[Process]:
    return sorted(processes, key=lambda each: (each.started_ms, each.id))


def _joined(one: ConnectorView, other: ConnectorView) -> ConnectorView:
    instance: Instance = min(one.instance, other.instance, key=lambda each: _FIRST.index(each.state))
    topics = tuple(sorted({*one.topics, *other.topics}))
    return replace(one, instance=instance, tasks=(*one.tasks, *other.tasks), topics=topics)


def process_id(address: str) -> str:
    """The same when it is started again, if it has a port; the address may be loopback on every machine, and machines
    that were made alike may have one name."""
    place = f"{socket.gethostname()} {address or _own_pid()}"
    with contextlib.suppress(OSError):
        return f"{place} ({_BOOT.read_text()[:8]})"
    return place


def _own_pid() -> str:
    pid = f"pid {os.getpid()}"
    with contextlib.suppress(OSError):
        return f"{pid} in {os.readlink(_PIDS)}"
    return pid


class Processes:
    """Of one process: the others it hears, and what it says of itself."""

    def __init__(
        self,
        configuration: Configuration,
        id_: str,
        monotonic: Callable[[], float] = time.monotonic,
        clients: KafkaClients | None = None,
    ) -> None:
        self.id, self._started_ms = id_, round(time.time() * 1000)
        self._monotonic = monotonic
        self._echoed: float | None = None
        self._clients = clients or kafka_clients(configuration)
        self._group_id = configuration.worker.group_id
        self._name = configuration.worker.status.name
        self._topic = SmallTopic(self._clients, status_spec(configuration), configuration.group)
        self._others: dict[str, tuple[Process, float]] = {}
        self._signs = SignsOfLife(configuration, monotonic, partial(ages_of, clients=self._clients))
        self._hanging: Mapping[str, str] = {}
        self._unlike = Unlike()
        self._departed = Departed(self._clients, configuration)
        self._make_due: float | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(
        self,
        own: Callable[[], Sequence[ConnectorView]],
        ending: threading.Event,
        deleted: Callable[[], Collection[str]] = tuple,
        workers: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """``own``, ``deleted``, connectors that were deleted just now, and ``workers``, the names of ours, are called
        in another thread too. The end is said when ``ending`` is set: while workers end, and not after, so that a
        broker that is away takes no time of its own."""
        self._own, self._deleted, self._own_workers = own, deleted, workers
        self._ending = ending
        self._thread = threading.Thread(target=self._run, daemon=True, name="processes")
        self._thread.start()

    def stop(self) -> None:
        """An orderly end is said, and known at once."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(FAREWELL_SECONDS)

    def present(self) -> list[Process]:
        """This one as it is now, the others as they were heard last."""
        return [self._process(), *self.others()]

    def others(self) -> list[Process]:
        """As they were heard last."""
        return [
            process for process, heard in list(self._others.values()) if self._is_there(heard) or self._hangs(process)
        ]

    def hanging(self) -> Mapping[str, str]:
        """By connector: which process does not hear what is asked of it, and runs it all the same."""
        return self._hanging

    def unlike(self) -> Mapping[str, str]:
        """By connector: who runs it by another configuration, and what that means."""
        return self._unlike.found

    def _process(self) -> Process:
        now_ms, workers = round(time.time() * 1000), tuple(sorted(self._own_workers()))
        return Process(self.id, self._started_ms, now_ms, tuple(self._own()), workers)

    def _is_there(self, heard: float, seconds: float = GONE_SECONDS) -> bool:
        now = self._monotonic()
        if self._echoed is not None:
            now = min(now, self._echoed + ECHO_SECONDS)
        return now - heard < seconds

    def _hangs(self, process: Process) -> bool:
        """Whether workers of one that says nothing go on, as they do while it stands still."""
        return self._signs.of_any(process.workers)

    def _run(self) -> None:
        announcer, due = _Announcer(self._clients, self._name, self._key(self.id)), 0.0
        said: dict[bytes, bytes | None] = {}
        while not self._ended.is_set() and not self._ending.is_set():
            try:
                # Workers' reports stand between them.
                said |= {key: value for key, value in self._topic.poll(POLL_SECONDS) if key.startswith(_PREFIX)}
                while self._topic.complete and said:
                    self._hear(*said.popitem())
                if not self._topic.reading:
                    self._make_topic()
                elif time.monotonic() >= due:
                    due = time.monotonic() + LOOK_SECONDS
                    process = self._process()
                    announcer.say(process)
                    self._departed.tick({view.name for view in process.connectors}, self._deleted())
                    self._unlike.look(process.connectors, [(each.id, each.connectors) for each in self.others()])
                    self._look_for_those_that_hang()
            except CdcError as error:
                said.clear()
                log.debug("what other processes say is not heard: %s", error)
            if not self._topic.reading:
                self._ended.wait(PAUSE_SECONDS)
        announcer.close()
        self._topic.close()

    def _make_topic(self) -> None:
        """Where there has been none for a while, and there is something to say."""
        if not self._own():
            return
        now = time.monotonic()
        if self._make_due is None:
            self._make_due = now + MISSING_SECONDS
        elif now >= self._make_due:
            self._make_due = now + MISSING_SECONDS
            self._topic.create()

    def _key(self, id_: str) -> bytes:
        # No connector has an empty name: readers of workers' reports know it by that.
        return compact_json(["", {"group": self._group_id, "process": id_}])

    def _look_for_those_that_hang(self) -> None:
        silent = [
            process for process, heard in list(self._others.values()) if not self._is_there(heard, SILENT_SECONDS)
        ]
        self._signs.look({process.id: process.workers for process in silent})
        hanging = [process for process in silent if self._hangs(process)]
        found = {
            view.name: f"process {process.id} says nothing any more, hears of nothing, and its workers go on: see "
            "whether it is stopped, or end it"
            for process in hanging
            for view in process.connectors
        }
        for text in sorted({*found.values()} - {*self._hanging.values()}):
            log.warning("%s", text)
        self._hanging = found

    def _hear(self, key: bytes, value: bytes | None) -> None:
        try:
            name, what = parse_json(key)
            if name != "" or what["group"] != self._group_id:
                return
            if what["process"] == self.id:
                self._hear_ourselves()
                return
            if value is None:
                self._others.pop(what["process"], None)
                return
            process = _DOCUMENT.validate_python(parse_json(value))
        except (ValueError, TypeError, LookupError, ValidationError):
            return  # of somebody else, who shares the topic, or of another version
        known = self._others.get(process.id)
        # A topic that is read once more tells what it told before.
        if known is None or process != known[0]:
            # Who says something new is there, whatever time it is where he is.
            new = known is not None or time.time() - process.at_ms / 1000 < OLD_SECONDS
            self._others[process.id] = process, self._monotonic() if new else -math.inf

    def _hear_ourselves(self) -> None:
        now = self._monotonic()
        if self._echoed is not None and now - self._echoed > ECHO_SECONDS:
            # Whoever was there when we heard nothing any more has as long as ever to say something again.
            self._others |= {process.id: (process, now) for process in self.others()}
        self._echoed = now


class _Announcer:
    """Says what has changed, and every so often what has not."""

    def __init__(self, clients: KafkaClients, topic: str, key: bytes) -> None:
        self._clients, self._topic, self._key = clients, topic, key
        self._producer: ReportingProducer | None = None
        self._login = LastingLogin(clients)
        self._said: Process | None = None
        self._due = 0.0

    def say(self, process: Process) -> None:
        now = time.monotonic()
        if self._login.is_another:
            self._said = None  # it may have been refused
        same = self._said is not None and process == replace(self._said, at_ms=process.at_ms)
        if same and now < self._due:
            return
        self._due = now + REPEAT_SECONDS
        self._write(compact_json(scrubbed(_DOCUMENT.dump_python(process, mode="json"))))
        self._said = process

    def close(self) -> None:
        if self._producer is None:
            return
        with contextlib.suppress(DeliveryError):
            self._write(None)
        self._producer.finish(FAREWELL_SECONDS)

    def _write(self, value: bytes | None) -> None:
        if self._producer is None:
            self._producer = self._made()
        self._producer.poll()
        if self._producer.is_stuck() or self._login.is_another:
            self._producer.close()
            self._producer = self._made()
        self._producer.failure = None  # old words are not worth repeating
        self._producer.produce_to(self._topic, 0, self._key, value)
        self._producer.poll()

    def _made(self) -> ReportingProducer:
        self._login.note()
        return words_producer(self._clients)
