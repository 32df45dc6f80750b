"""When all slots are followed from their beginning again, and whether by another client.

In: what went wrong, and the time. Out: whether it is time to begin. A client that was refused looks only in minutes
whether it is allowed again, with its next look at all topics: another one is told at once.
"""

from __future__ import annotations

from connector.pauses import Attempts

AGAIN_SECONDS = 5.0
# Another client is of use where the topic was hidden; where only READ is missing this one would go on by itself.
LONGEST_AGAIN_SECONDS = 60.0


class Beginning:
    """Of one follower: between ``ask`` and ``done`` nothing is followed."""

    def __init__(self) -> None:
        #: How often what was followed before counted for nothing any more.
        self.count = 0
        #: Whether the client that follows was refused, so that the next beginning is another one's.
        self.refused = False
        self._due: float | None = None
        self._clients = self._attempts()

    @staticmethod
    def _attempts() -> Attempts:
        return Attempts(AGAIN_SECONDS, LONGEST_AGAIN_SECONDS, over=float("inf"))

    @property
    def is_asked(self) -> bool:
        return self._due is not None

    def ask(self, now: float) -> None:
        self.count += 1
        self._due = now

    def ask_where_refused(self, now: float) -> bool:
        """Whether another client is to follow all slots, in a while: whoever asks forgets what this one has told."""
        if not self.refused or self.is_asked or not self._clients.is_due(now):
            return False
        self.ask(now + AGAIN_SECONDS)
        return True

    def is_due(self, now: float) -> bool:
        return self._due is not None and now >= self._due

    def failed(self, now: float) -> None:
        self._due = now + AGAIN_SECONDS

    def done(self) -> None:
        self._due = None

    def unhindered(self) -> None:
        """Something of every slot that was in trouble is read again: the next trouble has another client soon."""
        self.refused = False
        if self._clients.count:
            self._clients = self._attempts()
