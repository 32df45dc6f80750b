"""``LastingTopic``: a topic that must stay the one that it is, because what stands in it is nowhere else.

In: its name. Out: nothing, or ``RetriableDeliveryError`` while it is not there, may not be seen, or is another one of
that name: one that is deleted and created again has another id than at the first look.
"""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException, TopicCollection

from connector.delivery.clients import CALL_SECONDS, KafkaClients
from connector.delivery.failures import FORBIDDEN, translated
from connector.delivery.topic_facts import NO_RIGHT
from connector.errors import RetriableDeliveryError

_MISSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})


class LastingTopic:
    """May be asked by any thread. ``loss``: what is gone with it, and what to do then."""

    def __init__(self, clients: KafkaClients, name: str, loss: str) -> None:
        self.name = name
        self._clients, self._loss = clients, loss
        #: Which one it is, if anybody has looked and brokers tell.
        self.id: str | None = None
        #: Whether it is another one now.
        self.replaced = False
        self._doubted = False

    def check(self) -> None:
        """Raises unless it is there, and still the same. Brokers before 2.8 give no ids: of those it is only there."""
        self._doubted = True
        now = self._asked()
        self.id = self.id or now
        self.replaced = now is not None and now != self.id
        if self.replaced:
            raise RetriableDeliveryError(f"topic {self.name} was deleted and created again: {self._loss}")
        self._doubted = False

    def confirm(self) -> None:
        """As `check`, and asks nobody if all was well when it was looked at last. What waited while the topic was
        missing goes into another one of its name as soon as that is there."""
        if self._doubted:
            self.check()

    def accept(self) -> None:
        """Whichever it is now counts as it from here on: what was in the former one is known, or made good."""
        self.id, self.replaced = None, False

    def _asked(self) -> str | None:
        """Its id; None where brokers give none."""
        # The client must outlive its future, or that never completes.
        admin = self._clients.admin()
        found = admin.describe_topics(TopicCollection([self.name]), request_timeout=CALL_SECONDS)
        try:
            return str(found[self.name].result(timeout=2 * CALL_SECONDS).topic_id)
        except KafkaException as caught:
            error: KafkaError = caught.args[0]
            if error.code() in _MISSING:
                raise RetriableDeliveryError(f"topic {self.name} does not exist any more: {self._loss}") from None
            if error.code() in FORBIDDEN:
                # Nothing of it can be read or written, whatever is asked next: that would say it in other words.
                raise RetriableDeliveryError(NO_RIGHT.format(self.name)) from None
            raise translated(error, f"looking at topic {self.name}") from None
        except TimeoutError:
            raise RetriableDeliveryError(f"looking at topic {self.name}: no answer in time") from None
