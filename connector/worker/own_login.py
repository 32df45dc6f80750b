"""The Kafka clients that a process has for itself, beside those of its workers: what they log in with may be changed.

In: what loads the worker's file once more. Out: clients, which log in with what its references and its key stores are
by then, once Kafka has refused or lost what was there before. While connections stand nothing is asked: stores of
secrets may be far away.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from connector.config import Configuration, kafka_digest
from connector.errors import CdcError
from connector.worker.now_and_then import NowAndThen
from connector.worker.refused_logins import login_attempts
from connector.worker.settings import kafka_clients

log = logging.getLogger(__name__)

_OTHER_FILE = "its worker's file has changed: start the process anew"


class OwnLogin:
    """``load``: the configuration as it was, with what its references name by then; None where it is no more."""

    def __init__(
        self,
        configuration: Configuration,
        load: Callable[[], Configuration | None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._configuration, self._load, self._monotonic = configuration, load, monotonic
        self.clients, self._digest = kafka_clients(configuration), kafka_digest(configuration.kafka)
        self._seen, self._attempts = 0, login_attempts()
        self._why: str | None = None
        self._renewed: Callable[[], None] = lambda: None
        self._thread = NowAndThen(self.look, "own login", "what the process logs in to Kafka with")

    def start(self, renewed: Callable[[], None]) -> None:
        """``renewed``: called in another thread behind each change, for what else in this process asks Kafka."""
        self._renewed = renewed
        self._thread.start()

    def stop(self) -> None:
        self._thread.stop()

    def look(self) -> None:
        """Now and then, in one thread."""
        failures = self.clients.health.failures
        if failures == self._seen or not self._attempts.is_due(self._monotonic()):
            return
        self._seen = failures
        try:
            self._take(self._load())
        except CdcError as error:
            self._say(str(error))

    def _take(self, now: Configuration | None) -> None:
        before = self._configuration
        if now is not None and not now.is_written_as(before):
            # Half of a process by another worker's file would not find the other half.
            self._say(_OTHER_FILE)
            return
        self._why = None
        if now is None or (digest := kafka_digest(now.kafka)) == self._digest:
            return
        log.info("Kafka was lost, and what the process logs in with is another now: it does so anew")
        self._configuration, self._digest = now, digest
        self.clients.renew(kafka_clients(now))
        self._renewed()

    def _say(self, why: str) -> None:
        if why != self._why:
            log.warning("the process goes on with what it logged in to Kafka with before: %s", why)
        self._why = why
