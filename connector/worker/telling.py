"""What a worker tells its supervisor, in a thread of its own: one that stands still listens to nobody.

In: messages. Out: a line each, on a descriptor. A pipe takes so many of them and no more; a worker that waited for room
would keep its slots, as a good member of its group, and read nothing in them.
"""

from __future__ import annotations

import os
import threading

from connector.worker.messages import Message, to_line


class Telling:
    """Of what waits to be said, the newest of each kind is: whoever listens again is told how it is by then."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._changed = threading.Condition()
        self._waiting: dict[object, bytes] = {}
        self._said = True
        threading.Thread(target=self._tell, daemon=True, name="telling").start()

    def __call__(self, message: Message) -> None:
        """From any thread; returns at once."""
        line = to_line(message).encode()
        kind = type(message), getattr(message, "table", None)
        with self._changed:
            self._waiting.pop(kind, None)
            self._waiting[kind] = line
            self._said = False
            self._changed.notify_all()

    def finish(self, seconds: float) -> None:
        """Last words are heard by whoever listens; nobody else is waited for."""
        with self._changed:
            self._changed.wait_for(lambda: self._said, seconds)

    def _tell(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._said = True
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._waiting)
                line = self._waiting.pop(next(iter(self._waiting)))
            try:
                while line:
                    line = line[os.write(self._descriptor, line) :]
            except BrokenPipeError:
                pass  # the supervisor is gone, and we end soon
