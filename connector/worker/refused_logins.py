"""That servers refuse what a worker logs in with, said by a thread beside it: its own may sit in a call by then.

In: who says of each server what it was told. Out: a report every other second while there is a refusal.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType

from connector.pauses import Attempts
from connector.worker.messages import RefusedMessage, Report

LOOK_SECONDS = 2.0

# Between two looks at what a login may have become: at what stores of secrets say, which may be far away, and may make
# another login for whoever asks.
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 60.0
# While a connection fails its client says so at least every half minute.
OVER_SECONDS = 90.0


def login_attempts() -> Attempts:
    """When to look again at what is logged in with, while that is refused."""
    return Attempts(FIRST_PAUSE, LONGEST_PAUSE, OVER_SECONDS)


class RefusedLogins:
    """``login``: `login_digest` of what the worker logs in with. A context manager; its end says what there is to say,
    too."""

    def __init__(self, report: Report, login: str) -> None:
        self._report, self._login = report, login
        self._servers: tuple[Callable[[], str | None], ...] = ()
        self._ended = threading.Event()

    def heed(self, *servers: Callable[[], str | None]) -> None:
        self._servers = (*self._servers, *servers)

    def __enter__(self) -> RefusedLogins:
        threading.Thread(target=self._watch, daemon=True, name="logins").start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self.look()

    def look(self) -> None:
        said = dict.fromkeys(why for server in self._servers if (why := server()) is not None)
        if said:
            self._report(RefusedMessage(cause="; ".join(said), login=self._login))

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            self.look()
