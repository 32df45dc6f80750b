"""Kafka clients, built in one place from translated properties.

In: librdkafka properties per kind of client. Out: producers, consumers and admin clients that log to one logger,
remember the last connection error for `status`, and never wait for ever.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from connector.delivery.failures import LEADER_CHANGES, is_transient
from connector.delivery.records import BulkClient
from connector.delivery.throttling import Throttling
from connector.errors import RetriableDeliveryError

log = logging.getLogger("connector.kafka")

# While a connection fails its client says so at least every half minute.
SAYS_AGAIN_SECONDS = 40.0

# A commit flushes and waits for no linger, so that lingering costs no latency; without it librdkafka's thread wakes up
# for every handful of records and takes ten times as much of the processor.
LINGER_MS = 50

# A broker that is away makes every client say so many times a second: one line per kind and half minute is enough.
SAME_KIND_SECONDS = 30.0

# Of a coordinator that has just become one, as on a broker that is new: it is asked again, and answers moments later.
_BEGINS = "Coordinator load in progress: retrying"

Properties = Mapping[str, Any]
DeliveryCallback = Callable[[KafkaError, Message], None]

CALL_SECONDS = 10.0

# A partition has no leader, or one that does not know it yet, or one that has ended without a word: for a few seconds,
# a broker's session of nine for the last one.
LEADERLESS_SECONDS = 15.0
PAUSE_SECONDS = 0.1
# For an answer, before another client asks, who may be told of another leader.
ANSWER_SECONDS = 4.0

# librdkafka 2.x aborts the whole process (`eonce->refcnt > 0`) where a question to a group's coordinator runs out of
# the time that the library gives it, as after an outage. It is given more than anybody waits; its client goes before.
COORDINATOR_SECONDS = 600.0

#: Of consumers whose configuration names no other. With a short queue the client fetches while we wait, and we read
#: while it waits: each message is memory that its thread takes and ours gives back, and both at once spend as long
#: again on the allocator's lock. It also bounds memory; the client must then ask again soon.
_SHORT_QUEUE: Final = {
    "queued.max.messages.kbytes": 1_024,
    "queued.min.messages": 2_000,
    "fetch.queue.backoff.ms": 1,
}
READ_COMMITTED = "read_committed"
READ_UNCOMMITTED = "read_uncommitted"


class QuietLog:
    """librdkafka's log lines, each kind of them (``FAIL``, ``GETPID``, …) once in a while."""

    def __init__(self) -> None:
        self._said: dict[str, float] = {}

    def log(self, level: int, text: str, *arguments: object) -> None:
        """Called by confluent-kafka in place of a logger, within poll and flush."""
        kind = str(arguments[0]) if arguments else text
        if kind == "GETPID" and _BEGINS in str(arguments[-1]):
            log.debug(text, *arguments)
            return
        now = time.monotonic()
        known = self._said.get(kind)
        if known is None or now - known >= SAME_KIND_SECONDS:
            self._said[kind] = now
            # What librdkafka calls an error it goes on to mend by itself: none of it is one for our users.
            log.log(min(level, logging.WARNING), text, *arguments)
        else:
            log.debug(text, *arguments)


_QUIET = QuietLog()


# What librdkafka says of connections that others end is of this level at least, in its own count, which goes up with
# the detail; of those that it ends itself, as where another broker is the coordinator now, of the next, and if asked.
TELLS_OF_CONNECTIONS = 6
_CLOSES_BY_ITSELF = "broker"
_IN_DETAIL = 7

# Its levels from 0 to 7 as Python's.
_LEVELS = (*(3 * [logging.CRITICAL]), logging.ERROR, logging.WARNING, *(2 * [logging.INFO]), logging.DEBUG)


@dataclass(slots=True)
class Heard:
    """What the log of one client has said so far."""

    #: That a connection has ended, once or more often: what librdkafka said of a broker in the last half minute it
    #: does not say again. So this is of one client, and never reset: who needs to hear of the next one takes another.
    lost: bool = False
    #: Why the client gave its transaction up, while nobody asked.
    trouble: str | None = None
    #: A topic that was refused as a part of it, for lack of a right: its records wait, and no report tells of them.
    refused: str | None = None


class HeedfulLog:
    """The log of a client whose connections matter. That one has ended is said in it, and nowhere else, unless all
    have, and that a transaction has failed while nobody asks: so everything is said to it, and what ``properties`` ask
    for is shown."""

    def __init__(self, heard: Heard, properties: Properties) -> None:
        self._heard = heard
        usual = _IN_DETAIL if properties.get("debug") else TELLS_OF_CONNECTIONS
        self._level = _LEVELS[int(properties.get("log_level", usual))]
        self._closes = str(properties.get("log.connection.close", True)).lower() != "false"

    @staticmethod
    def told(properties: Properties) -> dict[str, Any]:
        """As much detail as is needed, however little is to be shown."""
        asked = filter(None, (properties.get("debug"), _CLOSES_BY_ITSELF))
        return {"log_level": _IN_DETAIL, "debug": ",".join(asked), "log.connection.close": True}

    def log(self, level: int, text: str, *arguments: object) -> None:
        kind, said = (str(arguments[0]), str(arguments[-1])) if arguments else ("", text)
        if kind == "FAIL" and _is_loss(level, said):
            self._heard.lost = True
        elif kind == "TXNERR":
            self._heard.trouble = _FAILED_TRANSACTION.sub("the transaction has failed: ", said)
        elif kind == "ADDPARTS" and (refused := _REFUSED_TOPIC.search(said)) is not None:
            self._heard.refused = self._heard.refused or refused["topic"]
        if level >= self._level and (self._closes or not (kind == "FAIL" and "Disconnected" in said)):
            _QUIET.log(level, text, *arguments)


class ConnectionHealth:
    """The newest connection error of any client of this process, cleared when a call succeeds again, or a quota.

    ``lost`` is for clients that last: that a client of a moment could reach no broker, or not the first address of a
    name, says nothing about theirs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.throttling = Throttling()
        self._error: str | None = None
        self._outages = self._failures = 0
        self._refused: tuple[float, str] | None = None
        self._without_token = float("-inf")

    def failed(self, error: KafkaError) -> None:
        with self._lock:
            self._failures += 1
            now, cause = time.monotonic(), connection_cause(error)
            if _NO_TOKEN in error.str():
                self._without_token = now
            # What follows the error that tells why: "all brokers are down", and whatever a broker says of an old token.
            of_old_token = _is_refusal(error) and now - self._without_token < SAYS_AGAIN_SECONDS
            follows = error.code() == KafkaError._ALL_BROKERS_DOWN or (of_old_token and _NO_TOKEN not in error.str())
            if follows and self._error is not None:
                return
            self._error = cause
            if _is_refusal(error):
                self._refused = now, cause

    def lost(self, error: KafkaError) -> None:
        self.failed(error)
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            with self._lock:
                self._outages += 1

    @property
    def outages(self) -> int:
        """How often a client that lasts lost all of its brokers."""
        with self._lock:
            return self._outages

    @property
    def failures(self) -> int:
        """How often a connection has failed, or a login was refused; while that lasts clients say so again."""
        with self._lock:
            return self._failures

    @property
    def refusal(self) -> str | None:
        """That a login was refused, by either side, a short while ago."""
        with self._lock:
            if self._refused is None or time.monotonic() - self._refused[0] >= SAYS_AGAIN_SECONDS:
                return None
            return self._refused[1]

    def succeeded(self) -> None:
        with self._lock:
            self._error = None

    @property
    def error(self) -> str | None:
        with self._lock:
            return self._error or self.throttling.cause


def _is_refusal(error: KafkaError) -> bool:
    """Since TLS 1.3 a client hears only behind the handshake that its certificate is not taken."""
    return error.code() in _REFUSALS or (error.code() == KafkaError._TRANSPORT and _TLS in error.str())


def connection_cause(error: KafkaError) -> str:
    """``127.0.0.1:9092: connection refused`` out of what librdkafka says of a connection."""
    found = _PLACE.match(error.str())
    if found is None:
        return f"{error.name()}: {error.str()}"
    place, text = found["place"], _AFTERWORD.sub("", found["text"])
    for words, plain in _PLAIN:
        if words in text:
            return f"{place}: {plain}"
    return f"{place}: {text}" if error.code() == KafkaError._AUTHENTICATION else f"{place}: {error.name()}: {text}"


# "sasl_plaintext://10.0.0.7:9092/bootstrap: Connect to ipv4#10.0.0.7:9092 failed: Connection refused (after 0ms in …)"
_PLACE = re.compile(r"(?:[a-z_]+://)?(?P<place>\S+?:\d+)(?:/\w+)?: (?P<text>.*)", re.DOTALL)
_FAILED_TRANSACTION = re.compile(r".*Current transaction failed in state \w+: ")
_REFUSED_TOPIC = re.compile(r'"(?P<topic>[^"]+)" \[\d+\] to transaction: Broker: Topic authorization failed')
# A login of SASL, also that there is no token for it; a handshake of TLS; how the library of TLS begins what it says.
_REFUSALS: Final = frozenset((KafkaError._AUTHENTICATION, KafkaError._SSL))
_TLS: Final = "SSL routines:"
_NO_TOKEN: Final = "Failed to acquire SASL OAUTHBEARER token"
# That somebody who was not there is still not there is no news.
_STILL_AWAY = re.compile(r"Connect to \S+ failed|Failed to resolve")
# What a client ends itself while something may be on its way. That it needs the configured addresses no more, now that
# it knows its brokers, is no news.
_CLOSED = re.compile(
    r"(?<!/bootstrap: )(nodename change|hostname updated|timed out: disconnect|Decommissioning this broker)"
    r".* in state (UP|REAUTH)\b"
)
_AFTERWORD = re.compile(r" \((?:after|install|_)[^()]*\)\s*$")
_PLAIN = (
    ("Failed to resolve", "the name does not resolve"),
    ("Connection refused", "connection refused"),
    ("Connection timed out", "connection timed out"),
    ("No route to host", "no route to the host"),
    ("Network is unreachable", "the network is unreachable"),
    # Behind a wrong port, or TLS on one side alone.
    # Not by "SSL connection closed by peer": so ends every connection by TLS, as when a broker is restarted.
    ("to a PLAINTEXT broker listener", "the connection was closed: TLS may not be spoken there (security.protocol)"),
    ("SSL routines::wrong version number", "TLS is not spoken there (security.protocol)"),
    ("security.protocol configuration", "the connection was closed: TLS may be wanted there (security.protocol)"),
    ("Invalid response size", "what answers there is not Kafka, or wants TLS (security.protocol)"),
    ("ApiVersionRequest failed: Local: Timed out", "connected, and no answer: does it hang, or is this not its port?"),
    ("ApiVersionRequest failed", "nothing that Kafka would answer: is this its port?"),
    ("Request not valid in current SASL state", "it takes no login there (security.protocol)"),
    ("Disconnected", "the connection was closed"),
)


def _is_loss(level: int, said: str) -> bool:
    """Of a line about a connection: whether something may be on its way still that the client takes for undone."""
    return _CLOSED.search(said) is not None if level <= logging.DEBUG else _STILL_AWAY.search(said) is None


def no_bulk_client() -> None:
    """Where nobody reads in bulk: records come one by one."""


@dataclass(slots=True)
class KafkaClients:
    """How to reach Kafka. ``producer``, ``consumer`` and ``admin`` add to (and override) ``common``, until `renew`."""

    common: Properties
    producer_properties: Properties = field(default_factory=dict)
    consumer_properties: Properties = field(default_factory=dict)
    admin_properties: Properties = field(default_factory=dict)
    #: Who reads in bulk, past the binding.
    bulk: Callable[[], BulkClient | None] = no_bulk_client
    health: ConnectionHealth = field(default_factory=ConnectionHealth)
    #: How often that has changed: see `LastingLogin`.
    renewals: int = 0
    _admins: weakref.WeakSet[AdminClient] = field(default_factory=weakref.WeakSet, repr=False, compare=False)

    @property
    def address(self) -> str:
        """Where Kafka is, as it was configured."""
        for properties in (self.common, self.admin_properties, self.producer_properties, self.consumer_properties):
            if "bootstrap.servers" in properties:
                return str(properties["bootstrap.servers"])
        return "an unknown address"

    def renew(self, other: KafkaClients) -> None:
        """Clients that are made from now on log in as ``other`` says."""
        self.common = other.common
        self.producer_properties = other.producer_properties
        self.consumer_properties = other.consumer_properties
        self.admin_properties = other.admin_properties
        self.renewals += 1  # behind them: who has noted it before has none of theirs, and looks again

    def explained(self, error: str) -> str:
        """Which Kafka an error is about, and what its connections say: an error of a call names neither."""
        for admin in list(self._admins):
            with contextlib.suppress(KafkaException):
                admin.poll(0)  # what it has to say is said in here
        cause = self.health.error
        return f"Kafka at {self.address}: {error}" if cause is None else f"Kafka at {self.address}: {cause} ({error})"

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Around what may find Kafka away: its error says where Kafka should be, and why it is not reached."""
        try:
            yield
        except RetriableDeliveryError as error:
            text = str(error)
            raise RetriableDeliveryError(text if "Kafka at " in text else self.explained(text)) from None

    def producer(
        self,
        on_delivery: DeliveryCallback | None = None,
        lasting: bool = False,
        heard: Heard | None = None,
        **own: Any,
    ) -> Producer:
        """``lasting``: its losing all brokers counts as an outage. ``heard``: who is told what its log says."""
        properties = self._merged(self.producer_properties, own)
        if lasting:
            properties["error_cb"] = self.health.lost
        if heard is not None:
            properties["logger"] = HeedfulLog(heard, properties)
            properties |= HeedfulLog.told(properties)
        if on_delivery is not None:
            properties["on_delivery"] = on_delivery
        properties.setdefault("linger.ms", LINGER_MS)
        return Producer(properties)

    def consumer(self, group: str, isolation: str, **own: Any) -> Consumer:
        """A consumer that commits nothing by itself and reports the end of each partition."""
        fixed = {
            "group.id": group,
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
        return Consumer(_SHORT_QUEUE | self._merged(self.consumer_properties, fixed | own))

    def admin(self) -> AdminClient:
        admin = AdminClient(self._merged(self.admin_properties, {}))
        self._admins.add(admin)
        return admin

    def _merged(self, kind: Properties, own: Properties) -> dict[str, Any]:
        merged = {**self.common, **kind, **{name.replace("_", "."): value for name, value in own.items()}}
        merged.setdefault("error_cb", self.health.failed)
        merged.setdefault("throttle_cb", self.health.throttling.heard)
        merged.setdefault("logger", _QUIET)
        return merged


_SETTLES = LEADER_CHANGES | {KafkaError.UNKNOWN_TOPIC_OR_PART}


def high_watermarks(
    clients: KafkaClients, topic: str, partitions: Iterable[int], leaderless: float = 0.0
) -> dict[int, int]:
    """The offsets behind everything that was written, committed or not. ``leaderless``: as of `end_offsets`; a leader
    that does not answer is looked for again as well."""
    places = [(topic, partition) for partition in partitions]
    deadline = time.monotonic() + leaderless
    while True:
        left = deadline - time.monotonic()
        # The client must outlive its futures, or they never complete.
        admin = clients.admin()
        try:
            found = end_offsets(
                admin, places, seconds=ANSWER_SECONDS if left > 0 else CALL_SECONDS, leaderless=max(0.0, left)
            )
            return {partition: offset for (_, partition), offset in found.items()}
        except TimeoutError:
            if left <= 0:
                raise
        except KafkaException as caught:
            if left <= 0 or not is_transient(caught.args[0]):
                raise


def end_offsets(
    admin: AdminClient,
    places: Iterable[tuple[str, int]],
    isolation: str = READ_UNCOMMITTED,
    seconds: float = CALL_SECONDS,
    leaderless: float = 0.0,
) -> dict[tuple[str, int], int]:
    """High watermarks, or (read_committed) last stable offsets, by topic and partition.

    Asked through the admin client: a read_committed consumer answers both questions with the last stable offset. A
    partition whose leader changes, or has not heard of it yet, is asked about again for so many ``leaderless`` seconds
    after it has said so first: for those who ask once and end with an error, as `status` does.
    """
    wanted = {TopicPartition(topic, partition): OffsetSpec.latest() for topic, partition in places}
    level = IsolationLevel.READ_COMMITTED if isolation == READ_COMMITTED else IsolationLevel.READ_UNCOMMITTED
    found: dict[tuple[str, int], int] = {}
    deadline: float | None = None
    while wanted:
        futures = admin.list_offsets(wanted, isolation_level=level, request_timeout=seconds)
        for where, future in futures.items():
            try:
                found[where.topic, where.partition] = int(future.result(timeout=seconds).offset)
            except KafkaException as caught:
                now = time.monotonic()
                # A slow first answer must not be the only one.
                deadline = now + leaderless if deadline is None else deadline
                if caught.args[0].code() not in _SETTLES or now >= deadline:
                    raise
            else:
                del wanted[where]
        if wanted:
            time.sleep(PAUSE_SECONDS)
    return found


class LastingLogin:
    """Of whoever keeps a client: whether its `KafkaClients` log in with something else since that was made."""

    def __init__(self, clients: KafkaClients) -> None:
        self._clients, self._noted = clients, clients.renewals

    @property
    def is_another(self) -> bool:
        return self._noted != self._clients.renewals

    def note(self) -> None:
        """Before another client is made: what changes meanwhile is seen by the next look."""
        self._noted = self._clients.renewals
