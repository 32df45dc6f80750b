"""Whether the schemas topic still has the tables' descriptions: somebody may delete it while a worker runs.

In: a look at topics that did not find it, or found another one of its name. Out: a topic that is there, and tables that
have their records written to it again. Nothing else would write them before a table changes or a slot moves, and who
reads the changes meanwhile cannot tell what they are of.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from connector.config import Configuration
from connector.delivery import KafkaClients, ensure_topics
from connector.errors import ConfigurationError, RetriableDeliveryError
from connector.source import Background, Chores, Purpose, Tables
from connector.worker.schemas import last_versions
from connector.worker.settings import spec_of
from connector.worker.topic_looks import LOOK_SECONDS

log = logging.getLogger(__name__)

DESCRIPTIONS = Purpose(
    "descriptions",
    "nobody can read what the tables are",
    "changes are delivered all the same",
    holds=False,
    grace=0.0,
)


class KeptDescriptions:
    """Of one worker, in whose thread all of it is called."""

    def __init__(
        self,
        configuration: Configuration,
        clients: KafkaClients,
        chores: Chores,
        background: Background,
        tables: Tables,
    ) -> None:
        self._topic, self._group = configuration.connector.output.schema_topic, configuration.group
        self._configuration, self._clients = configuration, clients
        self._chores, self._background, self._tables = chores, background, tables
        background.expect(DESCRIPTIONS)
        self._task = background.task(DESCRIPTIONS, f"topic {self._topic}")
        self._under_way = False
        self._due: float | None = None

    def doubt(self, topic: str) -> None:
        """It is not where it was at the last look."""
        if topic == self._topic:
            self._due = self._background.monotonic()
            self.tick()

    def tick(self) -> None:
        """Another topic of its name is doubted once: until it is known what stands in that, it is asked again."""
        if self._due is None or self._under_way or self._background.monotonic() < self._due:
            return
        self._due, self._under_way = None, True
        self._chores.submit(self._read, self._found)

    def _read(self) -> Mapping[str, str]:
        """The versions that stand in the topic, which is made anew if it is not there."""
        with self._clients.named():
            ensure_topics(self._clients.admin(), [spec_of(self._configuration, self._topic)])
            return last_versions(self._clients, self._topic, self._group)

    def _found(self, versions: Mapping[str, str] | None, error: BaseException | None) -> None:
        self._under_way = False
        if versions is None:
            if self._due is None:
                self._due = self._background.monotonic() + LOOK_SECONDS
            if isinstance(error, ConfigurationError):
                self._task.is_now("; ".join(str(problem) for problem in error.problems))
            elif not isinstance(error, RetriableDeliveryError):
                self._task.failed(error or "no answer")
            log.debug("what topic %s says of the tables is not known: %s", self._topic, error)
            return
        self._task.is_now(None)
        missed = self._tables.describe_again(versions)
        if missed:
            log.warning(
                "topic %s was deleted, and has no word of %s: they are described in it again as they are now. What it "
                "said of changes that were made before a table was last altered is gone",
                self._topic,
                ", ".join(map(str, missed)),
            )
