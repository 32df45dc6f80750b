"""Topics of tables that are not read now, and were before: a worker whose id outlives it may have left something there.

In: the offsets topic, of which the keys are enough, and only what nobody of this `run` has read yet. Out: names of
topics. Whatever such a worker left open has to be ended when it starts: from its next commit on nobody can tell any
more that it was not committed, and once the table is read again, the marker of that commit would speak for both.
"""

from __future__ import annotations

from connector.config import Configuration
from connector.delivery import KafkaClients, named_tables
from connector.worker.settings import topic_specs
from connector.worker.slots import Noted


class FormerTopics:
    """Of one process, asked for the first time before it has committed anything."""

    def __init__(self, clients: KafkaClients, configuration: Configuration, noted: Noted) -> None:
        self._clients = clients
        self._configuration = configuration
        self._noted = noted
        self._found: frozenset[str] | None = None

    def __call__(self) -> frozenset[str]:
        if self._found is None:
            self._found = self._look()
        return self._found

    def _look(self) -> frozenset[str]:
        connector = self._configuration.connector
        # What was read before may lack what a predecessor, who is fenced only now, has committed since.
        since = named_tables(
            self._clients,
            connector=connector.name,
            topic=connector.delivery.offset_topic,
            group=self._configuration.group,
            slots=self._noted.slots,
            starts=self._noted.read_to,
        )
        former = sorted((self._noted.tables | since).difference(connector.reading.tables))
        then, now = (
            {spec.name for spec in topic_specs(configuration)}
            for configuration in (self._configuration.with_tables(former, ""), self._configuration)
        )
        return frozenset(then - now)
