"""The admin client of the simulated Kafka, with the interface of confluent-kafka's, as far as the product uses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AclOperation

from tests.simulation.kafka_broker import Broker, Handle, failure
from tests.simulation.kafka_groups import Member
from tests.simulation.virtual import Future


class AdminClient(Handle):
    def __init__(self, broker: Broker, properties: dict[str, Any]) -> None:
        super().__init__(broker, properties)

    def create_topics(self, news: Sequence[Any], validate_only: bool = False, **_: Any) -> dict[str, Future]:
        return {new.topic: self._answer(lambda new=new: None if validate_only else self._create(new)) for new in news}

    def describe_configs(self, resources: Sequence[Any], **_: Any) -> dict[Any, Future]:
        return {each: self._answer(lambda each=each: self._configuration(each.name)) for each in resources}

    def describe_topics(self, wanted: Any, **_: Any) -> dict[str, Future]:
        """Takes no time, and nothing happens meanwhile."""
        twice = len(set(wanted.topic_names)) < len(wanted.topic_names)

        def describe(name: str) -> Any:
            if twice:
                raise failure(KafkaError._INVALID_ARG)  # as librdkafka, of all of them
            topic = self.broker.seen(name)
            if topic is None:
                raise failure(KafkaError.UNKNOWN_TOPIC_OR_PART)
            leader = SimpleNamespace(id=1)
            partitions = [SimpleNamespace(id=number, leader=leader) for number in range(len(topic.partitions))]
            refused = topic.refuses == KafkaError.TOPIC_AUTHORIZATION_FAILED
            allowed = [AclOperation.READ, AclOperation.DESCRIBE] if refused else None
            return SimpleNamespace(topic_id=topic.id, partitions=partitions, authorized_operations=allowed)

        return {name: self._settled(partial(describe, name)) for name in wanted.topic_names}

    def list_offsets(self, wanted: Mapping[Any, Any], isolation_level: Any = None, **_: Any) -> dict[Any, Future]:
        committed = isolation_level == IsolationLevel.READ_COMMITTED

        def end(place: Any) -> Any:
            self.broker.seen(place.topic)
            partition = self.broker.led((place.topic, place.partition))
            if partition is None:
                raise failure(KafkaError._NOENT)
            if partition.available_at > self.scheduler.now:
                raise failure(KafkaError.LEADER_NOT_AVAILABLE, retriable=True)
            return SimpleNamespace(offset=partition.stable if committed else partition.end)

        try:
            return self.ask(lambda: {place: self._settled(partial(end, place)) for place in wanted}, 10.0)
        except KafkaException as error:
            return {place: self._failed(error) for place in wanted}

    def describe_consumer_groups(self, names: Sequence[str], **_: Any) -> dict[str, Future]:
        def describe(name: str) -> Any:
            return SimpleNamespace(members=[self._member(m) for m in self.broker.groups.group(name).members.values()])

        return {name: self._answer(lambda name=name: describe(name), coordinator=True) for name in names}

    def list_consumer_groups(self, **_: Any) -> Future:
        groups = self.broker.groups.groups
        return self._answer(lambda: SimpleNamespace(valid=[SimpleNamespace(group_id=name) for name in sorted(groups)]))

    def poll(self, timeout: float = 0) -> int:
        self.serve()
        self.scheduler.pass_time(timeout)
        return 0

    # -- inside ------------------------------------------------------------------------------------------------

    def _member(self, member: Member) -> Any:
        places = [TopicPartition(member.client.topic, slot) for slot in sorted(member.owned)]
        assignment = SimpleNamespace(topic_partitions=places)
        return SimpleNamespace(client_id=member.client_id, host="/10.0.0.9", member_id=member.id, assignment=assignment)

    def _create(self, new: Any) -> None:
        if self.broker.seen(new.topic) is not None:
            raise failure(KafkaError.TOPIC_ALREADY_EXISTS)
        self.broker.create(new.topic, new.num_partitions, **{k.replace(".", "_"): v for k, v in new.config.items()})

    def _configuration(self, name: str) -> Any:
        topic = self.broker.seen(name)
        if topic is None:
            raise failure(KafkaError.UNKNOWN_TOPIC_OR_PART)
        kept = {"cleanup.policy": "delete", "retention.ms": "604800000", "retention.bytes": "-1"}
        config = {**kept, "max.message.bytes": str(topic.largest), **topic.config}
        return {key: SimpleNamespace(value=value) for key, value in config.items()}

    def _answer(self, action: Callable[[], Any], coordinator: bool = False) -> Future:
        """Asked at once and answered before the caller looks: nobody keeps two such questions open."""
        try:
            return self.ask(lambda: self._settled(action), 10.0, coordinator)
        except KafkaException as error:
            return self._failed(error)

    def _settled(self, action: Callable[[], Any]) -> Future:
        future = Future(self.scheduler)
        try:
            future.set_result(action())
        except KafkaException as error:
            future.set_exception(error)
        return future

    def _failed(self, error: KafkaException) -> Future:
        future = Future(self.scheduler)
        future.set_exception(error)
        return future
