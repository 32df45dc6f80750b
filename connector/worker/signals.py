"""Debezium's signals: what somebody wants of snapshots, as records of a topic.

In: the records of `signal.kafka.topic`, with their offsets. Out: wishes for the planner, by table. Every worker reads
all of them, from the beginning; whoever has a table's home slot grants each once (`connector.topology`).
"""

from __future__ import annotations

import logging
import queue
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from connector.config import Configuration
from connector.delivery import KafkaClients, SmallTopic, compact_json, parse_json
from connector.errors import CdcError
from connector.source import Background, Purpose
from connector.table_name import TableName
from connector.topology import Action, Wish, WishesPlan
from connector.worker.settings import signals_spec

log = logging.getLogger(__name__)

SIGNALS = Purpose("signals", "signals are not heard", "snapshots go on as they are", holds=False)
POLL_SECONDS = 0.5
PAUSE_SECONDS = 2.0

ACTIONS: dict[str, Action] = {
    "execute-snapshot": "start",
    "stop-snapshot": "stop",
    "pause-snapshot": "pause",
    "resume-snapshot": "resume",
}

#: Debezium's. Changes never wait for a snapshot here, so the second is as the first.
WAYS = ("incremental", "blocking")


@dataclass(frozen=True, slots=True)
class Signal:
    """``collections``: expressions that whole names of tables match; none: all tables. ``filters``: of those that match
    the first, the rows that the second is true of."""

    id: str
    action: Action | Literal["log"]
    collections: tuple[str, ...] = ()
    filters: tuple[tuple[str, str], ...] = ()
    message: str = ""

    def wish(self, number: int, table: TableName) -> Wish | None:
        """What it wants of a table."""
        if self.action == "log" or not (not self.collections or _any(self.collections, table)):
            return None
        where = next((each for name, each in self.filters if _any((name,), table)), None)
        return Wish(number, self.action, self.id, where)

    def record(self) -> bytes:
        """As it is written to the topic."""
        kind = next(name for name, action in ACTIONS.items() if action == self.action)
        data: dict[str, Any] = {"type": "incremental"}
        if self.collections:
            data["data-collections"] = list(self.collections)
        if self.filters:
            data["additional-conditions"] = [{"data-collection": name, "filter": each} for name, each in self.filters]
        return compact_json({"id": self.id, "type": kind, "data": data})


def parse_signal(value: bytes | None) -> Signal:
    """Raises ``ValueError`` with what is wrong."""
    try:
        content = parse_json(value or b"")
        kind, data, id_ = content["type"], content.get("data") or {}, str(content.get("id", ""))
        if kind == "log":
            return Signal(id_, "log", message=str(data.get("message", "")))
        if kind not in ACTIONS:
            raise ValueError(f"{kind!r} is none of {', '.join(ACTIONS)} and log")
        if (way := str(data.get("type") or WAYS[0]).lower()) not in WAYS:
            raise ValueError(f"a snapshot of the type {way!r} is none of {' and '.join(WAYS)}")
        named = data.get("data-collections") or ()
        if isinstance(named, str):
            raise ValueError("data-collections is no list")
        collections = tuple(map(str, named))
        if kind == "execute-snapshot" and not collections:
            raise ValueError("data-collections is missing")
        given = [
            (str(each["data-collection"]), str(each["filter"])) for each in data.get("additional-conditions") or ()
        ]
        # Of older versions of Debezium: one for all.
        given += [(name, str(data["additional-condition"])) for name in collections if "additional-condition" in data]
        filters = tuple((name, meant) for name, text in given if (meant := condition(text)))
        for expression in (*collections, *(name for name, _ in filters)):
            _check(expression)
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"not a signal: {type(error).__name__}: {error}") from None
    return Signal(id_, ACTIONS[kind], collections, filters)


def condition(text: str) -> str:
    """What is meant by a filter. Raises ``ValueError`` for what is a statement."""
    # What it ends with is added where it belongs.
    meant = _FILTERING.sub("", text.strip().rstrip(";").rstrip()).rstrip()
    if meant[:6].lower() == "select" and not meant[6:7].strip():
        raise ValueError(f"a filter is a condition, what follows WHERE, and no statement: {meant}")
    if clause := _CLAUSE.search(_QUOTED.sub("", meant)):
        # A table is read in parts, and each would obey it.
        raise ValueError(f"a filter is a condition, and {clause[0].upper()} would leave out rows of it: {meant}")
    return meant


_FILTERING = re.compile(r"\ballow\s+filtering\Z", re.IGNORECASE)
#: Behind a condition, what makes fewer rows of those that it is true of.
_CLAUSE = re.compile(r"\b(?:limit|group\s+by|order\s+by)\b", re.IGNORECASE)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|\$\$.*?\$\$", re.DOTALL)


class Signals:
    """Of one worker: a thread reads, the owner takes."""

    def __init__(self, configuration: Configuration, clients: KafkaClients, background: Background) -> None:
        self._key = configuration.connector.output.topic_prefix.encode()
        self._topic = SmallTopic(clients, signals_spec(configuration), configuration.group)
        self._name = configuration.connector.reading.signal_topic
        #: With which topic of that name each came by.
        self._heard: queue.Queue[tuple[str | None, int, Signal]] = queue.Queue()
        # All of them, for tables that come later: one that is not there yet, or that is put into the list.
        self._said: list[tuple[int, Signal]] = []
        self._known: tuple[TableName, ...] = ()
        self._last = -1
        # Which topic the thread reads, and which one the owner has told the planner of.
        self._reads: str | None = None
        self._counts: str | None = None
        self._ended = threading.Event()
        self._hears = False
        self._error: str | None = None
        background.expect(SIGNALS)
        self._task = background.task(SIGNALS)

    def start(self) -> None:
        threading.Thread(target=self._follow, daemon=True, name="signals").start()

    def stop(self) -> None:
        self._ended.set()

    def take(self, planner: WishesPlan, tables: Iterable[TableName]) -> None:
        """In the owner's thread."""
        self._task.is_now(self._error)
        if not self._hears:
            if self._topic.end is None:
                return
            self._hears, self._counts = True, self._topic.which
            planner.hear_from(self._topic.end, self._counts)
        known = tuple(tables)
        if known == self._known and self._heard.empty():
            return
        told, heard, self._known = set(self._known), len(self._said), known
        while not self._heard.empty():
            topic, number, signal = self._heard.get()
            if topic != self._counts:
                # All that stands in it was said while somebody listened.
                self._counts, heard = topic, 0
                self._said.clear()
                planner.hear_from(0, topic)
            if signal.action == "log":
                log.info("signal %s: %s", signal.id, signal.message)
                continue
            self._said.append((number, signal))
            if all(signal.wish(number, table) is None for table in known):
                log.warning(
                    "signal %s: none of the tables that are read is among %s; it counts for one that comes",
                    signal.id,
                    signal.collections,
                )
        for table in known:
            for number, signal in self._said[heard if table in told else 0 :]:
                if (wish := signal.wish(number, table)) is not None:
                    planner.wish(table, wish)

    def _follow(self) -> None:
        while not self._ended.is_set():
            try:
                for number, key, value in self._topic.poll_with_offsets(POLL_SECONDS):
                    self._hear(number, key, value)
                self._error = None
            except CdcError as error:
                self._error = str(error)
            if not self._topic.reading:
                self._ended.wait(PAUSE_SECONDS)
        self._topic.close()

    def _hear(self, number: int, key: bytes, value: bytes | None) -> None:
        if (topic := self._topic.which) != self._reads:
            if self._reads is not None:
                log.warning("topic %s was deleted and created again: its signals are obeyed", self._name)
                self._last = -1
            self._reads = topic
        if number <= self._last:
            return  # the topic was lost for a moment, and is read once more
        self._last = number
        if key.strip(b'"') != self._key:
            return  # of another connector
        try:
            self._heard.put((self._reads, number, parse_signal(value)))
        except ValueError as error:
            log.warning("topic %s, offset %d: no signal, and passed over: %s", self._name, number, error)


# What stands for itself, the beginning of a group, a repetition, and one of a group.
_PARTS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(\(\??)|(\)[*+{])|([*+?{][?+]?)", re.DOTALL)
# Classes within classes: Java reads them otherwise.
_NESTED = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*?(?:\[|--|&&|~~|\|\|)", re.DOTALL)
#: Of each: more make an expression whose comparison with one name may last for hours, in which its worker does nothing.
_MOST_REPETITIONS = 4


def _check(expression: str) -> None:
    """Raises ``ValueError`` for what is no expression, and for one that may take for ever."""
    try:
        if _NESTED.search(expression):
            raise ValueError("a class holds another one")
        re.compile(expression)
    except (re.error, ValueError, RecursionError, OverflowError) as error:
        raise ValueError(f"not a regular expression: {error}") from None
    groups, repeated, repetitions = (sum(map(bool, each)) for each in _columns(_PARTS.findall(expression)))
    if repeated or max(groups, repetitions) > _MOST_REPETITIONS:
        raise ValueError(
            f"with a repeated group, or more than {_MOST_REPETITIONS} groups or repetitions, an expression might never "
            "be done: name the tables one by one"
        )


def _columns(found: list[tuple[str, str, str]]) -> Iterable[tuple[str, ...]]:
    return zip(*found, strict=True) if found else ((), (), ())


def _any(expressions: Iterable[str], table: TableName) -> bool:
    return any(re.fullmatch(each, str(table), re.IGNORECASE) for each in expressions)
