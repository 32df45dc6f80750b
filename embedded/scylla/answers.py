"""Carrying out requests: from a parsed request to the opcode and body of its answer.

In: a request, who asks (`Session`), the cluster. Out: an `Answer`, or a `CqlError`. Knows no sockets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from embedded.scylla.cluster import Cluster
from embedded.scylla.describe import describe
from embedded.scylla.engine import BatchEntry, Prepared
from embedded.scylla.errors import InvalidRequest, Unprepared
from embedded.scylla.nodes import Node
from embedded.scylla.placement import tablet_of
from embedded.scylla.protocol import frame, responses
from embedded.scylla.protocol.requests import Batch, Execute, Parameters, Prepare, Query
from embedded.scylla.results import RequestContext, Result, Rows, SchemaChange, SetKeyspace
from embedded.scylla.versions import LWT_MARK, METADATA_ID, TABLETS_ROUTING

_BATCH_KINDS: Final = ("logged", "unlogged", "counter")
_SERIAL: Final = 8


@dataclass(slots=True)
class Session:
    """What a connection carries from one request to the next; `extensions` of the protocol are those agreed on."""

    node: Node
    version: int = frame.NEWEST_VERSION
    user: str | None = None
    keyspace: str | None = None
    shard: int = 0
    extensions: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Answer:
    opcode: int
    body: bytes
    warnings: tuple[str, ...] = ()
    payload: Mapping[str, bytes] | None = None


Statement = Query | Prepare | Execute | Batch


def statement_texts(request: Statement, node: Node) -> Iterator[str]:
    """What the request says in CQL, prepared statements included; for matching faults."""
    if isinstance(request, Query | Prepare):
        yield request.text
    elif isinstance(request, Execute):
        if (prepared := node.prepared.get(request.id)) is not None:
            yield prepared.query
    else:
        for entry in request.entries:
            if isinstance(entry.statement, str):
                yield entry.statement
            elif (prepared := node.prepared.get(entry.statement)) is not None:
                yield prepared.query


def _context(session: Session, parameters: Parameters) -> RequestContext:
    serial = parameters.serial_consistency
    return RequestContext(
        session.keyspace,
        session.user,
        parameters.consistency,
        _SERIAL if serial is None else serial,
        parameters.default_timestamp,
        parameters.page_size,
        parameters.paging_state,
        session.node,
    )


def _prepared(node: Node, statement_id: bytes) -> Prepared:
    found = node.prepared.get(statement_id)
    if found is None:
        raise Unprepared(statement_id)
    return found


class Answerer:
    """Answers statements on behalf of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._verbs: dict[type, Callable[[Session, Statement], Answer]] = {
            Query: self._query,
            Execute: self._execute,
            Prepare: self._prepare,
            Batch: self._batch,
        }

    def answer(self, session: Session, request: Statement) -> Answer:
        self._cluster.answering = session.node
        with self._cluster.schema.as_of(session.node.schema):
            return self._verbs[type(request)](session, request)

    def _query(self, session: Session, request: Statement) -> Answer:
        assert isinstance(request, Query)
        parameters = request.parameters
        described = describe(request.text, self._cluster.schema, session.keyspace, self._cluster.settings.version)
        if described is not None:
            return self._rows(described, parameters.skip_metadata)
        result = self._cluster.engine.execute(request.text, parameters.values, _context(session, parameters))
        answer = self._result(session, result, parameters.skip_metadata)
        return self._routed(session, request.text, parameters, answer)

    def _execute(self, session: Session, request: Statement) -> Answer:
        assert isinstance(request, Execute)
        parameters = request.parameters
        prepared = _prepared(session.node, request.id)
        result = self._cluster.engine.execute(prepared, parameters.values, _context(session, parameters))
        answer = self._result(session, result, parameters.skip_metadata, request.metadata_id)
        return self._routed(session, prepared, parameters, answer)

    def _routed(self, session: Session, statement: str | Prepared, parameters: Parameters, answer: Answer) -> Answer:
        """The answer, with where the partition lives if another node or shard should have been asked."""
        cluster = self._cluster
        if TABLETS_ROUTING not in session.extensions or not parameters.values:
            return answer
        place = cluster.engine.partition_of(statement, parameters.values, session.keyspace)
        tablet = None if place is None else tablet_of(cluster, *place)
        if tablet is None or tablet.holds(session.node, session.shard):
            return answer
        return replace(answer, payload={"tablets-routing-v1": tablet.routing()})

    def _prepare(self, session: Session, request: Statement) -> Answer:
        assert isinstance(request, Prepare)
        prepared = self._cluster.engine.prepare(request.text, session.keyspace)
        session.node.remember(prepared)
        mark = LWT_MARK in session.extensions and prepared.compiled.conditional
        body = responses.prepared_body(
            session.version,
            prepared.id,
            prepared.variables,
            prepared.pk_indexes,
            prepared.result_columns,
            lwt_mark=mark,
            metadata_ids=METADATA_ID in session.extensions,
        )
        return Answer(frame.RESULT, body)

    def _batch(self, session: Session, request: Statement) -> Answer:
        assert isinstance(request, Batch)
        entries = []
        for entry in request.entries:
            if isinstance(entry.values, dict):
                raise InvalidRequest("Named values are not supported in BATCH messages")
            statement = (
                entry.statement if isinstance(entry.statement, str) else _prepared(session.node, entry.statement)
            )
            entries.append(BatchEntry(statement, entry.values))
        context = _context(session, request.parameters)
        result = self._cluster.engine.batch(_BATCH_KINDS[request.kind], entries, context)
        return self._result(session, result, skip_metadata=False)

    def _result(
        self, session: Session, result: Result, skip_metadata: bool, metadata_id: bytes | None = None
    ) -> Answer:
        if isinstance(result, Rows):
            return self._rows(result, skip_metadata, metadata_id)
        if isinstance(result, SetKeyspace):
            session.keyspace = result.keyspace
            body = responses.set_keyspace_body(result.keyspace)
        elif isinstance(result, SchemaChange):
            event = result.event
            body = responses.schema_change_body(event.change, event.target, event.keyspace, event.name)
        else:
            body = responses.void_body()
        return Answer(frame.RESULT, body, result.warnings)

    def _rows(self, rows: Rows, skip_metadata: bool, metadata_id: bytes | None = None) -> Answer:
        """`metadata_id` is the one that the client knows, None if it knows of none."""
        if rows.body is not None:
            count, content = rows.row_count, rows.body
        else:
            count, content = responses.encode_cells(rows.rows)
        if rows.columns:
            self._cluster.counters.served(rows.columns[0].keyspace, rows.columns[0].table, count)
        changed = None
        if metadata_id is not None and metadata_id != (current := responses.metadata_id(tuple(rows.columns))):
            changed = current
        metadata = responses.rows_metadata(rows.columns, skip_metadata, rows.paging_state, changed)
        return Answer(frame.RESULT, responses.rows_body(metadata, count, content), rows.warnings)
