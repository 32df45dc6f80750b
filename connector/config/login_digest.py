"""What a connector logs in with, at Kafka, ScyllaDB and its Schema Registries: told apart, and never shown.

In: a configuration, whose references are resolved. Out: a digest that is another one as soon as a password, a token, or
the content of a key store, a key or a certificate is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from connector.config.contents import file_content
from connector.config.kafka import KafkaProperties
from connector.config.registry import RegistryConfig
from connector.config.secret import Secret
from connector.config.tls import TlsConfig
from connector.config.worker_config import Configuration

#: librdkafka's properties that name files end so. It reads them as a client begins, as keys and certificates are read.
_FILES: Final = (".location", ".file", ".keytab")
_STORES: Final = ("truststore", "keystore", "certificate_chain", "private_key")


def login_digest(configuration: Configuration) -> str:
    """Of a connector's workers."""
    return _digest(_of_workers(configuration))


def kafka_digest(kafka: KafkaProperties) -> str:
    """Of clients of Kafka alone."""
    return _digest(_of_kafka(kafka))


def _digest(parts: Iterable[str | bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        content = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8) + content)
    return digest.hexdigest()


def _of_workers(configuration: Configuration) -> Iterator[str | bytes]:
    yield from _of_kafka(configuration.kafka)
    connection, output = configuration.connector.connection, configuration.connector.output
    yield from (_text(connection.user), _text(connection.password))
    yield from _of_tls(connection.tls)
    for converter in (output.key_converter, output.value_converter):
        if converter.registry is not None:
            yield from _of_registry(converter.registry)


def _of_kafka(kafka: KafkaProperties) -> Iterator[str | bytes]:
    for client in (kafka.producer, kafka.consumer, kafka.admin):
        for name, value in sorted(client.items()):
            yield from (name, str(value))
            if name.endswith(_FILES):
                yield _content(str(value))


def _of_registry(registry: RegistryConfig) -> Iterator[str | bytes]:
    yield from map(_text, (registry.user_info, registry.token, registry.proxy_user))
    for name, value in sorted(registry.headers.items()):
        yield from (name, value)
    if registry.oauth is not None:
        yield from (_text(getattr(registry.oauth, each.name)) for each in fields(registry.oauth))
    yield from _of_tls(registry.tls)


def _of_tls(tls: TlsConfig) -> Iterator[str | bytes]:
    yield from map(_text, (tls.truststore_password, tls.keystore_password, tls.key_password))
    paths: Mapping[str, Any] = {name: getattr(tls, name) for name in _STORES if tls.enabled}
    yield from (_content(path) for path in paths.values() if path)


def _text(value: object) -> str:
    return value.reveal() if isinstance(value, Secret) else str(value)


def _content(path: str) -> bytes:
    """What cannot be read is as if it were empty: whoever needs it says so."""
    try:
        return file_content(Path(path))
    except OSError:
        return b""
