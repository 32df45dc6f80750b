"""The connector's heartbeats: records that say every so often that it runs, also where nothing happens.

In: the time. Out: the records that are due; none while their topics take none, so that what was read goes on.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Final

from connector.errors import RetriableDeliveryError
from connector.formats import Encoder, Record
from connector.worker.pipeline import Pipeline
from connector.worker.unmade import BEATS, RecordsNotMade, Unmade

#: One worker beats for the whole connector: the one that has it.
HEARTBEAT_SLOT: Final = 0


class Heartbeat:
    """Of one worker. ``seconds``: how often; 0 for never."""

    def __init__(self, encoder: Encoder, pipeline: Pipeline, unmade: Unmade, seconds: float) -> None:
        self._encoder, self._pipeline, self._unmade = encoder, pipeline, unmade
        self._seconds = seconds
        self._due = time.monotonic() + seconds

    def is_due(self, owned: Collection[int]) -> bool:
        return self._seconds > 0 and HEARTBEAT_SLOT in owned and time.monotonic() >= self._due

    def records(self) -> Sequence[Record]:
        """Those of this beat, with which the next one is a while away."""
        self._due = time.monotonic() + self._seconds
        try:
            with self._unmade.making("", HEARTBEAT_SLOT, "beat", BEATS):
                beat = self._encoder.heartbeat()
                for topic in {record.topic for record in beat}:
                    if why := self._pipeline.trouble(topic):
                        raise RetriableDeliveryError(f"topic {topic}: {why}")
        except RecordsNotMade:
            return ()
        return beat
