"""All brokers and topics, as the cluster tells them at once.

In: a client. Out: the driver's own picture of them; who does not answer is one of our errors.
"""

from __future__ import annotations

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata

from connector.delivery.clients import CALL_SECONDS
from connector.delivery.failures import translated


def listed(admin: AdminClient) -> ClusterMetadata:
    try:
        return admin.list_topics(timeout=CALL_SECONDS)
    except KafkaException as caught:
        raise translated(caught.args[0], "listing topics") from None
