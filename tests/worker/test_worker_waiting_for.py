"""From its start on, a worker says what it waits for until it reads its slots: until then nobody may call it well."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from connector.worker.status import waiting_for


def worker(member: str = "m", settled: bool = True, pending: tuple[int, ...] = (), ready: bool = True) -> Any:
    return SimpleNamespace(
        background=SimpleNamespace(failing=lambda lasting: []),
        delivery=SimpleNamespace(ready=ready),
        clients=SimpleNamespace(address="k:9092", health=SimpleNamespace(error=None)),
        membership=SimpleNamespace(member_id=member, settled=settled),
        restoring=SimpleNamespace(pending=frozenset(pending)),
        configuration=SimpleNamespace(group="g-orders"),
    )


def test_each_step_of_a_start_is_waited_for_by_name() -> None:
    assert waiting_for(worker("", False, ready=False)) == ["a Kafka producer (Kafka at k:9092)"]
    assert waiting_for(worker("", False)) == ["the consumer group g-orders to take the worker in"]
    assert waiting_for(worker(settled=False)) == ["the consumer group g-orders to say which slots are the worker's"]
    assert waiting_for(worker(pending=(2, 1))) == ["slots 1, 2 to be restored"]


def test_who_was_given_nothing_waits_for_nothing() -> None:
    assert waiting_for(worker()) == []
