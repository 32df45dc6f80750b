"""Every property, declared once: loading, validation (all problems in one answer), names of topics and schemas.

Opens no connection.

configuration = load("connector.json", "worker.json")
configuration.connector.reading.tables
configuration.connector["scylla.query.time.window.size"]
"""

from connector.config.address import ContactPoint, TableName
from connector.config.connector_config import (
    ConnectionConfig,
    ConnectorConfig,
    DeliveryConfig,
    OutputConfig,
    ReadingConfig,
    TlsConfig,
)
from connector.config.converters import ConverterConfig, RegistryConfig
from connector.config.kafka_properties import KafkaProperties
from connector.config.loading import load, validate
from connector.config.names import Names
from connector.config.secret import Secret
from connector.config.topic_creation import TopicCreation, TopicGroup
from connector.config.transforms import PredicateSpec, TransformCheck, TransformProblem, TransformSpec
from connector.config.worker_config import Configuration, StorageTopic, WorkerConfig

__all__ = [
    "Configuration",
    "ConnectionConfig",
    "ConnectorConfig",
    "ContactPoint",
    "ConverterConfig",
    "DeliveryConfig",
    "KafkaProperties",
    "Names",
    "OutputConfig",
    "PredicateSpec",
    "ReadingConfig",
    "RegistryConfig",
    "Secret",
    "StorageTopic",
    "TableName",
    "TlsConfig",
    "TopicCreation",
    "TopicGroup",
    "TransformCheck",
    "TransformProblem",
    "TransformSpec",
    "WorkerConfig",
    "load",
    "validate",
]
