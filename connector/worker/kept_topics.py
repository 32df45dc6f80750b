"""Whether topics still keep what they are to keep: somebody may change their settings while a connector runs.

In: the connectors of a service. Out: which topics that keep state lose it, and what to do; words in the log where
records of changes are not all kept any more. What is looked at in front of workers is looked at again: brokers delete
within a few minutes, and tell nobody.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future

from connector.aside import aside
from connector.config import Configuration
from connector.delivery import SeenTopic, seen_topics
from connector.errors import CdcError
from connector.source import Purpose
from connector.worker.settings import configs_spec, kafka_clients, topic_specs

log = logging.getLogger(__name__)

LOOK_SECONDS = 60.0
# Topics of records may be thousands, and brokers compact what is an hour old or a segment long.
ALL_SECONDS = 600.0

KEPT = Purpose(
    "kept topics",
    "it is not kept as it must be",
    "what its brokers delete is gone for whoever starts next",
    holds=False,
    grace=0.0,
)

#: By topic. Of all topics, or of those that keep state.
Read = Callable[[Iterable[Configuration], bool], Mapping[str, SeenTopic]]


def _read(configurations: Iterable[Configuration], all_topics: bool) -> dict[str, SeenTopic]:
    """Connectors mostly share those that keep state."""
    found: dict[str, SeenTopic] = {}
    looked: set[str] = set()
    for each in configurations:
        wanted = [spec for spec in topic_specs(each) if spec.compacted or all_topics]
        specs = {spec.name: spec for spec in [*wanted, configs_spec(each)]}
        new = [spec for name, spec in specs.items() if name not in looked]
        looked |= specs.keys()
        if new:
            clients = kafka_clients(each)
            with clients.named():
                found |= seen_topics(clients.admin(), new)
    return found


class KeptTopics:
    """Of one service. Looks in a thread of its own."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, read: Read = _read) -> None:
        self._monotonic, self._read = monotonic, read
        self._due = self._all_due = monotonic() + LOOK_SECONDS
        self._look: Future[Mapping[str, SeenTopic]] | None = None
        self._of_all = False
        self._misfits: Mapping[str, str] = {}
        self._warnings: dict[str, tuple[str, ...]] = {}

    def look(self, configurations: Sequence[Configuration]) -> dict[str, str | None]:
        """Now and then; returns at once, with what is wrong by topic, or None where that is over."""
        told: dict[str, str | None] = {}
        if self._look is not None and self._look.done():
            look, self._look = self._look, None
            try:
                found = look.result()
                misfits = {topic: seen.misfit for topic, seen in found.items() if seen.misfit is not None}
                told = dict.fromkeys(self._misfits.keys() - misfits.keys()) | {**misfits}
                self._misfits = misfits
                self._warn(found)
                if self._of_all:
                    self._all_due = self._monotonic() + ALL_SECONDS
            except CdcError as error:
                log.debug("whether topics are kept as they must be is not known: %s", error)
            except Exception:
                # Of a look that is made beside the work nobody ends.
                log.exception("whether topics are kept as they must be is not known")
        if self._look is None and configurations and self._monotonic() >= self._due:
            self._due = self._monotonic() + LOOK_SECONDS
            self._of_all = all_topics = self._monotonic() >= self._all_due
            self._look = aside(lambda: self._read(configurations, all_topics), "kept topics")
        return told

    def _warn(self, found: Mapping[str, SeenTopic]) -> None:
        """Of what has changed since: what was so before was said in front of the workers, and may be as it is meant."""
        for topic, seen in found.items():
            for warning in seen.warnings:
                if warning not in self._warnings.get(topic, seen.warnings):
                    log.warning("changed while the connector runs: %s", warning)
            self._warnings[topic] = seen.warnings
