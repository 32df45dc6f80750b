"""What librdkafka writes into the logs of its clients: shown once in a while, and heard where nothing else tells of it.

In: its lines. Out: those that are news, in one log; of a client whose connections matter, what has happened to it.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

log = logging.getLogger("connector.kafka")

# A broker that is away makes every client say so many times a second: one line per kind and half minute is enough.
SAME_KIND_SECONDS = 30.0

# Of a coordinator that has just become one, as on a broker that is new: it is asked again, and answers moments later.
_BEGINS = "Coordinator load in progress: retrying"


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


QUIET = QuietLog()

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


_FAILED_TRANSACTION = re.compile(r".*Current transaction failed in state \w+: ")
_REFUSED_TOPIC = re.compile(r'"(?P<topic>[^"]+)" \[\d+\] to transaction: Broker: Topic authorization failed')


class HeedfulLog:
    """The log of a client whose connections matter. That one has ended is said in it, and nowhere else, unless all
    have, and that a transaction has failed while nobody asks: so everything is said to it, and what ``properties`` ask
    for is shown."""

    def __init__(self, heard: Heard, properties: Mapping[str, Any]) -> None:
        self._heard = heard
        usual = _IN_DETAIL if properties.get("debug") else TELLS_OF_CONNECTIONS
        self._level = _LEVELS[int(properties.get("log_level", usual))]
        self._closes = str(properties.get("log.connection.close", True)).lower() != "false"

    @staticmethod
    def told(properties: Mapping[str, Any]) -> dict[str, Any]:
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
            QUIET.log(level, text, *arguments)


# That somebody who was not there is still not there is no news.
_STILL_AWAY = re.compile(r"Connect to \S+ failed|Failed to resolve")

# What a client ends itself while something may be on its way. That it needs the configured addresses no more, now that
# it knows its brokers, is no news.
_CLOSED = re.compile(
    r"(?<!/bootstrap: )(nodename change|hostname updated|timed out: disconnect|Decommissioning this broker)"
    r".* in state (UP|REAUTH)\b"
)


def _is_loss(level: int, said: str) -> bool:
    """Of a line about a connection: whether something may be on its way still that the client takes for undone."""
    return _CLOSED.search(said) is not None if level <= logging.DEBUG else _STILL_AWAY.search(said) is None
