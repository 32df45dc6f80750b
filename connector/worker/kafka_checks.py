"""What Kafka and Schema Registries say about a configuration: topics, rights, logins.

In: a configuration. Out: findings; who does not answer is one of them.
"""

from __future__ import annotations

from connector.config import Configuration
from connector.delivery import (
    CheckedTopics,
    KafkaClients,
    check_topics,
    group_refusal,
    patiently,
    topic_refusals,
    transaction_refusal,
)
from connector.errors import (
    CdcError,
    ConfigurationError,
    DeliveryError,
    Problem,
    RetriableDeliveryError,
    TransactionsTooLong,
)
from connector.registry import SchemaRegistry
from connector.worker.findings import GROUP, KAFKA, Findings
from connector.worker.settings import configs_spec, kafka_clients, offsets_spec, status_spec, topic_specs


def check_kafka(configuration: Configuration, clients: KafkaClients, once: bool, found: Findings) -> None:
    def look() -> CheckedTopics:
        return check_topics(clients.admin(), topic_specs(configuration), [configs_spec(configuration)])

    try:
        with clients.named():
            topics = patiently(look) if once else look()
        found.problems += topics.problems
        found.awaited += topics.awaited
        found.warnings += topics.warnings
    except RetriableDeliveryError as error:
        found.unreachable.append(no_kafka(str(error), configuration))
        found.refused = clients.health.refusal is not None
    except DeliveryError as error:
        found.problems.append(Problem(KAFKA, str(error), configuration.worker.bootstrap_servers))
    except ConfigurationError as error:
        found.problems += error.problems


def lacking_rights(configuration: Configuration) -> list[Problem]:
    """What a worker would be refused as it begins, beside topics."""
    clients, group = kafka_clients(configuration), configuration.group
    once = configuration.connector.delivery.exactly_once
    problems = [Problem(GROUP, why)] if (why := group_refusal(clients, group, transactions=once)) else []
    if once:
        # As those of workers begin.
        name, timeout = f"{configuration.client_name}-validate", configuration.worker.transaction_timeout_ms
        if (refusal := transaction_refusal(clients, name, timeout)) is not None:
            of_timeout = isinstance(refusal, TransactionsTooLong)
            problems.append(Problem("transaction.timeout.ms" if of_timeout else "exactly.once.support", str(refusal)))
    return problems


def check_rights(configuration: Configuration, found: Findings) -> None:
    found.problems += lacking_rights(configuration)


def check_topic_rights(configuration: Configuration, found: Findings) -> None:
    specs, offsets = topic_specs(configuration), offsets_spec(configuration)
    # The status topic: what processes that share a `group.id` know of each other.
    kept = {offsets.name, status_spec(configuration).name, configuration.connector.output.schema_topic}
    read = [spec for spec in specs if spec.name in kept]
    found.problems += topic_refusals(
        kafka_clients(configuration),
        written=specs,
        read=read,
        offsets=offsets if configuration.connector.delivery.exactly_once else None,
    )


def no_kafka(why: str, configuration: Configuration) -> Problem:
    servers = configuration.worker.bootstrap_servers
    return Problem(KAFKA, f"unable to reach Kafka: {why}", servers)


def registries(configuration: Configuration) -> dict[str, SchemaRegistry]:
    """By the property that says where it is."""
    output = configuration.connector.output
    return {
        f"{side}.converter.schema.registry.url": SchemaRegistry.of(converter)
        for side, converter in (("key", output.key_converter), ("value", output.value_converter))
        if converter.kind == "avro"
    }


def check_registry(name: str, registry: SchemaRegistry, found: Findings) -> None:
    try:
        registry.subjects()
    except RetriableDeliveryError as error:
        found.unreachable.append(Problem(name, str(error)))
    except CdcError as error:
        found.problems.append(Problem(name, str(error)))
