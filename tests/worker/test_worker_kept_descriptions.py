"""A schemas topic that somebody deletes under a worker has the tables' descriptions again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from connector.delivery import ensure_topics
from connector.errors import ConfigurationError, Problem, RetriableDeliveryError
from connector.source import Background, Tables
from connector.worker.kept_descriptions import KeptDescriptions
from connector.worker.settings import kafka_clients, spec_of
from connector.worker.topic_looks import LOOK_SECONDS
from embedded.kafka import EmbeddedKafka
from tests.config.files import loaded
from tests.source.test_source_tables import OLD
from tests.worker.harness import until


class Beside:
    """Chores that are done when they are asked for."""

    def __init__(self, answer: Any = None) -> None:
        self.answer, self.asked = answer, 0

    def submit(self, call: Callable[[], Any], then: Callable[[Any, BaseException | None], None]) -> None:
        self.asked += 1
        try:
            found = call() if self.answer is None else self.answer
            if isinstance(found, Exception):
                raise found
        except Exception as error:
            then(None, error)
        else:
            then(found, None)


def written() -> Tables:
    tables = Tables([OLD])
    tables.record(OLD, "1")
    tables.recorded()
    return tables


def test_who_may_not_make_it_says_so_until_it_is_there() -> None:
    now = [1_000.0]
    configuration, tables = loaded(), written()
    background = Background(lambda: now[0], lambda: now[0])
    topic = configuration.connector.output.schema_topic
    chores = Beside()
    clients: Any = None
    kept = KeptDescriptions(configuration, clients, chores, background, tables)  # type: ignore[arg-type]
    kept.doubt("another topic")
    assert chores.asked == 0
    chores.answer = ConfigurationError([Problem("p", topic, "topic cannot be created: no", "create it by hand")])
    kept.doubt(topic)
    (said,) = map(str, background.failing())
    assert f"topic {topic}: " in said and "cannot be created: no" in said and "create it by hand" in said
    assert not any(each.holds for each in background.failing())
    chores.answer = RetriableDeliveryError("away")
    kept.tick()
    assert chores.asked == 1
    now[0] += LOOK_SECONDS
    kept.tick()
    assert chores.asked == 2 and len(background.failing()) == 1 and not tables.changed
    chores.answer = {"ks.t": "1"}
    now[0] += LOOK_SECONDS
    # Nobody doubts it any more: it is another one since the last look, and has stayed that.
    kept.tick()
    assert not background.failing() and not tables.changed, "it was not seen for a moment"
    now[0] += LOOK_SECONDS
    kept.tick()
    assert chores.asked == 3


@pytest.mark.kafka
def test_a_topic_that_was_deleted_is_made_anew_and_written(kafka: EmbeddedKafka, unique: Callable[[str], str]) -> None:
    configuration = loaded({"topic.prefix": unique("c")}, {"bootstrap.servers": kafka.bootstrap_servers})
    topic, clients, tables = configuration.connector.output.schema_topic, kafka_clients(configuration), written()
    admin = clients.admin()
    ensure_topics(admin, [spec_of(configuration, topic)])
    admin.delete_topics([topic])[topic].result(60)
    until(lambda: topic not in admin.list_topics(timeout=60).topics, what="its end")
    KeptDescriptions(configuration, clients, Beside(), Background(), tables).doubt(topic)  # type: ignore[arg-type]
    assert tables.changed and tables.unrecorded() == [OLD]
    assert topic in admin.list_topics(timeout=60).topics
