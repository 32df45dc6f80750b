"""Topics of tables that are not read now, and were before: a worker whose id outlives it may have left something there.

In: the offsets topic. Out: names of topics. Whatever such a worker left open has to be ended when it starts: from its
next commit on nobody can tell any more that it was not committed, and once the table is read again, the marker of that
commit would speak for both.
"""

from __future__ import annotations

from connector.config import Configuration
from connector.delivery import READ_COMMITTED, KafkaClients, decode_offsets_entry, read_topic
from connector.table_name import TableName
from connector.worker.settings import topic_specs


class FormerTopics:
    """Of one process, asked for the first time before it has committed anything."""

    def __init__(self, clients: KafkaClients, configuration: Configuration, slots: int) -> None:
        self._clients = clients
        self._configuration = configuration
        self._slots = slots
        self._found: frozenset[str] | None = None

    def __call__(self) -> frozenset[str]:
        if self._found is None:
            self._found = self._look()
        return self._found

    def _look(self) -> frozenset[str]:
        connector, group = self._configuration.connector, self._configuration.group
        topic = connector.delivery.offset_topic
        tables: set[TableName] = set()
        for record in read_topic(self._clients, topic, self._slots, group, READ_COMMITTED):
            entry = decode_offsets_entry(
                connector.name, record.partition, record.key, record.value, topic, record.offset
            )
            if entry is not None and entry.value is not None:
                keyspace, table = entry.key.get("keyspace_name"), entry.key.get("table_name")
                if isinstance(keyspace, str) and isinstance(table, str):
                    tables.add(TableName(keyspace, table))
        former = sorted(tables.difference(connector.reading.tables))
        then, now = (
            {spec.name for spec in topic_specs(configuration)}
            for configuration in (self._configuration.with_tables(former, ""), self._configuration)
        )
        return frozenset(then - now)
