"""Rights that no topic tells of: to a consumer group, and to transactional ids.

In: the names that a connector will have. Out: why it may not have them. For who asks once, before it runs: a
transactional id that was asked for stays known to Kafka for a week.
"""

from __future__ import annotations

import time

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation

from connector.delivery.clients import COORDINATOR_SECONDS, KafkaClients
from connector.delivery.failures import translated
from connector.delivery.transactional_producer import TransactionalProducer
from connector.errors import DeliveryError, FatalDeliveryError

# A right is looked at before anything else. Who needs longer than that has none to tell of, or is away.
ANSWER_SECONDS = 5.0


def group_refusal(clients: KafkaClients, group: str) -> str | None:
    """Why we may not be a member of it. Who does not answer refuses nothing."""
    admin = clients.admin()
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
