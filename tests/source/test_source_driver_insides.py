"""What `connector/source/pages.py` lists as taken from the driver's insides, against the driver that is installed: what
a new version of it does otherwise must show here."""

from __future__ import annotations

import gc
import io
import queue
import re
import uuid
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import Mock

import pytest
from cassandra import DriverException
from cassandra.cqltypes import BytesType, Int32Type, VarcharType
from cassandra.metadata import Metadata, Murmur3Token, TokenMap
from cassandra.protocol import ProtocolHandler, ResultMessage
from cassandra.protocol_features import ProtocolFeatures
from cassandra.query import BoundStatement
from cassandra.tablets import Tablet

from connector.source.connection import Connection
from connector.source.pages import RawPage, RawProtocolHandler
from connector.source.persistent_cluster import cluster_by
from connector.source.routing import aim
from connector.source.settings import ConnectionSettings
from connector.values.types import native
from embedded.scylla.process import EmbeddedScylla
from embedded.scylla.protocol import frame, responses
from embedded.scylla.results import ColumnSpec
from tests.servers.patience import until
from tests.source.conftest import address

ROWS = [(b"\0\0\0\1", b"x"), (None, b"")]
COLUMNS = (ColumnSpec("ks", "t", "a", native("int")), ColumnSpec("ks", "t", "b", native("text")))
REMEMBERED = [("ks", "t", "a", Int32Type), ("ks", "t", "b", VarcharType)]


def test_the_driver_is_the_one_in_the_lock_file() -> None:
    lock = (Path(__file__).resolve().parents[2] / "requirements.lock").read_text()
    pinned = re.search(r"^scylla-driver==(\S+)", lock, re.MULTILINE)
    assert pinned is not None
    assert version("scylla-driver") == pinned[1]


def rows_body(*, skip: bool, changed: bytes | None = None, state: bytes | None = None) -> bytes:
    metadata = responses.rows_metadata(COLUMNS, skip, state, changed)
    return responses.rows_body(metadata, *responses.encode_cells(ROWS))


def decode(body: bytes, remembered: Any, handler: Any = RawProtocolHandler) -> Any:
    """As the driver's connections do it."""
    return handler.decode_message(
        4, ProtocolFeatures(use_metadata_id=True), {}, 1, 0, frame.RESULT, body, None, remembered
    )


def test_results_are_parsed_by_the_compiled_parser() -> None:
    compiled = ProtocolHandler.message_types_by_opcode[frame.RESULT]
    assert issubclass(compiled, ResultMessage)
    assert compiled is not ResultMessage, "the driver was installed without its compiled parts: reading would be slow"
    assert compiled.recv_results_rows is not ResultMessage.recv_results_rows
    assert issubclass(RawProtocolHandler.message_types_by_opcode[frame.RESULT], compiled)


@pytest.mark.parametrize("state", [None, b"page"])
@pytest.mark.parametrize("remembered", [None, [], REMEMBERED, [("ks", "t", "other", BytesType)]])
def test_a_page_with_metadata_is_read_by_it(remembered: Any, state: bytes | None) -> None:
    message = decode(rows_body(skip=False, state=state), remembered)
    raw_page(message, ["int", "varchar"], state)
    assert message.column_metadata == REMEMBERED
    assert getattr(message, "result_metadata_id", None) is None


@pytest.mark.parametrize("state", [None, b"page"])
def test_a_page_without_metadata_is_read_by_what_the_request_was_made_with(state: bytes | None) -> None:
    given = list(REMEMBERED)
    message = decode(rows_body(skip=True, state=state), given)
    raw_page(message, ["int", "varchar"], state)
    assert message.column_metadata is None, "nothing to remember"
    assert given == REMEMBERED


def test_a_page_with_changed_metadata_teaches_the_driver_the_true_types() -> None:
    message = decode(rows_body(skip=True, changed=b"new", state=b"page"), [("ks", "t", "other", BytesType)])
    raw_page(message, ["int", "varchar"], b"page")
    assert (message.column_metadata, message.result_metadata_id) == (REMEMBERED, b"new")


def raw_page(message: Any, types: Sequence[str], state: bytes | None) -> None:
    page = message.parsed_rows
    assert isinstance(page, RawPage)
    assert list(page.rows) == ROWS
    assert (page.columns, [kind.typename for kind in page.types]) == (("a", "b"), types)
    assert (message.column_names, message.column_types) == (["a", "b"], [Int32Type, VarcharType])
    assert message.paging_state == state
    assert list(page.decoded()) == [{"a": 1, "b": "x"}, {"a": None, "b": ""}]


@pytest.mark.parametrize("remembered", [None, [], REMEMBERED[:1], [*REMEMBERED, ("ks", "t", "c", Int32Type)]])
def test_rows_that_do_not_fit_what_is_remembered_are_never_cut(remembered: Any) -> None:
    with pytest.raises(DriverException, match=r"rows of 2 columns came without their names, and [013] are known"):
        decode(rows_body(skip=True), remembered)


def test_what_is_learned_from_prepared_are_the_true_types() -> None:
    binds = (ColumnSpec("ks", "t", "a", native("int")),)
    body = responses.prepared_body(4, b"id", binds, [0], COLUMNS, metadata_ids=True)
    message = decode(body, None)
    assert (message.query_id, message.result_metadata_id) == (b"id", responses.metadata_id(COLUMNS))
    assert message.column_metadata == REMEMBERED
    assert message.bind_metadata == [("ks", "t", "a", Int32Type)]


def test_the_driver_itself_reads_by_the_page_first_and_then_by_what_it_remembers() -> None:
    """The contract that our parser hands on: the driver's own shows the same."""
    plain = decode(rows_body(skip=True), REMEMBERED, ProtocolHandler)
    assert plain.parsed_rows == [(1, "x"), (None, "")]
    told = decode(rows_body(skip=False), [("ks", "t", "other", BytesType)], ProtocolHandler)
    assert (told.parsed_rows, told.column_names) == ([(1, "x"), (None, "")], ["a", "b"])


def test_the_body_is_seekable_and_stands_before_the_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[type, int, int]] = []
    compiled = ProtocolHandler.message_types_by_opcode[frame.RESULT]

    class Looking(compiled):  # type: ignore[misc, valid-type]
        def recv_results_rows(self, f: Any, *rest: Any) -> None:
            seen.append((type(f), f.tell(), len(rest)))

    class Handler(ProtocolHandler):  # type: ignore[misc]
        message_types_by_opcode: ClassVar[dict[int, Any]] = {
            **ProtocolHandler.message_types_by_opcode,
            frame.RESULT: Looking,
        }

    decode(rows_body(skip=True), REMEMBERED, Handler)
    assert seen == [(io.BytesIO, 4, 4)], "behind the kind of the result; version, user types, metadata, encryption"


@pytest.fixture
def connection(scylla: EmbeddedScylla) -> Iterator[Connection]:
    opened = Connection(ConnectionSettings((address(scylla.address),)))
    opened.open()
    yield opened
    opened.close()


@pytest.mark.scylla
def test_what_a_future_tells_of_its_page(connection: Connection) -> None:
    query = "SELECT keyspace_name FROM system_schema.keyspaces"
    everything = connection.query(query)
    assert len(everything) > 3
    found, state = [], None
    while True:
        told: queue.Queue[tuple[RawPage, bytes | None]] = queue.Queue()
        future = connection.session.execute_async(connection.statement(query, (), "ONE", 2), paging_state=state)
        future.add_callbacks(
            callback=lambda page, future=future, told=told: told.put((page, future._paging_state)),
            errback=lambda error, told=told: told.put(error),
        )
        page, state = told.get(timeout=90)
        assert future._final_result is page
        assert future.has_more_pages == (state is not None)
        assert future.result().paging_state == state
        found += page.decoded()
        if not state:
            break
    assert found == everything


@pytest.mark.scylla
def test_a_page_that_nobody_works_on_is_gone_without_the_garbage_collector(connection: Connection) -> None:
    statement = connection.statement("SELECT keyspace_name FROM system_schema.keyspaces", (), "ONE", 2)
    told: queue.Queue[object] = queue.Queue()

    def pages() -> bool:
        return any(type(each) is RawPage and len(each.rows) for each in gc.get_objects())

    # Those of other tests, whose futures timers of the driver still hold for a moment.
    until(lambda: gc.collect() >= 0 and not pages())
    gc.disable()
    try:
        for _ in range(20):
            connection.page_async(statement, lambda page, _: told.put(len(page.rows)), told.put)
            assert told.get(timeout=90) == 2
        # One or two are still in the hands of the driver's thread.
        until(lambda: not pages())
    finally:
        gc.enable()


def test_nothing_is_done_where_the_schema_changes() -> None:
    """As long as nodes differ, each change would take a thread of those that nodes which go or come wait for."""
    cluster = cluster_by(ConnectionSettings((("127.0.0.1", 9),)))
    cluster.scheduler = scheduled = Mock()
    cluster.control_connection._handle_schema_change(
        {"target_type": "TABLE", "change_type": "CREATED", "keyspace": "ks", "table": "t"}
    )
    assert scheduled.mock_calls == []
    cluster.control_connection._handle_topology_change({"change_type": "NEW_NODE", "address": ("127.0.0.2", 9)})
    assert len(scheduled.mock_calls) == 1


@pytest.mark.scylla
def test_what_a_statement_remembers_and_carries(connection: Connection) -> None:
    query = "SELECT key, tokens FROM system.local WHERE key = ?"
    statement = connection.raw_statement(query, [b"local"])
    prepared = statement.prepared_statement
    assert prepared.result_metadata_and_id == (prepared.result_metadata, prepared.result_metadata_id)
    assert next(column[2:] for column in prepared.result_metadata) == ("key", VarcharType)
    assert len(prepared.result_metadata_id) == 16
    assert BoundStatement(prepared).bind(["local"]).values == statement.values == [b"local"]
    aimed = aim(statement, 7, "ks", "log")
    assert (aimed.stream_token, aimed.keyspace, aimed.table) == (7, "ks", "log")
    assert connection.rows(statement)[0]["key"] == "local"


def test_what_is_known_of_the_ring_and_of_tablets() -> None:
    known = Metadata()
    ring = [Murmur3Token(token) for token in (-100, 100)]
    known.token_map = TokenMap(Murmur3Token, dict(zip(ring, ("a", "b"))), ring, known)
    assert known.token_map.token_class(100) == known.token_map.ring[1]
    assert known.token_map.token_to_host_owner[ring[1]] == "b"
    host = uuid.uuid4()
    known._tablets.add_tablet("ks", "log", Tablet(0, 100, [(host, 3)]))
    found = known._tablets.get_tablet_for_key("ks", "log", known.token_map.token_class(100))
    assert found is not None
    assert list(found.replicas) == [(host, 3)]
    assert known._tablets.get_tablet_for_key("ks", "log", known.token_map.token_class(101)) is None
