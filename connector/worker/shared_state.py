"""What was asked of connectors, known to every process of the group and remembered by the next one.

In: wishes of this process; the config topic, where those of all are. Out: calls with what is wished of a connector.
Keys are ``[connector, {"group": group.id, "wish": "target"}]``: others, and Kafka Connect itself, may share the topic.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from connector.config import Configuration
from connector.delivery import SmallTopic, compact_json, parse_json
from connector.errors import CdcError, RetriableDeliveryError
from connector.worker.holding import Target
from connector.worker.settings import configs_spec, kafka_clients

log = logging.getLogger(__name__)

POLL_SECONDS = 0.3
# Between looks for a topic that is missing, or cannot be read.
PAUSE_SECONDS = 0.7
# For what was written to be read.
HEAR_SECONDS = 15.0


class SharedState:
    """Of one service: its worker file, which is the same for all of its connectors."""

    def __init__(self, configuration: Configuration, wished: Callable[[str, Target], None]) -> None:
        self._group_id = configuration.worker.group_id
        self._name = configuration.worker.configs.name
        self._topic = SmallTopic(kafka_clients(configuration), configs_spec(configuration), configuration.group)
        self._wished = wished
        self._targets: dict[str, Target] = {}
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._known = threading.Event()
        #: Why wishes of others are not heard.
        self.error: str | None = None

    def start(self) -> None:
        threading.Thread(target=self._follow, daemon=True, name="shared state").start()

    def stop(self) -> None:
        self._ended.set()

    def wait(self, stop: threading.Event) -> str | None:
        """Until it is known what was asked before; None then, else every so often why it is not."""
        while not stop.is_set():
            if self._known.wait(POLL_SECONDS):
                return None
            if self.error is not None:
                return self.error
        return None

    def wish(self, connector: str, target: Target) -> None:
        """When this returns, this process acts on it; others do as soon as they have read it. Raises ``CdcError``."""
        value = {"target": target.value, "at": round(time.time() * 1000)}
        self._topic.write(self._key(connector), compact_json(value))
        with self._changed:
            if not self._changed.wait_for(lambda: self.target(connector) is target, HEAR_SECONDS):
                why = self.error or "nothing comes"
                raise RetriableDeliveryError(f"topic {self._name}: it was written, but is not read: {why}")

    def target(self, connector: str) -> Target:
        return self._targets.get(connector, Target.RUNNING)

    def _key(self, connector: str) -> bytes:
        return compact_json([connector, {"group": self._group_id, "wish": "target"}])

    def _follow(self) -> None:
        while not self._ended.is_set():
            try:
                for key, value in self._topic.poll(POLL_SECONDS):
                    self._take(key, value)
                self.error = None
            except RetriableDeliveryError as error:
                self.error = str(error)
            except CdcError as error:
                if self.error is None:
                    log.warning("%s: whether connectors were paused is not known, and nobody can pause them", error)
                self.error = str(error)
                # Whoever may not read it has paused nothing; nor must the connector stand still for lack of a right.
                self._known.set()
            if self._topic.complete:
                self._known.set()
                self._ended.wait(0 if self._topic.reading else PAUSE_SECONDS)
            elif self.error is not None:
                self._ended.wait(PAUSE_SECONDS)
        self._topic.close()

    def _take(self, key: bytes, value: bytes | None) -> None:
        try:
            connector, what = parse_json(key)
            if what != {"group": self._group_id, "wish": "target"} or not isinstance(connector, str):
                return
            target = Target.RUNNING if value is None else Target(parse_json(value)["target"])
        except (ValueError, TypeError, LookupError):
            return  # of somebody else who shares the topic
        with self._changed:
            before = self.target(connector)
            self._targets[connector] = target
            if target is not before:
                self._wished(connector, target)
            self._changed.notify_all()
