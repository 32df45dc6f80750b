"""Whether one of the clients that a worker cannot do without has lost its brokers for good (`stranded`).

In: how its group, its follower and its transactions are, again and again. Out: Stranded, which ends the worker; another
one, with new clients, goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from connector.delivery.clients import KafkaClients
from connector.delivery.follow import Follower
from connector.delivery.membership import Membership
from connector.delivery.stranded import Silence, is_stranded
from connector.delivery.transaction import Delivery
from connector.errors import Stranded

# The client's own thread is asked, and waited for.
MEMBER_SECONDS = 1.0


class Lookout:
    """Of one worker, over the clients that it cannot do without."""

    def __init__(
        self,
        clients: KafkaClients,
        topic: str,
        membership: Membership,
        follower: Follower,
        delivery: Delivery,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clients, self._topic = clients, topic
        self._membership, self._follower, self._delivery = membership, follower, delivery
        self._outside, self._deaf, self._mute = Silence(clock=clock), Silence(clock=clock), Silence(clock=clock)
        self._heard = self._commits = 0
        self._clock, self._member_due = clock, 0.0

    def tick(self, fails: bool) -> None:
        """Raise Stranded. ``fails``: no transaction has got through since one did not."""
        if (now := self._clock()) >= self._member_due:
            self._member_due = now + MEMBER_SECONDS
            self._look_at_the_group()
        # A worker follows its own commits as well.
        commits = self._delivery.commits
        if self._follower.heard != self._heard or commits == self._commits:
            self._heard, self._commits = self._follower.heard, commits
            self._deaf.broken()
        elif self._deaf.lasts():
            self._check(self._follower.client, "that follows commits")
        if not fails:
            self._mute.broken()
        elif self._mute.lasts():
            if self._delivery.disowned:
                # A client that asks to be taken in again waits minutes for an answer, also of a coordinator that hangs
                # and is none any more.
                raise Stranded("the consumer group does not know this worker, and nobody says so; a new one goes on")
            # An empty transaction is aborted without a broker: to begin again and again is no sign of one.
            for client in self._delivery.producers:
                self._check(client, "that delivers")

    def _look_at_the_group(self) -> None:
        # Who had no slots is not told that he has lost them.
        if self._membership.settled and self._membership.member_id:
            self._outside.broken()
        elif self._outside.lasts():
            self._check(self._membership.client, "of its consumer group")

    def _check(self, client: Any, which: str) -> None:
        if is_stranded(self._clients, client, self._topic):
            raise Stranded(f"the client {which} has lost its brokers for good; a new worker goes on")
