"""Values of Helm charts that run Kafka Connect: Confluent's `cp-kafka-connect` and Redpanda's `connectors`.

In: a file of values. Out: the worker's properties, as the chart's templates make them of the values that are there;
what the templates would make of a release's name is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from connector.config.environment import worker_properties
from connector.config.forms.shapes import mapping
from connector.config.forms.wrapped import Wrapped

_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_OF_RELEASE = ("group.id", "offset.storage.topic", "status.storage.topic", "config.storage.topic")


def helm_values(document: Mapping[str, Any]) -> Iterator[Wrapped]:
    """The worker of a chart, if these are its values; of an umbrella chart they stand one name deeper."""
    for name, values in (("", document), *document.items()):
        if not isinstance(values, Mapping):
            continue
        if isinstance(values.get("configurationOverrides"), Mapping) and (not name or "connect" in str(name)):
            yield _confluents(values)
            return
        connectors = values.get("connectors")
        if isinstance(connectors, Mapping) and {"bootstrapServers", "additionalConfiguration"} & connectors.keys():
            yield _redpandas(connectors, mapping(mapping(values.get("auth")).get("sasl")))
            return


def _confluents(values: Mapping[str, Any]) -> Wrapped:
    """https://github.com/confluentinc/cp-helm-charts, charts/cp-kafka-connect/templates/deployment.yaml"""
    wrapped = Wrapped({}, "cp-kafka-connect")
    servers = mapping(values.get("kafka")).get("bootstrapServers")
    registry = mapping(values.get("cp-schema-registry")).get("url")
    if servers:
        wrapped.content["bootstrap.servers"] = str(servers)
    if registry:
        address = str(registry) if "://" in str(registry) else f"http://{registry}"
        for side in ("key", "value"):
            wrapped.content[f"{side}.converter.schema.registry.url"] = address
    custom, notes = worker_properties({str(name): str(text) for name, text in mapping(values.get("customEnv")).items()})
    wrapped.content |= {str(name): text for name, text in values["configurationOverrides"].items()}
    wrapped.content |= custom
    wrapped.notes += notes
    missing = [name for name in _OF_RELEASE if name not in wrapped.content]
    wrapped.notes += [(name, "is made of the release's name by the chart: write it if it matters") for name in missing]
    return wrapped


def _redpandas(connectors: Mapping[str, Any], sasl: Mapping[str, Any]) -> Wrapped:
    """https://github.com/redpanda-data/helm-charts, charts/connectors/templates/_deployment.go.tpl"""
    storage, tls = mapping(connectors.get("storage")), mapping(connectors.get("brokerTLS"))
    variables = {
        "CONNECT_BOOTSTRAP_SERVERS": connectors.get("bootstrapServers"),
        "CONNECT_ADDITIONAL_CONFIGURATION": connectors.get("additionalConfiguration"),
        "CONNECT_TLS_ENABLED": tls.get("enabled") and "true",
    }
    if sasl.get("userName") and sasl.get("secretRef"):
        variables["CONNECT_SASL_USERNAME"] = sasl["userName"]
        variables["CONNECT_SASL_MECHANISM"] = sasl.get("mechanism") or "scram-sha-512"
        variables["CONNECT_SASL_PASSWORD_FILE"] = "rc-credentials/password"
    for member, variable, usual in (
        ("ca", "CONNECT_TRUSTED_CERTS", "ca.crt"),
        ("cert", "CONNECT_TLS_AUTH_CERT", "tls.crt"),
        ("key", "CONNECT_TLS_AUTH_KEY", "tls.key"),
    ):
        secret = mapping(tls.get(member))
        if secret.get("secretRef"):
            variables[variable] = f"{member}/{secret.get('secretNameOverwrite') or usual}"
    made = dict.fromkeys(("key.converter", "value.converter"), _BYTES)
    made["group.id"] = str(connectors.get("groupID") or "connectors-cluster")
    topics, factors = mapping(storage.get("topic")), mapping(storage.get("replicationFactor"))
    for member, usual in (("offset", "offsets"), ("config", "configs"), ("status", "status")):
        made[f"{member}.storage.topic"] = str(topics.get(member) or f"_internal_connectors_{usual}")
        if factors.get(member) is not None:
            made[f"{member}.storage.replication.factor"] = str(factors[member])
    content, notes = worker_properties({name: str(text) for name, text in variables.items() if text})
    return Wrapped({**made, **content}, "connectors", notes)
