"""The public package: what it exports, and that it does what its first page says."""

from __future__ import annotations

import asyncio
import pickle
import threading
import types
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from cassandra.cluster import Session

import scylla_cdc
from embedded.scylla.process import EmbeddedScylla
from scylla_cdc import Bound, Change, ChangeReader, CollectionDelta, Operation
from tests.servers.patience import until
from tests.source.conftest import session, table

__all__ = ["session", "table"]


def test_what_is_exported_is_what_is_promised() -> None:
    shown = {
        name
        for name, value in vars(scylla_cdc).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType) and name not in ("annotations", "Any")
    }
    assert shown | {"__version__"} == set(scylla_cdc.__all__)
    assert all(getattr(scylla_cdc, name).__doc__ for name in scylla_cdc.__all__ if name != "__version__")


def fast(scylla: EmbeddedScylla, name: str, **options: object) -> ChangeReader:
    return ChangeReader(scylla.address, name, confidence_ms=300, **options)  # type: ignore[arg-type]


@pytest.mark.scylla
def test_changes_come_as_python_values(scylla: EmbeddedScylla, session: Session, table: Callable[..., str]) -> None:
    name = table(tablets=False, columns="v text, s set<int>", cdc="{'enabled': true, 'preimage': 'full'}")
    began = datetime.now(UTC)
    session.execute(f"INSERT INTO {name} (pk, ck, v) VALUES (1, 2, 'a') USING TTL 600")
    session.execute(f"UPDATE {name} SET v = null, s = s + {{6}} WHERE pk = 1 AND ck = 2")
    session.execute(f"DELETE FROM {name} WHERE pk = 1 AND ck = 2")
    session.execute(f"DELETE FROM {name} WHERE pk = 1 AND ck > 3 AND ck <= 8")
    session.execute(f"DELETE FROM {name} WHERE pk = 1")
    found = list(scylla_cdc.changes(scylla.address, name, confidence_ms=300))
    insert, update, delete, several, partition = found
    assert [change.operation for change in found] == list(Operation)
    assert (insert.table, insert.key, insert.ttl) == (name, {"pk": 1, "ck": 2}, 600)
    assert insert.values == {"v": "a"}
    assert update.values == {"v": None, "s": CollectionDelta(False, ((6, True),))}
    assert (update.before, update.after) == ({"pk": 1, "ck": 2, "v": "a", "s": None}, None)
    assert delete.values == {}
    assert (several.key, several.start, several.end) == ({"pk": 1}, Bound((3,), False), Bound((8,), True))
    assert partition.key == {"pk": 1}
    assert abs((insert.time - began).total_seconds()) < 600
    assert pickle.loads(pickle.dumps(insert)) == insert


@pytest.mark.scylla
def test_a_checkpoint_goes_on_where_a_reader_was(
    scylla: EmbeddedScylla, session: Session, table: Callable[..., str]
) -> None:
    name = table(tablets=True)
    for number in range(5):
        session.execute(f"INSERT INTO {name} (pk, ck, v) VALUES (1, {number}, 'x')")
    with fast(scylla, name, follow=True) as reader:
        changes = iter(reader)
        seen = [next(changes).key["ck"] for _ in range(3)]
        saved = reader.checkpoint()
    with fast(scylla, name, checkpoint=saved) as reader:
        rest = [change.key["ck"] for change in reader]
    # The third was still being looked at.
    assert (seen, rest) == ([0, 1, 2], [2, 3, 4])


@pytest.mark.scylla
def test_async_for_can_be_left(scylla: EmbeddedScylla, session: Session, table: Callable[..., str]) -> None:
    name = table(tablets=False)
    session.execute(f"INSERT INTO {name} (pk, ck, v) VALUES (1, 1, 'x')")

    async def first_then_cancelled() -> list[Change]:
        seen: list[Change] = []
        first = asyncio.Event()

        async def follow() -> None:
            async with fast(scylla, name, follow=True) as reader:
                async for change in reader:
                    seen.append(change)
                    first.set()

        following = asyncio.create_task(follow())
        await asyncio.wait_for(first.wait(), 120)
        following.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(following, 120)
        return seen

    before = threading.active_count()
    assert [change.key for change in asyncio.run(first_then_cancelled())] == [{"pk": 1, "ck": 1}]
    until(lambda: threading.active_count() <= before + 1, what="the end of the reader's threads")


@pytest.mark.parametrize(
    ("address", "tables", "options", "words"),
    [
        ("", "ks.t", {}, "address ''"),
        ("127.0.0.1:port", "ks.t", {}, "127.0.0.1:port"),
        ("127.0.0.1:9042", "orders", {}, "must be keyspace.table"),
        ("127.0.0.1:9042", "ks.t", {"follow": True, "until": 5}, "contradict"),
    ],
)
def test_wrong_use_is_said(address: str, tables: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(scylla_cdc.CdcError, match=words):
        ChangeReader(address, tables, **options)  # type: ignore[arg-type]
