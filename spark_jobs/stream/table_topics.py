"""The two topics of one table, that of its records and that of its range deletes: up to where they have landed.

In: what a start has found of the table, and Kafka's answers. Out: positions that mean what they meant when they were
noted; a topic that is another one by now, or lacks what did not land, is refused or told.
"""

from __future__ import annotations

from collections.abc import Mapping

from connector.table_name import TableName
from spark_jobs.config import Settings
from spark_jobs.stream.kafka_topics import Offsets, Topics
from spark_jobs.tables import Known, Restored, check_positions, check_same_topics, lacking


class TableTopics:
    """``lacking``: what was gone from them before it landed, until a backfill has read it from the source."""

    def __init__(self, topics: Topics, settings: Settings, table: TableName) -> None:
        self.data = settings.names.data_topic(table.keyspace, table.name)
        self.range_deletes = settings.names.range_deletes_topic(table.keyspace, table.name)
        self._topics = topics
        self._table = table
        self.positions: Offsets = {}
        #: Where they stood when the job began.
        self.began: Offsets | None = None
        self.lacking: str | None = None
        self.ids: Mapping[str, str] = {}

    @property
    def names(self) -> tuple[str, str]:
        return self.data, self.range_deletes

    def begin(self, restored: Restored) -> dict[str, list[int]]:
        """Looks whether reading can go on where it stood; the partitions of those that exist."""
        self.positions = dict(restored.positions)
        if self.began is None:
            self.began = restored.positions
        partitions = self._topics.partitions(self.names)
        begins = self._topics.offsets(self.names, beginning=True)
        self.lacking = lacking(restored, begins)
        ends = self._topics.offsets(self.names)
        # Without a topic another problem may be the first one to mend, and no id is noted that is not looked at.
        self.ids = {}
        if self.data in partitions:
            self.ids = self._topics.ids(self.names)
            check_positions(self._table, restored.known, restored.positions, begins, ends, self.ids)
        return partitions

    def is_news(self, ends: Offsets) -> bool:
        """Whether a batch that ends here has any records."""
        return any(self.positions.get(place) != end for place, end in ends.items())

    def count(self, ends: Offsets) -> int:
        """How many offsets are in front of these that did not land."""
        return sum(end - self.positions.get(place, 0) for place, end in ends.items())

    def check_same(self, known: Known | None) -> None:
        """Spark reads on in a topic that was deleted and created again, once that has grown past what was read."""
        self.ids = {**self.ids, **self._topics.ids(self.names)}
        check_same_topics(self._table, known, self.positions, self.ids)
