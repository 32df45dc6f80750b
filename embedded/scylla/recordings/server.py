"""The server that a recording is played on: one node of it, reached through the Python driver.

In: address, login, TLS. Out: answers of statements in the words of recordings, raw cells of rows, the server's clock,
and keyspaces with a random suffix that are dropped again. Driver errors that are no answer become `EmbeddedError`.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ssl import SSLContext
from typing import Any, ClassVar

from cassandra import (
    AuthenticationFailed,
    ConsistencyLevel,
    DriverException,
    OperationTimedOut,
    RequestExecutionException,
)
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, Session
from cassandra.connection import ConnectionException
from cassandra.cqltypes import BytesType
from cassandra.policies import RetryPolicy, WhiteListRoundRobinPolicy
from cassandra.protocol import ErrorMessage, OptionsMessage, ProtocolHandler, ResultMessage
from cassandra.query import (
    UNSET_VALUE,
    BatchStatement,
    BatchType,
    BoundStatement,
    PreparedStatement,
    SimpleStatement,
    tuple_factory,
)

from connector.errors import EmbeddedError
from connector.timeuuid import micros_of
from embedded.scylla.identity import CLUSTER_NAME
from embedded.scylla.recordings.files import UNSET
from embedded.scylla.recordings.spelling import plain

# Schema changes take their time on big clusters, and machines are busy.
_ANSWER_SECONDS = 120

_CompiledResult: Any = ProtocolHandler.message_types_by_opcode[ResultMessage.opcode]


class _RawResult(_CompiledResult):  # type: ignore[misc]
    """Every column as a blob: the driver's own Python types hold neither all dates nor all timestamps."""

    column_metadata: Any

    def recv_results_metadata(self, f: Any, user_type_map: Any) -> None:
        super().recv_results_metadata(f, user_type_map)
        if self.column_metadata:
            self.column_metadata = [(*column[:3], BytesType) for column in self.column_metadata]


class _RawHandler(ProtocolHandler):  # type: ignore[misc]
    message_types_by_opcode: ClassVar[dict[int, Any]] = {
        **ProtocolHandler.message_types_by_opcode,
        ResultMessage.opcode: _RawResult,
    }


@dataclass(frozen=True)
class Address:
    """Where the server is and how to log in."""

    host: str
    port: int
    user: str | None = None
    password: str = ""
    tls: SSLContext | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class SkippedRecording(Exception):
    """The server cannot do what the recording needs; the text says what."""


class Server:
    """A context manager. Statements go one after the other to one node, as they did when a recording was made."""

    def __init__(self, address: Address, *, prefix: str = "recording_") -> None:
        self.address = address
        # What the names of its keyspaces begin with.
        self._prefix = prefix
        self.version = ""
        self.is_double = False
        self._prepared: dict[str, PreparedStatement] = {}
        self._clock = (0, 0.0)

    def __enter__(self) -> Server:
        where = self.address
        profile = ExecutionProfile(
            load_balancing_policy=WhiteListRoundRobinPolicy([where.host]),
            # The driver's own, since recordings have errors in the words that users of the driver see.
            retry_policy=RetryPolicy(),
            consistency_level=ConsistencyLevel.ONE,
            request_timeout=_ANSWER_SECONDS,
            row_factory=tuple_factory,
        )
        self._cluster = Cluster(
            [where.host],
            port=where.port,
            auth_provider=None if where.user is None else PlainTextAuthProvider(where.user, where.password),
            ssl_context=where.tls,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            protocol_version=4,
            schema_metadata_enabled=False,
            token_metadata_enabled=False,
        )
        try:
            self._session: Session = self._cluster.connect()
            self._raw: Session = self._cluster.connect()
            # What a prepared statement's result looks like is remembered by the driver; blobs must not be.
            self._raw.client_protocol_handler = _RawHandler
            self._look_around()
        except Exception as error:
            self._cluster.shutdown()
            if any(isinstance(each, AuthenticationFailed) for each in (error, *getattr(error, "errors", {}).values())):
                who = "clients without --user" if where.user is None else f"the login of {where.user}"
                raise EmbeddedError(f"{where} refuses {who}: {_reason(error)}") from None
            if isinstance(error, DriverException | NoHostAvailable | OSError):
                raise EmbeddedError(f"cannot reach a server at {where}: {_reason(error)}") from None
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.shutdown()

    def _look_around(self) -> None:
        local = self._session.execute("SELECT cluster_name, release_version FROM system.local").one()
        self.is_double = local[0] == CLUSTER_NAME
        self.version = local[1]
        try:
            row = self._session.execute("SELECT version FROM system.versions").one()
            self.version = row[0] if row else self.version
        except RequestExecutionException:
            pass  # older than the table; Cassandra's version of system.local is all there is to tell
        except Exception as error:
            if not _is_answer(error):
                raise
        before = time.monotonic()
        (now,) = self._session.execute("SELECT now() FROM system.local").one()
        self._clock = (micros_of(now.bytes), (before + time.monotonic()) / 2)

    # -- clock ---------------------------------------------------------------------------------------------------

    def now_us(self) -> int:
        """The server's time, from the one look at the start and this machine's clock that only runs forward."""
        server_us, seen = self._clock
        return server_us + round((time.monotonic() - seen) * 1_000_000)

    def wait_until_us(self, moment: int) -> None:
        while (ahead := moment - self.now_us()) > 0:
            time.sleep(ahead / 1_000_000)

    # -- statements ----------------------------------------------------------------------------------------------

    def run(self, text: str) -> None:
        """A statement of our own, which must succeed."""
        try:
            self._session.execute(text)
        except Exception as error:
            raise EmbeddedError(f"{self.address}: {text}: {_reason(error)}") from None

    def ask(self, text: str, spell: Callable[[Any], Any] = plain) -> dict[str, Any]:
        """A statement's answer: columns and rows, or error and message."""
        try:
            result = self._session.execute(SimpleStatement(text, fetch_size=5000))
            rows = [[spell(value) for value in row] for row in result]
            return {"columns": list(result.column_names or []), "rows": rows}
        except Exception as error:
            return self._refused(error, text)

    def write(self, statements: Sequence[tuple[str, Sequence[str | None]]], shift_us: int) -> Any:
        """Prepared statements with bytes bound to them, several as one UNLOGGED batch; `ok` or what was wrong."""
        try:
            bound = [self._bound(text, values, shift_us) for text, values in statements]
            if len(bound) == 1:
                self._session.execute(bound[0])
            else:
                batch = BatchStatement(BatchType.UNLOGGED)
                for each in bound:
                    batch.add(each)
                self._session.execute(batch)
        except Exception as error:
            return self._refused(error, statements[0][0])
        return "ok"

    def _bound(self, text: str, values: Sequence[str | None], shift_us: int) -> BoundStatement:
        prepared = self._prepared.get(text)
        if prepared is None:
            prepared = self._prepared[text] = self._prepare(text)
        bound = BoundStatement(prepared)
        bound.values = [
            _shifted(value, shift_us) if marker.name == "[timestamp]" else _cell(value)
            for marker, value in zip(prepared.column_metadata, values, strict=True)
        ]
        return bound

    def _prepare(self, text: str) -> PreparedStatement:
        """PREPARE has a timeout of its own in the driver, 10 s; to ask again does no harm."""
        deadline = time.monotonic() + _ANSWER_SECONDS
        while True:
            try:
                return self._session.prepare(text)
            except OperationTimedOut:
                if time.monotonic() >= deadline:
                    raise

    def rows(self, text: str) -> tuple[list[str], Iterator[Sequence[bytes | None]]]:
        """Column names, and rows of raw cells."""
        try:
            result = self._raw.execute(SimpleStatement(text, fetch_size=1000))
        except Exception as error:
            raise EmbeddedError(f"{self.address}: {text}: {_reason(error)}") from None
        return list(result.column_names), iter(result)

    def texts(self, text: str, *values: str) -> list[list[Any]]:
        """Rows of small system tables."""
        try:
            return [list(row) for row in self._session.execute(text, values)]
        except Exception as error:
            raise EmbeddedError(f"{self.address}: {text}: {_reason(error)}") from None

    def supported(self) -> dict[str, list[str]]:
        """What the server answers to OPTIONS."""
        connection = self._cluster.control_connection._connection
        if connection is None:
            raise EmbeddedError(f"the connection to {self.address} is lost")
        answer = connection.wait_for_response(OptionsMessage(), timeout=30)
        return {"CQL_VERSION": list(answer.cql_versions), **{key: list(each) for key, each in answer.options.items()}}

    def _refused(self, error: Exception, text: str) -> dict[str, Any]:
        if not _is_answer(error):
            raise EmbeddedError(f"{self.address} stopped answering at {text[:200]!r}: {_reason(error)}") from None
        return {"error": type(error).__name__, "message": str(error)}

    # -- keyspaces -----------------------------------------------------------------------------------------------

    @contextmanager
    def keyspace(self, tablets: bool) -> Iterator[str]:
        """A new keyspace. It is dropped at the end, and with it every keyspace whose name begins as its does."""
        name = f"{self._prefix}{secrets.token_hex(5)}"
        replication = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}"
        enabled = f"{{'enabled': {str(tablets).lower()}}}"
        made = self.ask(f"CREATE KEYSPACE {name} WITH replication = {replication} AND tablets = {enabled}")
        if "error" in made:
            if tablets:
                raise SkippedRecording(f"the server cannot make a keyspace with tablets: {_words(made['message'])}")
            # Servers that know no tablets know no such option either.
            made = self.ask(f"CREATE KEYSPACE {name} WITH replication = {replication}")
        if made.get("error") == "Unauthorized":
            raise EmbeddedError(
                f"{self.address}: the login may not create keyspaces: {_words(made['message'])};"
                " grant it CREATE on ALL KEYSPACES, or use another --user"
            )
        if "error" in made:
            raise EmbeddedError(f"{self.address}: cannot create a keyspace: {_words(made['message'])}")
        try:
            yield name
        except BaseException as error:
            try:
                # The connection may be what failed, and what was created should not stay behind.
                with Server(self.address) as another:
                    another._drop(name)
            except EmbeddedError as left:
                if not isinstance(error, EmbeddedError):
                    raise
                raise EmbeddedError(f"{error}; the keyspace {name} is left behind: {left}") from None
            raise
        self._drop(name)

    def _drop(self, name: str) -> None:
        for (found,) in self.texts("SELECT keyspace_name FROM system_schema.keyspaces"):
            if found.startswith(name):
                self.run(f"DROP KEYSPACE IF EXISTS {found}")


def _cell(value: str | None) -> Any:
    if value == UNSET:
        return UNSET_VALUE
    return None if value is None else bytes.fromhex(value)


def _shifted(value: str | None, shift_us: int) -> Any:
    if value is None or value == UNSET:
        return _cell(value)
    return (int.from_bytes(bytes.fromhex(value), "big", signed=True) + shift_us).to_bytes(8, "big", signed=True)


def _is_answer(error: Exception) -> bool:
    """Whether the server answered, with an error; everything else means that there is no server to talk to."""
    if isinstance(error, NoHostAvailable):
        # So the driver tells of "server error" and the like, which it holds for reasons to ask another node.
        return any(isinstance(each, ErrorMessage) for each in error.errors.values())
    if isinstance(error, OperationTimedOut | ConnectionException):
        return False
    return isinstance(error, DriverException | ErrorMessage)


def _reason(error: Exception) -> str:
    if isinstance(error, NoHostAvailable):
        return "; ".join(str(each) for each in error.errors.values()) or str(error)
    return _words(str(error)) or type(error).__name__


def _words(message: str) -> str:
    """The server's own words in what the driver makes of an error."""
    found = re.search(r'message="(.*)"', message, re.DOTALL)
    return found[1] if found else message
