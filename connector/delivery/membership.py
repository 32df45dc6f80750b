"""Membership: one consumer group over the offsets topic hands each slot to exactly one worker.

In: the owner of the slots, who is told. Out: which slots are ours, and the membership that transactions are tied to.
Nothing is ever fetched through this consumer: its partitions are paused, reading the topic is `restore.py`'s and
`follow.py`'s.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from connector.delivery.clients import READ_COMMITTED, KafkaClients
from connector.delivery.failures import with_right
from connector.errors import FatalDeliveryError

log = logging.getLogger(__name__)

# A broker that hangs is asked for the group's coordinator as any other is, and librdkafka asks nobody else until it has
# waited for an answer as long as for any: a minute, in which the worker has no slots. Half a session is waited for, but
# so long at least, since answers take a second on a busy machine, and so long at most.
ANSWER_MS = (3_000, 10_000)
# The member that assigns the slots gives none away while a right to their topic is missing. Once it is granted that one
# learns of it by its next look at the topic, which is five minutes later with what is usual.
LOOK_MS = 10_000


class SlotOwner(Protocol):
    """Whoever reads the slots; called inside `Membership.poll` and `Membership.close`."""

    def gained(self, slots: frozenset[int]) -> None:
        """These became ours: they must be restored before use."""

    def revoked(self, slots: frozenset[int]) -> None:
        """These move to another worker in good order: the open transaction is committed or aborted before this returns,
        because the other worker starts as soon as it has returned."""

    def lost(self, slots: frozenset[int]) -> None:
        """The group threw us out: the open transaction is aborted before this returns, and nothing that was begun
        before it is ever committed; others may own the slots already."""


class Membership:
    """Our membership. `poll` must be called at least every few hundred milliseconds."""

    def __init__(
        self,
        clients: KafkaClients,
        topic: str,
        group: str,
        client_id: str,
        *,
        slots: int,
        session_timeout_ms: int = 10_000,
        max_poll_interval_ms: int = 300_000,
        instance_id: str | None = None,
    ) -> None:
        self._topic = topic
        self._slots = slots
        self.owned: frozenset[int] = frozenset()
        # Whether the group has told us what is ours, be it nothing, since we joined it last.
        self.settled = False
        self.rebalances = 0
        self.last_error: str | None = None
        static = {"group_instance_id": instance_id} if instance_id else {}
        self._consumer: Consumer = clients.consumer(
            group,
            READ_COMMITTED,
            client_id=client_id,
            # Cooperative: a worker keeps reading the slots that it keeps while others move.
            partition_assignment_strategy="cooperative-sticky",
            session_timeout_ms=session_timeout_ms,
            heartbeat_interval_ms=max(100, min(3_000, session_timeout_ms // 4)),
            # The owner thread may sit in a commit for two transaction timeouts; heartbeats go on meanwhile.
            max_poll_interval_ms=max(max_poll_interval_ms, session_timeout_ms),
            enable_partition_eof=False,
            socket_timeout_ms=_answer_ms(clients, session_timeout_ms),
            # It fetches nothing: what others fetch by may be longer than this one waits for an answer.
            fetch_wait_max_ms=500,
            topic_metadata_refresh_interval_ms=LOOK_MS,
            **static,
        )

    def join(self, owner: SlotOwner) -> None:
        self._owner = owner
        self._consumer.subscribe([self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)

    @property
    def member_id(self) -> str:
        return self._consumer.memberid() or ""

    @property
    def client(self) -> Consumer:
        return self._consumer

    def metadata(self) -> Any:
        return self._consumer.consumer_group_metadata()

    def poll(self, timeout: float = 0.0) -> None:
        """Serve the group; callbacks run in here. Raises only for what no waiting can mend."""
        message = self._consumer.poll(timeout)
        if message is None:
            return
        error = message.error()
        if error is None:
            return
        self.last_error = with_right(error)
        if error.fatal() or error.code() == KafkaError.INCONSISTENT_GROUP_PROTOCOL:
            raise FatalDeliveryError(f"membership of the consumer group: {self.last_error}")
        log.debug("group: %s", self.last_error)

    def close(self) -> None:
        """Leave the group (a static member stays in it until its session times out)."""
        try:
            self._consumer.close()
        except (RuntimeError, KafkaException) as error:
            log.debug("closing the group's consumer: %s", error)
        self.owned = frozenset()

    # -- callbacks, all inside poll() or close() ----------------------------------------------------------------

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign(partitions)
        consumer.pause(partitions)
        self.rebalances += 1
        self.settled = True
        self.last_error = None
        gained = self._ours(partitions) - self.owned
        self.owned |= gained
        self._owner.gained(gained)

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        gone = self._ours(partitions)
        try:
            # Still members with these slots while this runs: a commit of theirs is accepted.
            self._owner.revoked(gone)
        finally:
            self.owned -= gone
            self.rebalances += 1
            consumer.incremental_unassign(partitions)

    def _lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        gone = self._ours(partitions)
        self.settled = False
        try:
            self._owner.lost(gone)
        finally:
            self.owned -= gone
            self.rebalances += 1
            consumer.incremental_unassign(partitions)

    def _ours(self, partitions: Collection[TopicPartition]) -> frozenset[int]:
        # A topic that was created with more partitions than the marks were written for: the surplus stays unused.
        return frozenset(p.partition for p in partitions if p.partition < self._slots)


def _answer_ms(clients: KafkaClients, session_timeout_ms: int) -> int:
    """For how long one broker is waited for; no longer than is configured."""
    least, most = ANSWER_MS
    configured = int(clients.consumer_property("socket.timeout.ms") or most)
    return min(max(least, min(most, session_timeout_ms // 2)), configured)
