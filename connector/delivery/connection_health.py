"""Whether Kafka is reached, and why not, in words that a user can act on.

In: the errors that clients report of their connections. Out: the newest cause, until a call succeeds again; how often
connections failed.
"""

from __future__ import annotations

import re
import threading
import time
from typing import Final

from confluent_kafka import KafkaError

from connector.delivery.throttling import Throttling

# While a connection fails its client says so at least every half minute.
SAYS_AGAIN_SECONDS = 40.0


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


# A login of SASL, also that there is no token for it; a handshake of TLS; how the library of TLS begins what it says.
_REFUSALS: Final = frozenset((KafkaError._AUTHENTICATION, KafkaError._SSL))
_TLS: Final = "SSL routines:"
_NO_TOKEN: Final = "Failed to acquire SASL OAUTHBEARER token"
# It has that status, and drops it.
_NO_REASON: Final = "Server did not provide an error string"
_NO_REASON_GIVEN: Final = (
    "the server of tokens (sasl.oauthbearer.token.endpoint.url) answers with an error of HTTP, and says nothing beside"
)


def connection_cause(error: KafkaError) -> str:
    """``127.0.0.1:9092: connection refused`` out of what librdkafka says of a connection."""
    found = _PLACE.match(error.str())
    if found is None:
        return f"{error.name()}: {error.str().replace(_NO_REASON, _NO_REASON_GIVEN)}"
    place, text = found["place"], _AFTERWORD.sub("", found["text"])
    for words, plain in _PLAIN:
        if words in text:
            return f"{place}: {plain}"
    return f"{place}: {text}" if error.code() == KafkaError._AUTHENTICATION else f"{place}: {error.name()}: {text}"


# "sasl_plaintext://10.0.0.7:9092/bootstrap: Connect to ipv4#10.0.0.7:9092 failed: Connection refused (after 0ms in …)"
_PLACE = re.compile(r"(?:[a-z_]+://)?(?P<place>\S+?:\d+)(?:/\w+)?: (?P<text>.*)", re.DOTALL)
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
    # Two minutes and more before librdkafka says that it got no other token.
    (
        '{"status":"invalid_token"}',
        'the token was refused ({"status":"invalid_token"}): it has expired, and the server of tokens '
        "(sasl.oauthbearer.token.endpoint.url) gave none since, or the broker takes none of that server",
    ),
)
