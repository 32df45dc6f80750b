"""The public package: what it exports, and that it does what its first page says."""

from __future__ import annotations

import asyncio
import itertools
import math
import pickle
import threading
import types
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest
from cassandra.cluster import Session

import scylla_cdc
from embedded.scylla.process import EmbeddedScylla
from scylla_cdc import Bound, Change, ChangeReader, CollectionDelta, Operation
from scylla_cdc.arguments import milliseconds
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


def three_batches(session: Session, table: Callable[..., str]) -> str:
    """A table with twelve changes, four in each write."""
    name = table(tablets=False)
    for pk in range(3):
        rows = " ".join(f"INSERT INTO {name} (pk, ck, v) VALUES ({pk}, {ck}, 'x');" for ck in range(4))
        session.execute(f"BEGIN BATCH {rows} APPLY BATCH")
    return name


@pytest.mark.scylla
def test_a_loop_that_was_left_in_the_middle_of_a_batch_goes_on_in_the_next(
    scylla: EmbeddedScylla, session: Session, table: Callable[..., str]
) -> None:
    name = three_batches(session, table)
    whole = [(pk, ck) for pk in range(3) for ck in range(4)]

    def key(change: Change) -> tuple[int, int]:
        return change.key["pk"], change.key["ck"]

    with fast(scylla, name) as reader:
        pages = []
        while page := [key(change) for change in itertools.islice(reader, 3)]:
            pages.append(page)
        assert [len(page) for page in pages] == [3, 3, 3, 3]
        assert sorted(itertools.chain(*pages)) == whole

    with fast(scylla, name) as reader:
        first = [key(change) for change in itertools.islice(reader, 6)]
        saved = reader.checkpoint()
    with fast(scylla, name, checkpoint=saved) as reader:
        rest = [key(change) for change in reader]
    assert (len(first), len(rest)) == (6, 8), "the batch that was being looked at comes again, as a whole"
    assert {*first, *rest} == {*whole}

    async def with_breaks_and_timeouts() -> list[tuple[int, int]]:
        seen: list[tuple[int, int]] = []
        async with fast(scylla, name, follow=True) as following:
            async for change in following:
                seen.append(key(change))
                if len(seen) == 2:
                    break
            changes = aiter(following)
            while len(seen) < 12:
                seen.append(key(await asyncio.wait_for(anext(changes), 120)))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(changes), 0.1)
            session.execute(f"INSERT INTO {name} (pk, ck, v) VALUES (7, 8, 'x')")
            async for change in following:
                seen.append(key(change))
                break
        return seen

    seen = asyncio.run(with_breaks_and_timeouts())
    assert (sorted(seen[:12]), seen[12:]) == (whole, [(7, 8)])


@pytest.mark.scylla
def test_a_reader_is_opened_once_and_says_so(
    scylla: EmbeddedScylla, session: Session, table: Callable[..., str]
) -> None:
    reader = fast(scylla, three_batches(session, table))
    with pytest.raises(scylla_cdc.CdcError, match="has to be opened: with ChangeReader"):
        next(iter(reader))
    with reader:
        assert len(list(reader)) == 12
        assert reader.failing() == []
    with pytest.raises(scylla_cdc.CdcError, match="is closed: make another one"):
        list(reader)
    with pytest.raises(scylla_cdc.CdcError, match="opened once"), reader:
        pass


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
        (["127.0.0.1:9042"], "ks.t", {}, "several with commas"),
        ("127.0.0.1:9042", [], {}, "none is named"),
        ("127.0.0.1:9042", "ks.t", {"since": "2026-01-31"}, "since must be a datetime"),
        ("127.0.0.1:9042", "ks.t", {"until": date(2026, 1, 31)}, "until must be a datetime"),
        ("127.0.0.1:9042", "ks.t", {"since": math.nan}, "no time"),
        ("127.0.0.1:9042", "ks.t", {"since": 1_760_000_000}, "as seconds .* is 2025-10-09.*: write 1760000000000"),
        ("127.0.0.1:9042", "ks.t", {"consistency": "QUROUM"}, "consistency 'QUROUM': Value must be one of quorum"),
        ("127.0.0.1:9042", "ks.t", {"confidence_ms": 0.5}, "confidence_ms must be a whole number"),
    ],
)
def test_wrong_use_is_said(address: Any, tables: Any, options: dict[str, object], words: str) -> None:
    with pytest.raises(scylla_cdc.CdcError, match=words):
        ChangeReader(address, tables, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "moment", [1_760_000_000_250, 1_760_000_000_250.0, datetime(2025, 10, 9, 8, 53, 20, 250_000, UTC)]
)
def test_a_moment_may_be_a_fraction_as_a_clock_gives_it(moment: Any) -> None:
    assert milliseconds("since", moment) == 1_760_000_000_250


@pytest.mark.scylla
def test_patience_is_the_callers(scylla: EmbeddedScylla, session: Session, table: Callable[..., str]) -> None:
    name = table(tablets=False)
    fault = scylla.admin.add_fault("read_failure", table=f"{name}_scylla_cdc_log", opcode="EXECUTE")
    try:
        # It runs from the start: within half a second a busy machine has not even asked for a row.
        with fast(scylla, name, patience=4.0) as reader:
            with pytest.raises(scylla_cdc.RetriableSourceError, match="gave up after"):
                list(reader)
            assert any(name in each for each in reader.failing())
    finally:
        scylla.admin.remove_fault(fault)
