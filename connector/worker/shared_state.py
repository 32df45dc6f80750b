"""What was asked of connectors, known to every process of the group and remembered by the next one.

In: wishes of this process; the config topic, where those of all are. Out: calls with the last wish of each kind; those
that it has replaced, and what is read once more after a failure, nobody obeys. Keys are
``[connector, {"group": group.id, "wish": …}]``: others, and Kafka Connect itself, may share the topic. What is to
happen once, as a restart, stands under ``"event"``: those hear it who run when it is said, and nobody remembers it. If
the topic is deleted, whoever runs writes what he knows into the next one: connectors may be defined nowhere else.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast

from connector.config import Configuration
from connector.delivery import KafkaClients, SmallTopic, compact_json, parse_json
from connector.errors import CdcError, RetriableDeliveryError
from connector.worker.holding import Target
from connector.worker.settings import configs_spec, kafka_clients

log = logging.getLogger(__name__)

POLL_SECONDS = 0.3
# Between looks for a topic that is missing, or cannot be read.
PAUSE_SECONDS = 0.7
# For what was written to be read.
HEAR_SECONDS = 15.0

#: What a connector is to do; what it is, if no file says so.
Wish = Literal["target", "config"]
WISHES: tuple[Wish, ...] = ("target", "config")
#: What is to happen once, in every process that it concerns.
Event = Literal["restart", "forget topics", "log level"]
EVENTS: tuple[Event, ...] = ("restart", "forget topics", "log level")

Directed = Callable[[str, Target], None]
#: None for what was deleted.
Defined = Callable[[str, dict[str, str] | None], None]
Told = Callable[[str, Event, Mapping[str, Any]], None]


def _by_files(connector: str, config: dict[str, str] | None) -> None:
    """Where files define connectors, what others define elsewhere is not ours."""


def _unheard(connector: str, event: Event, content: Mapping[str, Any]) -> None:
    """Where nobody is to be told anything."""


class SharedState:
    """Of one service: its worker file, which is the same for all of its connectors."""

    def __init__(self, configuration: Configuration, clients: KafkaClients | None = None) -> None:
        self.group_id = configuration.worker.group_id
        self._name = configuration.worker.configs.name
        self._clients = clients or kafka_clients(configuration)
        self._topic = SmallTopic(self._clients, configs_spec(configuration), configuration.group)
        self._heard: dict[tuple[str, Wish], Any] = {}
        self._said: set[bytes] = set()
        #: What no topic says any more, and how often there was another one by then.
        self._lost: dict[tuple[str, Wish], Any] = {}
        self._renewals = 0
        #: Whether what was there at the start is known, and the offset up to which all is obeyed.
        self._listens, self._taken = False, -1
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._known = threading.Event()
        #: Why wishes of others are not heard; whether that is for lack of a right.
        self.error: str | None = None
        self.forbidden = False

    def start(self, directed: Directed, defined: Defined = _by_files, told: Told = _unheard) -> None:
        """All are called in another thread: with what is asked, what a connector is, what is to happen now."""
        self._directed, self._defined, self._told = directed, defined, told
        threading.Thread(target=self._follow, daemon=True, name="shared state").start()

    def stop(self) -> None:
        self._ended.set()

    def wait(self, stop: threading.Event, patience: float = math.inf) -> str | None:
        """Until it is known what was asked before; None then, else every so often why it is not: what the topic says,
        or, after ``patience``, that it says nothing."""
        began = time.monotonic()
        while not stop.is_set():
            if self._known.wait(POLL_SECONDS):
                return None
            if self.error is not None:
                return self.error
            if time.monotonic() - began >= patience:
                return self._clients.explained(f"reading topic {self._name}: no answer yet")
        return None

    def wish(self, connector: str, target: Target) -> None:
        """When this returns, this process acts on it; others do as soon as they have read it. Raises ``CdcError``."""
        self._write(connector, "target", {"target": target.value, "at": round(time.time() * 1000)})

    def define(self, connector: str, config: dict[str, str] | None) -> None:
        """What a connector is; None: it is no more, nor what it was to do. As ``wish``."""
        self._write(connector, "config", None if config is None else {"config": config})
        if config is None:
            # Not before: one that was to stand still would run until it is no more, or on, if this were the last word.
            self._write(connector, "target", None)

    def tell(self, connector: str, event: Event, content: Mapping[str, Any]) -> None:
        """What is to happen once. As ``wish``; who begins later does not hear of it."""
        self._write(connector, event, {**content, "id": uuid.uuid4().hex})

    def target(self, connector: str) -> Target:
        return _target(self._heard.get((connector, "target")))

    def _write(self, connector: str, wish: Wish | Event, value: Any) -> None:
        taken = self._taken
        offset = self._topic.write(self._key(connector, wish), None if value is None else compact_json(value))
        with self._changed:
            if offset <= taken == self._taken:
                self._taken = -1  # that was in another topic, which was deleted: nothing of this one is obeyed yet
            if not self._changed.wait_for(lambda: self._taken >= offset, HEAR_SECONDS):
                why = self.error or "nothing comes"
                raise RetriableDeliveryError(f"topic {self._name}: it was written, but is not read: {why}")

    def _key(self, connector: str, wish: Wish | Event) -> bytes:
        return compact_json([connector, {"group": self.group_id, "event" if wish in EVENTS else "wish": wish}])

    def _follow(self) -> None:
        while not self._ended.is_set():
            try:
                records = self._topic.poll_whole(POLL_SECONDS)
                self._take(records)
                self._look_for_what_was_lost(records)
                self._write_what_was_lost()
                self.error, self.forbidden = None, False
            except RetriableDeliveryError as error:
                if self.error is None:
                    log.warning("%s: what was asked of connectors is not heard; trying again", error)
                self.forbidden, self.error = False, str(error)
            except CdcError as error:
                if self.error is None:
                    log.warning("%s: whether connectors were paused is not known, and nobody can pause them", error)
                self.forbidden, self.error = True, str(error)
                # Whoever may not read it has paused nothing; nor must the connector stand still for lack of a right.
                self._known.set()
            if self._topic.complete:
                self._listens = True
                self._known.set()
                self._ended.wait(0 if self._topic.reading else PAUSE_SECONDS)
            elif self.error is not None:
                self._ended.wait(PAUSE_SECONDS)
        self._topic.close()

    def _look_for_what_was_lost(self, whole: Sequence[tuple[int, bytes, bytes | None]]) -> None:
        """In a topic that came in the place of the one that we knew; what others have asked there since counts."""
        if not self._topic.reading and any(content is not None for content in self._heard.values()):
            self._topic.create()  # where it is there after all, it is the same, and nothing is lost
        if not (self._topic.reading and self._topic.complete) or self._topic.renewals == self._renewals:
            return
        self._renewals = self._topic.renewals
        there = {found[:2] for _, key, value in whole if (found := self._parsed(key, value)) is not None}
        known = {place: content for place, content in self._heard.items() if content is not None}
        self._lost = {place: known[place] for place in known.keys() - there}
        if self._lost:
            names = ", ".join(sorted({connector for connector, _ in self._lost}))
            log.warning("topic %s was deleted: what it said of %s is written into the new one", self._name, names)

    def _write_what_was_lost(self) -> None:
        """One at a time: somebody may ask for something else meanwhile."""
        for place, content in sorted(self._lost.items(), key=_place)[:1]:
            try:
                self._topic.write(self._key(*place), compact_json(content))
                del self._lost[place]
            except RetriableDeliveryError:
                raise
            except CdcError as error:
                log.warning("%s: who starts later knows nothing of what was asked of connectors before", error)
                self._lost.clear()

    def _take(self, records: Sequence[tuple[int, bytes, bytes | None]]) -> None:
        """What stands in them together: of each key the last word."""
        wishes: dict[tuple[str, Wish], Any] = {}
        events: list[tuple[str, Event, Any]] = []
        for _, key, value in records:
            found = self._parsed(key, value)
            if found is None:
                continue  # of somebody else who shares the topic
            connector, what, content = found
            if what in EVENTS:
                events.append((connector, what, content))
            else:
                wishes[connector, cast(Wish, what)] = content
        for (connector, wish), content in sorted(wishes.items(), key=_place):
            if (connector, wish) not in self._heard or self._heard[connector, wish] != content:
                self._obey(connector, wish, content)
            self._heard[connector, wish] = content
            self._lost.pop((connector, wish), None)
        for connector, event, content in events:
            self._hear(connector, event, content)
        if records:
            # Only now: whoever waits for it is told when it is done.
            with self._changed:
                self._taken = records[-1][0]
                self._changed.notify_all()

    def _hear(self, connector: str, event: Event, content: Mapping[str, Any]) -> None:
        """What was said before this process began was for those that ran then. A topic may be read once more."""
        said = compact_json([connector, event, content])
        old = said in self._said
        self._said.add(said)
        if self._listens and not old:
            with contextlib.suppress(LookupError, TypeError, ValueError, AttributeError):  # of another version
                self._told(connector, event, content)

    def _obey(self, connector: str, wish: Wish, content: Any) -> None:
        if wish == "config":
            self._defined(connector, None if content is None else content["config"])
        elif _target(content) is not self.target(connector):
            self._directed(connector, _target(content))

    def _parsed(self, key: bytes, value: bytes | None) -> tuple[str, Wish | Event, Any] | None:
        try:
            connector, what = parse_json(key)
            wish: Wish | Event = what["event"] if "event" in what else what["wish"]
            known = EVENTS if "event" in what else WISHES
            if wish not in known or what["group"] != self.group_id or not isinstance(connector, str):
                return None
            if not connector and wish in WISHES:
                return None  # no connector has that name, and nobody could delete it
            content = None if value is None else parse_json(value)
            if wish in EVENTS:
                return (connector, wish, content) if isinstance(content, dict) else None
            if content is not None and wish == "target":
                Target(content["target"])
            elif content is not None and not all(isinstance(text, str) for text in content["config"].values()):
                return None
        except (ValueError, TypeError, LookupError, AttributeError):
            return None
        return connector, wish, content


def _target(content: Any) -> Target:
    return Target.RUNNING if content is None else Target(content["target"])


def _place(wish: tuple[tuple[str, Wish], Any]) -> int:
    """Among those that come together: nothing runs in between that is to stand still, or is to be another one."""
    (_, kind), content = wish
    if kind == "config":
        return 1
    return 2 if _target(content) is Target.RUNNING else 0
