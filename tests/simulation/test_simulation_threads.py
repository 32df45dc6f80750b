"""A simulation beside threads of the product that other tests have left: none meets the time of the other."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from tenacity import wait_random

from connector.aside import aside
from connector.delivery import KafkaClients
from connector.delivery.end_offsets import end_offsets
from connector.delivery.stranded import Silence
from tests.simulation.scenarios import simulated
from tests.simulation.scheduler import Process


class Leaderless:
    """Asked where partitions end, it has the product wait."""

    def list_offsets(self, wanted: dict[TopicPartition, Any], **_: object) -> dict[TopicPartition, Future[Any]]:
        refused: Future[Any] = Future()
        refused.set_exception(KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE)))
        return dict.fromkeys(wanted, refused)


def in_the_product() -> dict[str, Any]:
    """What a thread of the product is given: a clock, a thread of its own, a client of Kafka."""
    silence = Silence(0.0)
    assert silence.lasts()
    answer = aside(threading.get_ident, "aside")
    return {
        "clock": silence._clock(),
        "thread": answer.result(60),
        "admin": KafkaClients({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}).admin(),
    }


def wait_in_the_product() -> None:
    leaderless: Any = Leaderless()
    with pytest.raises(KafkaException):
        end_offsets(leaderless, [("t", 0)], leaderless=0.01)


def test_a_thread_that_was_left_has_the_real_time_and_the_simulation_its_own() -> None:
    with ThreadPoolExecutor(1) as left, simulated() as (scheduler, _):
        before = time.monotonic()
        theirs = left.submit(in_the_product).result()
        assert before <= theirs["clock"] <= time.monotonic()
        assert theirs["thread"] not in (threading.get_ident(), left.submit(threading.get_ident).result())
        assert isinstance(theirs["admin"], AdminClient)
        ours = in_the_product()
        assert ours["clock"] == 1_000.0 + scheduler.now
        assert ours["thread"] == threading.get_ident()
        assert not isinstance(ours["admin"], AdminClient)


def test_what_it_waits_for_lets_no_time_pass_in_the_simulation() -> None:
    turns: list[float] = []

    def turn() -> None:
        for _ in range(5):
            scheduler.pass_time(0.01)
            turns.append(scheduler.now)

    with ThreadPoolExecutor(1) as left, simulated() as (scheduler, _):
        scheduler.spawn(Process("simulated"), turn)
        scheduler.pass_time(0.015)
        left.submit(wait_in_the_product).result()
        assert len(turns) == 1 and scheduler.now == 0.015
        wait_in_the_product()
        assert len(turns) == 5


def test_what_it_draws_is_missed_by_no_run() -> None:
    before: Any = None
    pauses = wait_random(0, 1)

    def drawn(others: int) -> list[float]:
        with simulated():
            for _ in range(others):
                left.submit(random.random).result()
            return [pauses(before), pauses(before)]

    with ThreadPoolExecutor(1) as left:
        assert drawn(others=0) == drawn(others=3)
