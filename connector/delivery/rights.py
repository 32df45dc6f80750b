"""Rights: to a consumer group, to transactional ids, to topics that are there.

In: the names that a connector will have. Out: why it may not have them, each asked for with the login of those who
need the right. For who asks once, before it runs: a transactional id that was asked for stays known to Kafka for a
week.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation, AdminClient

from connector.delivery.clients import COORDINATOR_SECONDS, KafkaClients
from connector.delivery.failures import translated
from connector.delivery.topic_facts import TopicSpec, hidden_topics, refused_topics
from connector.delivery.transactional_producer import TransactionalProducer
from connector.errors import DeliveryError, FatalDeliveryError, MissingRight

# A right is looked at before anything else. Who needs longer than that has none to tell of, or is away.
ANSWER_SECONDS = 5.0


def group_refusal(clients: KafkaClients, group: str, *, transactions: bool) -> str | None:
    """Why we may not be a member of it, or why ``transactions`` may not commit its offsets. Who does not answer refuses
    nothing."""
    refusal = _group_refusal(clients.members_admin(), group)
    if refusal is None and transactions:
        refusal = _group_refusal(clients.writers_admin(), group)
        return None if refusal is None else f"{refusal} (of the login of producers)"
    return refusal


def _group_refusal(admin: AdminClient, group: str) -> str | None:
    try:
        asked = admin.describe_consumer_groups(
            [group], include_authorized_operations=True, request_timeout=COORDINATOR_SECONDS
        )
        allowed = asked[group].result(timeout=ANSWER_SECONDS).authorized_operations
    except KafkaException as caught:
        error = caught.args[0]
        forbidden = error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
        return str(translated(error, f"consumer group {group}")) if forbidden else None
    except TimeoutError:
        return None
    if allowed is None or AclOperation.READ in allowed:
        return None
    return f"consumer group {group}: it may be described, not joined; grant READ on it"


def transaction_refusal(clients: KafkaClients, transactional_id: str, timeout_ms: int) -> FatalDeliveryError | None:
    """Why we may have no transactions under an id, or none that may last so long (`TransactionsTooLong`). As of a
    group; nor does whoever asks for the same id in this moment refuse it."""
    producer = TransactionalProducer(clients, transactional_id, timeout_ms)
    try:
        producer.start(time.monotonic() + ANSWER_SECONDS)
    except FatalDeliveryError as error:
        return error
    except DeliveryError:
        pass
    finally:
        producer.close()
    return None


def topic_refusals(
    clients: KafkaClients, *, written: Sequence[TopicSpec], read: Sequence[TopicSpec], offsets: TopicSpec | None
) -> list[MissingRight]:
    """Topics that producers may not write, or consumers not read; nor producers the ``offsets`` topic, of which a
    transaction commits offsets. What admin clients may not see either is no matter here: `check_topics` tells it, as it
    tells that those get no answer."""
    wanted = {spec.name: spec for spec in (*written, *read)}
    writers, members = clients.writers_admin(), clients.members_admin()
    refused = [
        (name, who, operation)
        for specs, admin, operation, who in (
            (written, writers, AclOperation.WRITE, "producers"),
            ([] if offsets is None else [offsets], writers, AclOperation.READ, "producers"),
            (read, members, AclOperation.READ, "consumers"),
        )
        for name in sorted(refused_topics(admin, [spec.name for spec in specs], operation, ANSWER_SECONDS))
    ]
    try:
        untold = hidden_topics(clients.admin(), {name for name, _, _ in refused})
    except DeliveryError:
        # That a login of its own is refused, or that a broker has just gone, is no reason to tell nothing at all.
        untold = {}
    return [
        wanted[name].refused(
            f"{who} may not {operation.name.lower()} the topic", f"grant {operation.name} on it to the login of {who}"
        )
        for name, who, operation in refused
        if name not in untold
    ]
