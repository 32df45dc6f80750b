"""The driver's errors in the product's own words.

In: any exception of the driver. Out: the branch of the exception tree that decides: try again, or a clear state.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import Any

from cassandra import (
    AuthenticationFailed,
    ConsistencyLevel,
    DriverException,
    InvalidRequest,
    OperationTimedOut,
    RateLimitReached,
    ReadFailure,
    ReadTimeout,
    Unauthorized,
    Unavailable,
)
from cassandra.cluster import NoHostAvailable, UnresolvableContactPoints
from cassandra.connection import ConnectionException, ProtocolError
from cassandra.pool import NoConnectionsAvailable
from cassandra.protocol import ErrorMessage, SyntaxException

from connector.errors import (
    AccessDenied,
    FatalSourceError,
    ReplicasAway,
    RetriableSourceError,
    SourceError,
    TableMissing,
)

log = logging.getLogger(__name__)

# So many nodes that are down are named.
NAMED = 3

MISSING_TABLE = ("unconfigured table", "no such table", "does not exist", "can't find a column family")

# What waiting mends.
PASSING = (
    ReadFailure,
    RateLimitReached,
    NoHostAvailable,
    NoConnectionsAvailable,
    ConnectionException,
    ErrorMessage,
    OSError,
)


# What the driver says of an attempt to connect, or of a question, which hides what happened or what would help.
_PLAIN = (
    # It counts those that are under way, and names the node that was asked last alone.
    (re.compile(r"Client request timeout.*\(timeout=([0-9.]+?)(?:\.0)?s\b"), "no answer in {} s"),
    (
        re.compile(r"Last error: .*WRONG_VERSION_NUMBER"),
        "what listens there speaks no TLS, and scylla.ssl.enabled is true",
    ),
    (
        re.compile(r"Last error: .*(certificate verify failed.*?)(?: \(_ssl|$)", re.IGNORECASE),
        "{} (scylla.ssl.truststore.path names the authorities that are trusted)",
    ),
    (re.compile(r"Tried connecting to .* Last error: (.+)"), "{}"),
    (
        re.compile(r"Timed out creating connection \(([0-9.]+) seconds\)"),
        "connected, but no answer in {} s: the server hangs, or this is not its port for CQL (usually 9042, or 9142 "
        "with TLS)",
    ),
    (
        re.compile(r"Connection to \S+ was closed by server"),
        "the connection was closed before anything was answered: TLS or a certificate of the client may be wanted "
        "there (scylla.ssl.enabled), or this is not the port for CQL",
    ),
    (
        re.compile("This version of the driver does not support protocol version"),
        "what answers there does not speak CQL: this is not the port for it (usually 9042, or 9142 with TLS)",
    ),
)


class NotReached(RetriableSourceError):
    """No server said anything: the connection failed, or nothing came in time."""


class ReadTimedOut(RetriableSourceError):
    """The server or the driver gave up on a read: a narrower window may get through."""


class NoAnswer(ReadTimedOut, NotReached):
    """A read that no server answered in time."""


def translated(error: BaseException, doing: str, hosts: Iterable[Any] = ()) -> SourceError:
    """The exception for ``error``; ``doing`` says in a few words what failed, ``hosts`` are the nodes of the cluster:
    where replicas are missing it is not who was asked that has to be looked after."""
    if isinstance(error, SourceError):
        return error
    host, cause = _cause(error)
    host = None if host is None else bracketed(host)
    each = _by_host(error, cause)
    if each is None and host is not None and host not in doing:
        doing = f"{doing} ({host})"
    text = f"{doing}: {_text(cause) if each is None else each}"
    if isinstance(cause, AuthenticationFailed):
        return AccessDenied(f"{doing}: login refused: {_text(cause)}")
    if isinstance(cause, Unauthorized):
        return AccessDenied(text)
    if isinstance(cause, OperationTimedOut):
        return NoAnswer(text)
    if isinstance(cause, ReadTimeout):
        return ReadTimedOut(text)
    if isinstance(cause, Unavailable):
        down = [bracketed(str(each.endpoint)) for each in hosts if each.is_up is False]
        more = f" and {len(down) - NAMED} more" if len(down) > NAMED else ""
        return ReplicasAway(text + (f"; no connection to {', '.join(down[:NAMED])}{more}" if down else ""))
    if isinstance(cause, UnresolvableContactPoints):
        return NotReached(f"{doing}: the name does not resolve")
    if isinstance(cause, (NoHostAvailable, NoConnectionsAvailable, ConnectionException, ProtocolError, OSError)):
        return NotReached(text)
    if isinstance(cause, InvalidRequest):
        if any(words in str(cause).lower() for words in MISSING_TABLE):
            return TableMissing(text)
        return FatalSourceError(text)
    if isinstance(cause, SyntaxException):
        return FatalSourceError(text)
    if isinstance(cause, PASSING):
        return RetriableSourceError(text)
    if isinstance(cause, DriverException):
        return FatalSourceError(text)
    # Not a word of the server, but something inside of the driver or of this program (a KeyError, say): it says nothing
    # about the table or the server's version, and nothing may be concluded from it.
    log.debug("%s: unexpected error", doing, exc_info=cause)
    return SourceError(text)


def bracketed(place: str) -> str:
    """A host and its port, as the driver spells them; it has no brackets round an IPv6 address.

    >>> bracketed("::1:9042"), bracketed("db:9042")
    ('[::1]:9042', 'db:9042')
    """
    host, _, port = place.rpartition(":")
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else place


def _cause(error: BaseException) -> tuple[str | None, Any]:
    """Behind "no host available": the one error all hosts gave, or the first that waiting does not mend; and whose."""
    if isinstance(error, NoHostAvailable) and isinstance(error.errors, dict) and error.errors:
        errors = [(str(host), each) for host, each in error.errors.items() if isinstance(each, BaseException)]
        for host, each in errors:
            if isinstance(each, (AuthenticationFailed, Unauthorized, InvalidRequest, SyntaxException)):
                return host, each
        if errors:
            return errors[0]
    return None, error


def _by_host(error: BaseException, cause: BaseException) -> str | None:
    """What each of several hosts says, where it is not the same; in their order, whoever was asked first this time."""
    if (
        not isinstance(error, NoHostAvailable)
        or not isinstance(error.errors, dict)
        or isinstance(cause, NoHostAvailable)
    ):
        return None
    said = {bracketed(str(host)): _text(each) for host, each in error.errors.items()}
    if len(set(said.values())) < 2:
        return None
    more = f"; and {len(said) - NAMED} more" if len(said) > NAMED else ""
    return "; ".join(f"{host}: {text}" for host, text in sorted(said.items())[:NAMED]) + more


def _text(error: BaseException) -> str:
    if isinstance(error, Unavailable) and None not in (error.consistency, error.required_replicas):
        level = ConsistencyLevel.value_to_name.get(error.consistency, error.consistency)
        return f"too few replicas are up: {level} needs {error.required_replicas}, {error.alive_replicas} are"
    if isinstance(error, NoHostAvailable) and error.errors == {}:
        return "no node is known to be up"
    words = " ".join(str(error).split())
    for pattern, plain in _PLAIN:
        if met := pattern.search(words):
            return plain.format(*(group.lower() for group in met.groups()))
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
