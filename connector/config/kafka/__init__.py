"""Properties of Java's Kafka clients, and what librdkafka calls them.

In: texts of both files. Out: ``KafkaProperties``, one map for each kind of client.
"""

from __future__ import annotations

from connector.config.kafka.layers import kafka_properties
from connector.config.kafka.security import SASL_NAMES, SASL_WITHOUT_EFFECT, SSL_NAMES
from connector.config.kafka.table import ADMIN, CLIENT_PROPERTIES, CONSUMER, NATIVE_NAMES, PRODUCER, ClientProperty
from connector.config.kafka.translation import KafkaProperties, client_names, is_client_property, is_secret

__all__ = [
    "ADMIN",
    "CLIENT_PROPERTIES",
    "CONSUMER",
    "NATIVE_NAMES",
    "PRODUCER",
    "SASL_NAMES",
    "SASL_WITHOUT_EFFECT",
    "SSL_NAMES",
    "ClientProperty",
    "KafkaProperties",
    "client_names",
    "is_client_property",
    "is_secret",
    "kafka_properties",
]
