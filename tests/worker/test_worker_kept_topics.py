"""Topics that keep state, of which somebody changes the settings while a connector runs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from connector.delivery import ensure_topics
from connector.errors import RetriableDeliveryError
from connector.worker.kept_topics import LOOK_SECONDS, KeptTopics
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
    configuration = loaded(
        {"topic.creation.default.replication.factor": "1"}, {"bootstrap.servers": kafka.bootstrap_servers, **given}
    )
    admin, now = kafka_clients(configuration).admin(), [0.0]
    ensure_topics(admin, [spec for spec in topic_specs(configuration) if spec.name in names.values()])
    supervisor = Supervisor(["false"], [WorkerOrder(configuration, 0)], monotonic=lambda: now[0])
    supervisor.waiting_for = None

    def set_policy(topic: str, value: str) -> None:
        entry = ConfigEntry("cleanup.policy", value, incremental_operation=AlterConfigOpType.SET)
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
    set_policy(names["offset"], "delete")
    until(failing, what="a word of it")
    [said] = failing()
    assert said.startswith(f"topic {names['offset']}: it is not kept as it must be since ")
    assert "it exists but is not compacted; set cleanup.policy=compact on it" in said.replace("the topic", "it")
    set_policy(names["offset"], "compact,delete")
    until(lambda: "deleted all the same" in str(failing()), what="another word")
    assert "kafka-configs.sh --alter" in (supervisor.status().waiting_for or "")
    set_policy(names["offset"], "compact")
    until(lambda: not failing(), what="that it is mended")


def test_a_kafka_that_does_not_answer_changes_nothing_of_what_is_known() -> None:
    answers = [{"offsets": "is not compacted"}, RetriableDeliveryError("away"), KeyError("unforeseen"), {}]
    now = 0.0

    def read(_: object) -> dict[str, str]:
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
