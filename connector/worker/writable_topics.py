"""Whether a topic that took no records takes them again, and nothing is written behind what others left open in it.

In: its name, the ids of former owners who may have left a transaction open there. Out: what the topic is, or why it is
waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from connector.config import Configuration
from connector.delivery import Field, KafkaClients, Standing, TopicFacts, end_left_open, look_at_topic
from connector.errors import DeliveryError
from connector.worker.settings import spec_of


@dataclass(frozen=True, slots=True)
class WritableTopics:
    """Of one worker. ``check_positions`` raises where the offsets topic is not the one that it has begun with."""

    configuration: Configuration
    clients: KafkaClients
    client_id: str
    stood: Standing
    check_positions: Callable[[], None]

    def look(self, topic: str, owners: frozenset[str]) -> TopicFacts | str:
        """As `connector.worker.topic_troubles.Look`."""
        if topic == self._offsets:
            # Never created while workers run: it would be empty, and everything would begin anew.
            try:
                self.check_positions()
            except DeliveryError as error:
                return str(error)
        spec = spec_of(self.configuration, topic)
        found = look_at_topic(self.clients.admin(), spec, self.clients.writers_admin)
        if not owners or isinstance(found, str):
            return found
        # What our own id left open is ended with its next producer, which is started before this topic is written.
        return self.stood.look(self.clients, topic) or self._left_open(topic, {*owners} - {self.client_id}) or found

    @property
    def _offsets(self) -> str:
        return self.configuration.connector.delivery.offset_topic

    def _left_open(self, topic: str, owners: set[str]) -> str | None:
        """Ends what they left open there; why that cannot be done yet."""
        told: list[str] = []

        def unseen(topic: str, why: str, owners: Collection[str]) -> None:
            told.append(why)

        connector, group = self.configuration.connector.name, self.configuration.group
        field = Field(connector, self._offsets, group, lambda: [topic], unseen, self.stood)
        end_left_open(self.clients, field, owners)
        return told[-1] if told else None
