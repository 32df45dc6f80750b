"""Topics that take no records at the moment: their records wait, others go on, and somebody looks until it is over.

In: a topic of which a record was not delivered, or that is not there. Out: the pipeline suspends it, and resumes it
when its brokers say nothing against it any more; with growing pauses if it then fails again. Whatever it was, a right
that is missing or a broker that is away: nobody restarts anything once it is mended. Owned by the worker's thread.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import random
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from connector.delivery import LARGEST_BATCH, TopicFacts
from connector.errors import OthersToo
from connector.source import Chores
from connector.worker.pipeline import Pipeline

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
# What a person has to mend is not over in a moment, and each try takes a transaction of all tables back.
REFUSED_PAUSE = 5.0
# Workers that end what is left open take it from each other: each leaves the others another time.
OTHERS_TOO = (2.0, 8.0)
# A look at a topic whose brokers are away takes a minute, in a thread that others need as well: there may be many such
# topics.
LOOKS_AT_ONCE = 2
# A topic that has worked for so long begins with the shortest pause again.
FORGIVEN_SECONDS = 600.0

#: What a topic is now, or why it takes no records. Ends first what the owners of the ids may have left open there.
Look = Callable[[str, frozenset[str]], TopicFacts | str]


@dataclass(slots=True)
class _Trouble:
    #: What is due next; None while somebody looks, or while it takes records.
    due: float | None
    why: str = ""
    pause: float = FIRST_PAUSE
    failed_at: float = 0.0
    #: How large its records might be when one was refused as too large.
    refused: int | None = None
    #: Nobody has looked for open transactions in it: of whom there may be some, but for those of our own id.
    unseen: bool = False
    owners: frozenset[str] = frozenset()
    #: What it is: it takes records as soon as there is a new producer.
    ready: TopicFacts | None = None


class Unseen:
    """Topics that could not be looked at when open transactions were looked for. Called by any thread."""

    def __init__(self) -> None:
        self._told: queue.Queue[tuple[str, str, frozenset[str]]] = queue.Queue()

    def __call__(self, topic: str, why: str, owners: Collection[str]) -> None:
        self._told.put((topic, why, frozenset(owners)))

    def take(self) -> Iterator[tuple[str, str, frozenset[str]]]:
        with contextlib.suppress(queue.Empty):
            while True:
                yield self._told.get_nowait()


class TopicTroubles:
    """Of one worker."""

    def __init__(
        self,
        pipeline: Pipeline,
        look: Look,
        unseen: Unseen,
        chores: Chores,
    ) -> None:
        self._pipeline = pipeline
        self._look = look
        self._unseen = unseen
        self._chores = chores
        self._troubles: dict[str, _Trouble] = {}
        self._looks = 0

    def take_unseen(self) -> None:
        """Before anything is produced after a look for open transactions."""
        for topic, why, owners in self._unseen.take():
            trouble = self.suspend(topic, why)
            trouble.unseen, trouble.owners = True, trouble.owners | owners

    def suspend(self, topic: str, why: str, *, refused: bool = False, too_large: bool = False) -> _Trouble:
        """A record was not delivered. ``refused``: until somebody mends it; ``too_large``: the broker says so, of one
        that is smaller than the limit that is known."""
        now = time.monotonic()
        known = self._troubles.get(topic)
        # What all tables need is tried with each transaction.
        again = known is not None and known.why == why and now - known.failed_at < REFUSED_PAUSE
        works = topic not in self._pipeline.suspended_topics
        if known is None or (works and now - known.failed_at > FORGIVEN_SECONDS):
            # The first time it is looked at once: whatever it was may be over. While it waits, it is known whose
            # transactions may be open in it.
            known = self._troubles[topic] = _Trouble(now)
            if refused:
                known.due, known.pause = now + REFUSED_PAUSE, 2 * REFUSED_PAUSE
        elif known.due is None:
            known.due, known.pause = now + known.pause, min(LONGEST_PAUSE, 2 * known.pause)
        # Else a look is planned. What all tables need fails with each transaction: those must not put it off.
        known.failed_at, known.ready, known.why = now, None, why
        known.refused = self._pipeline.largest_record(topic) if too_large else None
        level = logging.DEBUG if again else logging.WARNING
        log.log(level, "topic %s: %s; its records wait, other topics' go on", topic, why)
        self._pipeline.suspend_topic(topic, why)
        return known

    def look_again(self, topics: Iterable[str]) -> None:
        """Find out what they are now before anything is sent to them."""
        for topic in topics:
            self._pipeline.suspend_topic(topic, "its settings are looked at")
            self._troubles.setdefault(topic, _Trouble(None)).due = time.monotonic()

    def tick(self) -> None:
        """Look at what is due."""
        self.take_unseen()
        now = time.monotonic()
        for topic in self._pipeline.suspended_topics:
            if topic not in self._troubles:
                # Nothing was sent to it yet: it was not there, or may not be created.
                self._troubles[topic] = _Trouble(now + FIRST_PAUSE, failed_at=now)
        due = sorted((each.due, topic) for topic, each in self._troubles.items() if each.due is not None)
        for at, topic in due:
            if at <= now and self._looks < LOOKS_AT_ONCE:
                self._troubles[topic].due = None
                self._begin(topic)

    def _begin(self, topic: str) -> None:
        self._looks += 1
        owners = self._troubles[topic].owners
        self._chores.submit(lambda: self._look(topic, owners), lambda found, error: self._done(topic, found, error))

    def _done(self, topic: str, found: TopicFacts | str | None, error: BaseException | None) -> None:
        self._looks -= 1
        trouble = self._troubles[topic]
        if topic not in self._pipeline.suspended_topics:
            return
        if isinstance(error, OthersToo):
            self._pipeline.suspend_topic(topic, str(error))
            trouble.due = time.monotonic() + random.uniform(*OTHERS_TOO)
            return
        if not isinstance(found, TopicFacts):
            self._wait_on(topic, str(found or error))
            return
        if trouble.unseen and trouble.due is not None:
            # Others were named meanwhile, of whom nobody has looked yet.
            return
        if trouble.refused == found.max_message_bytes and trouble.pause < LONGEST_PAUSE:
            # It says that it takes what it has refused: asking again would be refused again. Unless its limit was
            # lower for a while, or is not for us to see.
            # Of a limit that we may not see there is but a guess.
            limit = "" if found.compacted is None else f"; max.message.bytes is {found.max_message_bytes}"
            self._wait_on(topic, f"{trouble.why}{limit}")
            return
        known = self._pipeline.largest_record(topic)
        if trouble.unseen or found.max_message_bytes < (LARGEST_BATCH if known is None else known):
            trouble.ready = found
        else:
            self._resume(found)

    def _wait_on(self, topic: str, why: str) -> None:
        trouble = self._troubles[topic]
        self._pipeline.suspend_topic(topic, why)
        trouble.due = time.monotonic() + trouble.pause
        trouble.pause = min(LONGEST_PAUSE, 2 * trouble.pause)

    def take_ready(self) -> list[TopicFacts]:
        """Topics that need a new producer, and are resumed for it: they take smaller records than before, or nobody has
        looked whether our own id has left something open in them."""
        ready = [trouble.ready for trouble in self._troubles.values() if trouble.ready is not None]
        for facts in ready:
            trouble = self._troubles[facts.name]
            trouble.ready, trouble.unseen, trouble.owners = None, False, frozenset()
            self._resume(facts)
        return ready

    def _resume(self, facts: TopicFacts) -> None:
        log.info("topic %s: records are sent to it again", facts.name)
        # It may be lowered and raised again: what it refuses from here on is refused by what it is now.
        self._troubles[facts.name].refused = None
        self._pipeline.resume_topic(facts)
