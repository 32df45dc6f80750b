"""When a table is published, and up to what: beside the stream that lands it, never in the middle of a batch.

In: what has landed. Out: commits to the published table. A publication ends the segment of the changelog that is being
filled, so that whole segments are published or not.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import SparkSession

from connector.table_name import TableName
from spark_jobs.config import Settings
from spark_jobs.sinks import FORMATS, LostRaceError, Sink
from spark_jobs.stream.kafka_topics import Offsets
from spark_jobs.tables import (
    Known,
    LandedTable,
    Lease,
    PublishedTable,
    Restored,
    Stand,
    free_segment,
    open_publisher,
    unpublishable,
    without_feed,
)


class Publishing:
    """Of one table. ``lock`` is held while a batch lands, and while its table is published."""

    def __init__(
        self,
        session: SparkSession,
        settings: Settings,
        sink: Sink,
        table: TableName,
        lease: Lease,
        say: Callable[[str], None],
    ) -> None:
        self.lock = threading.Lock()
        self._format = FORMATS[settings.sink]
        self._interval_s = settings.publish_interval_ms / 1000
        self._catalog = settings.publish_catalog
        landed, config = LandedTable(session, sink, table.keyspace, table.name), settings.session_config()

        def opened() -> PublishedTable | None:
            publisher = open_publisher(session, config, settings.publish_retention_ms)
            return None if publisher is None else PublishedTable(publisher, landed, say)

        self._table = opened() if settings.publish_interval_ms else None
        #: How to look at what was published, where nothing is any more; and how far it goes.
        self._opened = opened
        self._left_through: int | None = None
        self._lease = lease
        self._say = say
        self._impossible: str | None = None
        self._stand: Stand | None = None
        self._known: Known | None = None
        self._positions: Offsets = {}
        self._behind = False
        self._empty = False
        self._first = 0
        self._next = time.monotonic()

    def begin(self, restored: Restored) -> int:
        """Where the published table stands. Returns the segment to append to: none that is published already."""
        self._first = self._begin(restored)
        return self._first

    def _begin(self, restored: Restored) -> int:
        self._positions = dict(restored.positions)
        self._known, self._behind, self._empty = restored.known, True, not restored.has_rows
        if restored.known is None:
            return restored.segment
        if self._table is None:
            left = self._left_at(self._opened(), restored.known)
            self._left_through = None if left is None else left.segment
            return free_segment(restored, left)
        self._stand = self._table.stand()
        segment = free_segment(restored, self._stand)
        if self._stand is None or self._stand.lineage != restored.known.lineage:
            return segment
        self._behind = self._stand.segment < restored.segment - 1 or self._table.is_changed_by_others(restored.known)
        if not self._stand.covers(restored.positions):
            # Published segments may have got rows that a paused job has appended late. None of them are merged: there,
            # only positions count that came in time.
            self._stand = replace(self._stand, segment=min(self._stand.segment, restored.mark))
            self._behind = True
        return segment

    def _left_at(self, table: PublishedTable | None, known: Known) -> Stand | None:
        """How far a published table goes that nobody brings up to date. With all changes behind that, whoever publishes
        again can; without them the table would go on lacking what they changed."""
        stand = None if table is None else table.stand()
        if stand is None or stand.lineage != known.lineage:
            return None
        if self._left_through is None:
            self._say(
                f"{known.definitions[-1].name} was published, and is not now (publish.interval.ms=0): all changes "
                "since are kept for it, until its published table is deleted"
            )
        return stand

    def adopt(self, known: Known) -> None:
        """The table has other columns, or began anew."""
        self._behind = self._behind or known != self._known
        self._known = known
        definition = known.definitions[-1]
        self._impossible = None if self._table is None else unpublishable(definition, self._format)
        if self._impossible is not None:
            self._say(f"{definition.name} is not published: {self._impossible}")
        elif self._table is not None and (why := without_feed(definition, self._format)) is not None:
            self._say(f"{definition.name} is published without a change data feed: {why}")

    @property
    def published_through(self) -> int | None:
        """The segment up to which everything is published; None if nobody waits for that."""
        if self._table is None or self._impossible is not None:
            return self._left_through
        return 0 if self._stand is None else self._stand.segment

    def look(self) -> None:
        """Whether somebody else has changed what is published. Where something lands, its publication sees that."""
        if self._behind or self._impossible is not None:
            return
        if self._table is not None and self._known is not None and self._stand is not None:
            self._behind = self._table.is_changed_meanwhile(self._known)

    def vacuum(self, older_than_ms: int) -> None:
        """Deletes the published table's files that only readers of versions older than this need."""
        if self._table is not None and self._stand is not None:
            self._table.vacuum(older_than_ms)

    def landed(self, ends: Offsets) -> None:
        """Of topics up to these; of something else if there are none. A batch in which nothing came ends where the one
        before it did."""
        if not ends or any(self._positions.get(place) != end for place, end in ends.items()):
            self._behind = True
        self._positions.update(ends)
        self._empty = False

    def is_due(self, now: bool) -> bool:
        """Whether something is unpublished for long enough, or may have ended since, or a catalog is to hear of it."""
        if self._table is None or self._known is None or self._impossible is not None:
            return False
        if not self._behind and not self._known.expiring and self._catalog is None:
            return False
        # The first that others see of a table is not that it has no rows, unless landing ends with that.
        return now or (not self._empty and time.monotonic() >= self._next)

    def publish(self, segment: int) -> int:
        """Publishes everything up to the segment; returns the next one, which is the one to fill from now on."""
        assert self._known is not None
        self._lease.check()
        self._next = time.monotonic() + self._interval_s
        if not self._behind and self._stand is not None:
            # Nothing has landed, so that the segment that is being filled stays open.
            self._stand = self._published(self._known, self._stand.segment)
            return segment
        self._stand = self._published(self._known, segment)
        self._behind = False
        return segment + 1

    def enroll(self) -> None:
        """Registers what is published in the catalog that the user names, once."""
        if self._table is not None and self._known is not None and self._catalog is not None:
            self._table.enroll(self._catalog, self._known)
            self._catalog = None

    def _published(self, known: Known, through: int) -> Stand:
        assert self._table is not None
        try:
            return self._table.publish(known, self._stand, through, self._positions)
        except LostRaceError:
            # Either this job was paused, and its lease is another's; or the one before it was, and knew less.
            self._lease.check()
            found = self._table.stand()
            self._stand = found if found is not None and (found.own or found.segment < self._first) else None
            return self._table.publish(known, self._stand, through, self._positions)
