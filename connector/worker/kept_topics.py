"""Whether the topics that keep state still do: somebody may change their settings while a connector runs.

In: the connectors of a service. Out: which of these topics lose what they are to keep, and what to do. What is looked
at in front of workers is looked at again every minute: brokers delete within a few, and tell nobody.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future

from connector.aside import aside
from connector.config import Configuration
from connector.delivery import misfits
from connector.errors import CdcError
from connector.source import Purpose
from connector.worker.settings import configs_spec, kafka_clients, topic_specs

log = logging.getLogger(__name__)

LOOK_SECONDS = 60.0

KEPT = Purpose(
    "kept topics",
    "it is not kept as it must be",
    "what its brokers delete is gone for whoever starts next",
    holds=False,
    grace=0.0,
)


def _misfits(configurations: Iterable[Configuration]) -> dict[str, str]:
    """By topic; connectors mostly share them."""
    found: dict[str, str] = {}
    looked: set[str] = set()
    for each in configurations:
        kept = [spec for spec in topic_specs(each) if spec.compacted]
        specs = {spec.name: spec for spec in [*kept, configs_spec(each)]}
        new = [spec for name, spec in specs.items() if name not in looked]
        looked |= specs.keys()
        if new:
            clients = kafka_clients(each)
            with clients.named():
                found |= misfits(clients.admin(), new)
    return found


class KeptTopics:
    """Of one service. Looks in a thread of its own."""

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        read: Callable[[Iterable[Configuration]], Mapping[str, str]] = _misfits,
    ) -> None:
        self._monotonic, self._read = monotonic, read
        self._due = monotonic() + LOOK_SECONDS
        self._look: Future[Mapping[str, str]] | None = None
        self._found: Mapping[str, str] = {}

    def look(self, configurations: Sequence[Configuration]) -> dict[str, str | None]:
        """Now and then; returns at once, with what is wrong by topic, or None where that is over."""
        told: dict[str, str | None] = {}
        if self._look is not None and self._look.done():
            look, self._look = self._look, None
            try:
                found = look.result()
                told = dict.fromkeys(self._found.keys() - found.keys()) | {**found}
                self._found = found
            except CdcError as error:
                log.debug("whether topics are kept as they must be is not known: %s", error)
            except Exception:
                # Of a look that is made beside the work nobody ends.
                log.exception("whether topics are kept as they must be is not known")
        if self._look is None and configurations and self._monotonic() >= self._due:
            self._due = self._monotonic() + LOOK_SECONDS
            self._look = aside(lambda: self._read(configurations), "kept topics")
        return told
