"""Every property, declared once: loading, validation (all problems in one answer), names of topics and schemas.

Opens no connection.

configuration = load("connector.json", "worker.json")
configuration.connector.reading.tables
configuration.connector["scylla.query.time.window.size"]
"""

from __future__ import annotations

from connector.config.connector_config import (
    ConnectionConfig,
    ConnectorConfig,
    DeliveryConfig,
    OutputConfig,
    ReadingConfig,
)
from connector.config.converters import ConverterConfig, NameMode
from connector.config.document import (
    Document,
    Source,
    is_worker_document,
    of_another_connector,
    of_kind,
    read_documents,
    report_repeated,
)
from connector.config.environment import environment_login
from connector.config.findings import Findings
from connector.config.forms import no_json, read_json
from connector.config.http_config import HttpConfig
from connector.config.kafka import KafkaProperties
from connector.config.loading import (
    as_written,
    connection_config,
    load,
    load_connector,
)
from connector.config.login_digest import kafka_digest, login_digest
from connector.config.migration import (
    Line,
    Migrated,
    Verdict,
    connector_document,
    migrate_connector,
)
from connector.config.names import Names, avro_name
from connector.config.parsing import parse
from connector.config.part import Part, of
from connector.config.properties import (
    BOOLEAN,
    BROKERS,
    CONNECTION,
    CONNECTOR,
    CONNECTOR_CLASS,
    CONNECTOR_SECTIONS,
    LIST,
    LONG_MAX,
    OUTPUT,
    OUTPUT_FORMATS,
    READING,
    STRING,
    TABLE_NAMES,
    WORKER_BY_NAME,
    ContactPoint,
    Effect,
    Invalid,
    Kind,
    OutputFormat,
    Property,
    Section,
    integer,
    of_deltas,
    one_of,
    parse_contact_points,
    parse_table_names,
)
from connector.config.references import provider_names, resolve_references
from connector.config.registry import URLS, OauthLogin, RegistryConfig, without_logins
from connector.config.rules import check_connection
from connector.config.secret import Secret, is_secret_name, learn
from connector.config.source_config import SourceConfig
from connector.config.tls import KeystoreError, TlsConfig, TlsMaterial, configured_context, tls_material
from connector.config.topic_creation import TopicCreation, TopicGroup
from connector.config.transforms import (
    PREDICATES,
    REGEX_ROUTER,
    TRANSFORMS,
    PredicateSpec,
    TransformCheck,
    TransformNote,
    TransformSpec,
)
from connector.config.unlike_java import unlike_java
from connector.config.worker_config import Configuration, StorageTopic, WorkerConfig

__all__ = [
    "BOOLEAN",
    "BROKERS",
    "CONNECTION",
    "CONNECTOR",
    "CONNECTOR_CLASS",
    "CONNECTOR_SECTIONS",
    "LIST",
    "LONG_MAX",
    "OUTPUT",
    "OUTPUT_FORMATS",
    "PREDICATES",
    "READING",
    "REGEX_ROUTER",
    "STRING",
    "TABLE_NAMES",
    "TRANSFORMS",
    "URLS",
    "WORKER_BY_NAME",
    "Configuration",
    "ConnectionConfig",
    "ConnectorConfig",
    "ContactPoint",
    "ConverterConfig",
    "DeliveryConfig",
    "Document",
    "Effect",
    "Findings",
    "HttpConfig",
    "Invalid",
    "KafkaProperties",
    "KeystoreError",
    "Kind",
    "Line",
    "Migrated",
    "NameMode",
    "Names",
    "OauthLogin",
    "OutputConfig",
    "OutputFormat",
    "Part",
    "PredicateSpec",
    "Property",
    "ReadingConfig",
    "RegistryConfig",
    "Secret",
    "Section",
    "Source",
    "SourceConfig",
    "StorageTopic",
    "TlsConfig",
    "TlsMaterial",
    "TopicCreation",
    "TopicGroup",
    "TransformCheck",
    "TransformNote",
    "TransformSpec",
    "Verdict",
    "WorkerConfig",
    "as_written",
    "avro_name",
    "check_connection",
    "configured_context",
    "connection_config",
    "connector_document",
    "environment_login",
    "integer",
    "is_secret_name",
    "is_worker_document",
    "kafka_digest",
    "learn",
    "load",
    "load_connector",
    "login_digest",
    "migrate_connector",
    "no_json",
    "of",
    "of_another_connector",
    "of_deltas",
    "of_kind",
    "one_of",
    "parse",
    "parse_contact_points",
    "parse_table_names",
    "provider_names",
    "read_documents",
    "read_json",
    "report_repeated",
    "resolve_references",
    "tls_material",
    "unlike_java",
    "without_logins",
]
