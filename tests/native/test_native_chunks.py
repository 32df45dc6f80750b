"""A table read in chunks whose rows nobody cuts, from a server: rows, chunks and pages are those of who cuts them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from cassandra.cluster import Session

from connector.changes import UncutPartitions
from connector.native import Kernel
from connector.source.chunks import Question, read_chunk
from connector.source.connection import Connection
from connector.source.descriptions import describe_base
from connector.source.settings import ChunkSize
from connector.topology import MAX_TOKEN, MIN_TOKEN
from tests.servers.scylla import Scylla

pytestmark = [pytest.mark.scylla, pytest.mark.any_scylla]


@pytest.fixture
def session(scylla: Scylla) -> Iterator[Session]:
    cluster = scylla.cluster()
    yield cluster.connect()
    cluster.shutdown()


def test_rows_that_nobody_cuts_are_those_that_are_cut(
    kernel: Kernel, scylla: Scylla, session: Session, unique: Callable[[str], str]
) -> None:
    """In pages of many rows; the last one of a range has few."""
    keyspace = unique("ks").replace("-", "_")
    session.execute(scylla.keyspace_ddl(keyspace, tablets=True))
    session.execute(f"CREATE TABLE {keyspace}.t (pk int, a int, v text, PRIMARY KEY (pk, a))")
    for pk in range(12):
        for a in range((1, 5, 90)[pk % 3]):
            value = "null" if a % 4 == 3 else f"'{'x' * a}'"
            session.execute(f"INSERT INTO {keyspace}.t (pk, a, v) VALUES ({pk}, {a}, {value})")
    found: list[list[object]] = []
    for scanner in (kernel, None):
        connection = Connection(scylla.settings(fetch_size=30), scanner)
        connection.open()
        question = Question(describe_base(connection, keyspace, "t")[0])
        low, inside = MIN_TOKEN, None
        chunks: list[object] = []
        kept = 0
        while low < MAX_TOKEN:
            chunk = read_chunk(connection, question, (low, MAX_TOKEN), inside, ChunkSize(40, 1 << 30))
            partitions = chunk.partitions
            kept += isinstance(partitions, UncutPartitions)
            cut = partitions.cut() if isinstance(partitions, UncutPartitions) else partitions
            chunks += [[*cut.items()], chunk.upto, chunk.inside, chunk.pages]
            low, inside = chunk.upto, chunk.inside
        found.append(chunks)
        assert (kept > 5) if scanner else not kept
        connection.close()
    assert found[0] == found[1]
