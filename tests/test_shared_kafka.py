"""All processes of a run have one broker, which nobody starts before a test wants it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from connector.errors import EmbeddedError
from tests.servers import shared_kafka
from tests.servers.shared_kafka import Counter, asked_for


class Broker:
    """As the embedded one, without Kafka."""

    started = closed = 0
    fails = ""

    def start(self) -> Broker:
        type(self).started += not self.started
        if self.fails:
            raise EmbeddedError(self.fails)
        return self

    port, pid = 12345, 77

    def close(self) -> None:
        type(self).closed += 1


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> type[Broker]:
    made = type("Broker", (Broker,), {})
    monkeypatch.setattr(shared_kafka, "EmbeddedKafka", made)
    return made


def test_it_is_started_for_the_first_and_ends_with_the_run(broker: type[Broker]) -> None:
    counter = Counter()
    assert broker.started == 0
    with ThreadPoolExecutor(4) as processes:
        brokers = list(processes.map(asked_for, [counter.port] * 4))
    assert [(each.bootstrap_servers, each.pid) for each in brokers] == [("127.0.0.1:12345", 77)] * 4
    with pytest.raises(EmbeddedError, match="own_kafka"):
        brokers[0].pause()
    assert (broker.started, broker.closed) == (1, 0)
    counter.close()
    assert broker.closed == 1
    with pytest.raises((EmbeddedError, OSError)):
        asked_for(counter.port)


def test_why_it_does_not_start_is_told_where_a_test_fails_of_it(broker: type[Broker]) -> None:
    broker.fails = "no Java"
    counter = Counter()
    with pytest.raises(EmbeddedError, match="no broker: EmbeddedError: no Java"):
        asked_for(counter.port)
    counter.close()
