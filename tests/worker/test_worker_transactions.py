"""When a worker commits although nothing happens: what is said of its delivery has to be true."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from connector.errors import CdcError, ClockIsWrong, FatalDeliveryError, RightMissing, TransactionAborted
from connector.offsets_entry import OffsetsEntry
from connector.source import Background
from connector.worker import transactions
from connector.worker.transactions import Transactions
from tests.topology.single import WHOLE, Single, tablets


class _Kafka:
    """A delivery that notes what is committed."""

    ready, is_open, should_commit = True, False, False
    last_failure = connection_error = address = None

    def __init__(self) -> None:
        self.committed: list[int] = []

    def commit(self, entries: tuple[OffsetsEntry, ...], slots: frozenset[int], by: float | None) -> None:
        self.committed.append(len(entries))

    def abort(self) -> None:
        """Nothing was open any more."""


class _Tables(dict[Any, Any]):
    """Those of the logs with these TTLs, of which nothing is to be recorded."""

    def __init__(self, *ttls: int) -> None:
        super().__init__(
            {ttl: SimpleNamespace(description=SimpleNamespace(cdc=SimpleNamespace(ttl=ttl))) for ttl in ttls}
        )

    def recorded(self) -> None:
        """With a commit."""

    def not_recorded(self) -> None:
        """An abort."""


def transactions_of(
    kafka: _Kafka, single: Single, background: Background, skew_ms: float = 0.0, ttls: tuple[int, ...] = ()
) -> Transactions:
    anything: Any = SimpleNamespace(
        now_ms=lambda: single.now,
        skew_ms=skew_ms,
        owned=frozenset({0}),
        suspended_topics=(),
        topics=(),
        committed=lambda: None,
        aborted=lambda: None,
        take=lambda: (),
        options=SimpleNamespace(schema_topic=None),
        submit=lambda call, then: None,
    )
    delivery: Any = kafka
    tables: Any = _Tables(*ttls)
    return Transactions(
        delivery=delivery,
        planner=single.planner,
        encoder=anything,
        tables=tables,
        pipeline=anything,
        membership=anything,
        restoring=anything,
        clock=anything,
        chores=anything,
        look=anything,
        unseen=anything,
        heartbeat_ms=0,
        retry_seconds=1.0,
        background=background,
    )


def test_a_worker_without_changes_soon_shows_that_it_delivers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebalance had taken its last transaction back, and its changes went to another worker with their slot."""
    monkeypatch.setattr(transactions, "MARKS_SECONDS", 0.0)
    single, kafka, background = Single(tablets(1_000, WHOLE)), _Kafka(), Background()
    worker = transactions_of(kafka, single, background)

    def a_second_later() -> int:
        """How many transactions were committed by then."""
        single.to(single.now + 1_000)
        single.read_all()
        worker.commit_if_due()
        return len(kafka.committed)

    assert a_second_later() == 0, "that time has passed is not worth a transaction"
    worker.recover(TransactionAborted("ILLEGAL_GENERATION"))
    assert "changes are not delivered" in str(background.failing()[0])
    assert worker.last_error is not None
    at, _, said = worker.last_error.partition(": ")
    assert said == "ILLEGAL_GENERATION" and datetime.fromisoformat(at).tzinfo, "it is shown when all is well again, too"
    assert a_second_later() == 1 and not background.failing()
    assert a_second_later() == 1


@pytest.mark.parametrize(
    ("ttls", "seconds"),
    [((), 60), ((86_400,), 60), ((0,), 60), ((600, 86_400), 60), ((86_400, 0, 100), 10), ((20,), 2)],
)
def test_positions_of_idle_tables_advance_long_before_their_logs_lose_rows(
    monkeypatch: pytest.MonkeyPatch, ttls: tuple[int, ...], seconds: int
) -> None:
    monkeypatch.setattr(transactions, "MARKS_SECONDS", 0.0)
    single, kafka = Single(tablets(1_000, WHOLE)), _Kafka()
    worker = transactions_of(kafka, single, Background(), ttls=ttls)
    written = list[int]()
    for second in range(1, 4 * seconds + 1):
        single.to(single.now + 1_000)
        single.read_all()
        worker.commit_if_due()
        if len(kafka.committed) > len(written):
            written.append(second)
    gaps = [later - earlier for earlier, later in pairwise(written)]
    assert written[0] <= seconds and set(gaps) == {seconds}, written


@pytest.mark.parametrize(
    ("code", "skew_ms", "ends"),
    [
        (KafkaError.INVALID_TIMESTAMP, -5 * 3_600_000.0, "is ahead of ScyllaDB's"),
        (KafkaError.INVALID_TIMESTAMP, 5 * 3_600_000.0, "is behind ScyllaDB's"),
        (KafkaError.INVALID_TIMESTAMP, -2_000.0, None),
        (KafkaError.NOT_ENOUGH_REPLICAS, -5 * 3_600_000.0, None),
    ],
)
def test_a_worker_on_a_machine_whose_clock_is_wrong_leaves_its_slots_to_others(
    code: int, skew_ms: float, ends: str | None
) -> None:
    """It would keep them, as a good member of its group, and deliver nothing. Where the broker's clock is wrong, and
    ScyllaDB's is as ours, the others would be refused as well."""
    kafka: Any = _Kafka()
    worker = transactions_of(kafka, Single(tablets(1_000, WHOLE)), Background(), skew_ms)
    kafka.last_failure = SimpleNamespace(error=KafkaError(code), topic="offsets", record=None)
    worker.recover(TransactionAborted("offsets: it was refused"))
    if ends is None:
        worker.commit_if_due()
        return
    for _ in range(2):
        with pytest.raises(ClockIsWrong, match=ends):
            worker.commit_if_due()


def test_a_producer_that_is_refused_while_it_is_listened_to_ends_no_worker() -> None:
    """One without slots hears of it there: its coordinator is looked for again whenever a connection has ended."""
    single, kafka, told = Single(), _Kafka(), list[CdcError]()
    worker = transactions_of(kafka, single, Background())

    def refused() -> None:
        raise RightMissing("grant WRITE and DESCRIBE on transactional ids")

    kafka.listen = refused  # type: ignore[attr-defined]
    worker.recover = told.append  # type: ignore[method-assign]
    worker.listen()
    assert not told, "who has slots begins transactions"
    single.planner.release([*single.planner.owned])
    worker.listen()
    assert [type(each) for each in told] == [RightMissing]


def test_a_right_that_is_missing_is_waited_for_and_what_nobody_can_grant_is_not() -> None:
    """With two workers `run` had ended within half a minute, each of them having begun anew twice."""
    background = Background()
    worker = transactions_of(_Kafka(), Single(tablets(1_000, WHOLE)), background)
    for _ in range(5):
        worker._renewed(None, RightMissing("grant WRITE and DESCRIBE on transactional ids"))
        worker.commit_if_due()
    assert "grant WRITE and DESCRIBE on transactional ids" in str(background.failing()[0])
    worker._renewed(None, FatalDeliveryError("UNSUPPORTED_VERSION"))
    with pytest.raises(FatalDeliveryError, match="UNSUPPORTED_VERSION"):
        worker.commit_if_due()
