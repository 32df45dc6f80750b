"""Topics that keep state, of which somebody changes the settings while a connector runs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from connector.delivery import SeenTopic, ensure_topics
from connector.errors import RetriableDeliveryError
from connector.worker.kept_topics import ALL_SECONDS, LOOK_SECONDS, KeptTopics
from connector.worker.order import WorkerOrder
from connector.worker.settings import kafka_clients, topic_specs
from connector.worker.supervisor import Supervisor
from embedded.kafka import EmbeddedKafka
from tests.config.files import loaded
from tests.servers.patience import until


@pytest.mark.kafka
def test_a_topic_that_loses_what_it_keeps_is_told_while_the_connector_runs(
    kafka: EmbeddedKafka, unique: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    """Positions of streams in which little happens are the first to go; nobody misses them before the next start."""
    names = {each: unique(each) for each in ("offset", "status", "config")}
    given = {f"{each}.storage.{what}": value for each in names for what, value in (("replication.factor", "1"),)}
    given |= {f"{each}.storage.topic": name for each, name in names.items()}
    prefix = unique("shop")
    configuration = loaded(
        {"topic.creation.default.replication.factor": "1", "topic.prefix": prefix},
        {"bootstrap.servers": kafka.bootstrap_servers, **given},
    )
    admin, now = kafka_clients(configuration).admin(), [0.0]
    data = f"{prefix}.shop.orders"
    ensure_topics(admin, [spec for spec in topic_specs(configuration) if spec.name in (data, *names.values())])
    supervisor = Supervisor(["false"], [WorkerOrder(configuration, 0)], monotonic=lambda: now[0])
    supervisor.waiting_for = None

    def set_to(topic: str, value: str, name: str = "cleanup.policy") -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(60)

    def failing() -> list[str]:
        now[0] += LOOK_SECONDS
        supervisor._goes_on()
        supervisor._look_after()
        assert supervisor.kept_topics._look is None or wait([supervisor.kept_topics._look], 60)
        supervisor._look_after()
        return [str(each) for each in supervisor.background.failing()]

    assert failing() == []
    set_to(names["offset"], "delete")
    until(failing, what="a word of it")
    [said] = failing()
    assert said.startswith(f"topic {names['offset']}: it is not kept as it must be since ")
    assert "it exists but is not compacted; set cleanup.policy=compact on it" in said.replace("the topic", "it")
    set_to(names["offset"], "compact,delete")
    until(lambda: "deleted all the same" in str(failing()), what="another word")
    assert "kafka-configs.sh --alter" in (supervisor.status().waiting_for or "")
    set_to(names["offset"], "compact")
    until(lambda: not failing(), what="that it is mended")

    # Whoever wants that may have it: nothing waits, and it is said once.
    set_to(data, "compact")
    set_to(data, "LogAppendTime", "message.timestamp.type")
    until(lambda: failing() == [] and "LogAppendTime" in caplog.text, what="words of the topic of records")
    assert f"changed while the connector runs: topic {data} is compacted: of each key only the last" in caplog.text


def test_a_kafka_that_does_not_answer_changes_nothing_of_what_is_known() -> None:
    lost = {"offsets": SeenTopic("is not compacted")}
    answers = [lost, RetriableDeliveryError("away"), KeyError("unforeseen"), {}]
    now = 0.0

    def read(*_: object) -> dict[str, SeenTopic]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    kept = KeptTopics(lambda: now, read)
    told = list[dict[str, str | None]]()
    assert kept.look([loaded()]) == {} and kept._look is None, "it was looked at just now, in front of the workers"
    while answers:
        now += LOOK_SECONDS
        kept.look([loaded()])
        assert kept._look is not None and wait([kept._look], 60).done
        told.append(kept.look([]))
    assert told == [{"offsets": "is not compacted"}, {}, {}, {"offsets": None}]


def test_only_what_becomes_of_topics_of_records_while_they_are_written_to_is_said_and_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What was so at the start was said there. Topics of records may be thousands: they are not read each minute."""
    now, looks, away = 0.0, list[bool](), [RetriableDeliveryError("away")]
    seen = {"shop.a": SeenTopic(warnings=("a is compacted",)), "shop.b": SeenTopic()}

    def read(_: object, all_topics: bool) -> dict[str, SeenTopic]:
        if all_topics and away:
            raise away.pop()
        looks.append(all_topics)
        return {**seen} if all_topics else {}

    kept = KeptTopics(lambda: now, read)

    def said() -> list[str]:
        nonlocal now
        caplog.clear()
        looks.clear()
        for _ in range(round(ALL_SECONDS / LOOK_SECONDS)):
            now += LOOK_SECONDS
            assert kept.look([loaded()]) == {}
            assert kept._look is not None and wait([kept._look], 60).done
            assert kept.look([]) == {}
        assert looks.count(True) == 1 and len(looks) > 1
        return [record.getMessage() for record in caplog.records]

    assert said() == []
    seen |= {"shop.b": SeenTopic(warnings=("b is compacted",)), "shop.c": SeenTopic(warnings=("c is compacted",))}
    assert said() == ["changed while the connector runs: b is compacted"], "c was made so"
    assert said() == []
    seen["shop.b"] = SeenTopic()
    assert said() == []
    seen["shop.b"] = SeenTopic(warnings=("b is compacted", "b has the brokers' times"))
    assert [each.split(": ")[1] for each in said()] == ["b is compacted", "b has the brokers' times"]
