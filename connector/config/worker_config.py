"""``WorkerConfig`` and ``Configuration``: the worker's file, typed, and both files together.

In: parsed values. Out: frozen models that cross process boundaries (they pickle) and whose reprs hide secrets.
"""

from __future__ import annotations

import hashlib
import json
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Self
from urllib.parse import quote

from pydantic import BeforeValidator, InstanceOf

from connector.config.connector_config import ConnectorConfig
from connector.config.converters import ConverterConfig
from connector.config.http_config import HttpConfig
from connector.config.kafka import KafkaProperties
from connector.config.part import OrNone, Part, of
from connector.config.properties import HTTP
from connector.config.secret import Secret
from connector.table_name import TableName

_TABLES = "scylla.table.names"

# All of ASCII that can be seen but the per cent, which begins what is written otherwise.
_PLAIN = string.ascii_letters + string.digits + string.punctuation.replace("%", "") + " "

#: What differs between the workers of one group by right.
_OF_ONE_RUN = frozenset(("group.instance.id", "client.rack", "native", *(one.name for one in HTTP.properties)))


@dataclass(frozen=True, slots=True)
class StorageTopic:
    """A topic for the service's own records. ``replication_factor`` None: 3, or the brokers if they are fewer."""

    name: str
    partitions: int
    replication_factor: int | None
    config: Mapping[str, str] = field(default_factory=dict)


class WorkerConfig(Part):
    """One worker file. ``worker["session.timeout.ms"]`` gives the typed value of any declared property."""

    bootstrap_servers: str
    group_id: str = of("group.id")
    group_instance_id: OrNone[str] = of("group.instance.id")
    offsets: InstanceOf[StorageTopic]
    status: InstanceOf[StorageTopic]
    configs: InstanceOf[StorageTopic]
    session_timeout_ms: int
    heartbeat_interval_ms: int
    transaction_timeout_ms: int
    native: Annotated[bool, BeforeValidator(lambda given: given != "off")] = of("native")
    key_converter: InstanceOf[ConverterConfig]
    value_converter: InstanceOf[ConverterConfig]
    http: HttpConfig
    values: Mapping[str, Any]
    given: frozenset[str]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


class Configuration(Part):
    """Everything a worker process needs to know. ``kafka`` holds librdkafka's properties for each kind of client."""

    connector: ConnectorConfig
    worker: WorkerConfig
    kafka: InstanceOf[KafkaProperties]
    notices: tuple[str, ...] = ()
    #: Those of the notices that are warnings.
    warnings: frozenset[str] = frozenset()

    @property
    def group(self) -> str:
        """The consumer group that shares the slots."""
        return self.group_of(self.worker.group_id, self.connector.name)

    @staticmethod
    def group_of(group_id: str, name: str) -> str:
        """That of a connector of that name."""
        return Configuration.kafka_name(f"{group_id}-{name}")

    @staticmethod
    def kafka_name(text: str) -> str:
        """As groups and their members are called: librdkafka takes any name, but refuses in each transaction the
        offsets of a group with other than printable ASCII in its name or a member's."""
        plain = text.isascii() and text.isprintable()
        return text if plain else quote(text, safe=_PLAIN, errors="surrogatepass")

    @property
    def client_name(self) -> str:
        """What the names of its workers begin with, where Kafka knows them."""
        return self.kafka_name(self.connector.name)

    @property
    def written_tables(self) -> str:
        """Which tables it reads, as the file says it."""
        return self.connector.written[_TABLES]

    def with_tables(self, tables: Sequence[TableName], written: str) -> Self:
        """The same of other tables; ``written``: the property's text."""
        connector = self.connector
        other = connector.but(
            reading=connector.reading.but(tables=tuple(tables)),
            values={**connector.values, _TABLES: tuple(tables)},
            written={**connector.written, _TABLES: written},
        )
        return self.but(connector=other)

    def differs_in_tables_alone(self, other: Configuration) -> bool:
        """Whether what reads by this one can go on by the other, but for which tables it reads."""
        tables = self.connector.reading.tables
        alike = other.with_tables(tables, self.written_tables).but(notices=self.notices, warnings=self.warnings)
        return self == alike and tables != other.connector.reading.tables

    def is_written_as(self, other: Configuration) -> bool:
        """Whether nothing differs but what references name, and secrets."""
        mine, others = self.worker, other.worker
        alike = (self.connector.written, mine.given) == (other.connector.written, others.given)
        return alike and _plain(mine.values) == _plain(others.values)

    def fingerprint(self) -> str:
        """Tells workers with different configurations apart; secrets are left out."""
        shared = {name: value for name, value in self.worker.values.items() if name not in _OF_ONE_RUN}
        content = {"connector": _plain(self.connector.values), "worker": _plain(shared)}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    if isinstance(value, Secret):
        return None
    if isinstance(value, Mapping):
        return {str(name): _plain(member) for name, member in value.items()}
    if isinstance(value, frozenset):
        return sorted(str(member) for member in value)
    if isinstance(value, tuple | list):
        return [_plain(member) for member in value]
    return value if isinstance(value, int | float | bool | None) else str(value)
