"""Something that is done again and again beside a test, in a thread of its own."""

from __future__ import annotations

import threading
from abc import abstractmethod

from tests.servers.patience import patience


class Repeated(threading.Thread):
    """Until it is told to finish, with a pause in between."""

    def __init__(self, pause: float) -> None:
        super().__init__(daemon=True)
        self._pause = pause
        self._asked_to_end = threading.Event()
        self._error: Exception | None = None

    @abstractmethod
    def once(self) -> None:
        """What is repeated."""

    def run(self) -> None:
        try:
            while not self._asked_to_end.wait(self._pause):
                self.once()
        except Exception as error:
            self._error = error

    def finish(self) -> None:
        """Raises what ended it before."""
        self._asked_to_end.set()
        self.join(90 * patience())
        if self._error is not None:
            raise self._error
        assert not self.is_alive(), "the last of what is repeated has not ended"
