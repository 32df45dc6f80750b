"""Records that brokers have acknowledged and do not have any more.

In: the topics that records and positions go to, which slots are ours. Out: a background task of each topic that has
lost some. Brokers say nothing of it: they have elected a leader that lacked them (`unclean.leader.election.enable`), or
a disk was replaced, and the partition goes on from an earlier end. Looked at every minute, and whenever a producer was
made anew; each topic by the worker that has the slot that its name maps to, and by those that had it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from connector.delivery import KafkaClients, partition_ends
from connector.source import Background, Chores, Purpose, instant
from connector.worker.lost_positions import earlier
from connector.worker.topic_looks import Place, Read, TopicLooks

# A former leader that stood still answers with what it had then, until it hears of the next one.
SURE_SECONDS = 5.0

LOST = Purpose(
    "lost_records",
    "records that were delivered are gone",
    "what is written from then on is not concerned",
    holds=False,
    grace=0.0,
)

LOST_POSITIONS = Purpose(
    "lost_records",
    "positions that were committed are gone",
    "what came since may be delivered again, where such a slot has been taken over meanwhile or is soon",
    holds=False,
    grace=0.0,
)


class Seen(NamedTuple):
    """Of which topic of its name, where it ended, and when that was."""

    id: str
    end: int
    wall: float


class LostRecords:
    """Of one worker; all clocks are those of ``background``. ``positions``, ``descriptions``: the topics that they are
    in; ``apart``: topics whose records are written again and again, as those of the status. ``doubt``: who is told of a
    topic that is not found where it was, is another one of its name, or has lost descriptions."""

    def __init__(
        self,
        clients: KafkaClients,
        chores: Chores,
        background: Background,
        *,
        slots: int,
        positions: str,
        descriptions: str = "",
        apart: Collection[str] = (),
        doubt: Callable[[str], None] = lambda topic: None,
        read: Read[tuple[str, int]] = partition_ends,
    ) -> None:
        self._background, self._positions, self._apart = background, positions, frozenset(apart)
        self._descriptions, self._doubt = descriptions, doubt
        self._looks = TopicLooks(clients, chores, background, slots, read, background.monotonic())
        self._ready = True
        self._seen: dict[Place, Seen] = {}
        #: Where they were seen to end before that.
        self._doubted: dict[Place, int] = {}
        self._told: defaultdict[str, list[str]] = defaultdict(list)
        background.expect(LOST)

    def tick(self, topics: Iterable[str], owned: Collection[int], ready: bool) -> None:
        """Look if it is time. ``ready``: there is a producer."""
        if ready and not self._ready:
            # No sooner than what is doubted can be sure: transactions that fail follow each other faster than that.
            self._looks.due = min(self._looks.due, max(self._background.monotonic(), self._looks.looked + SURE_SECONDS))
        self._ready = ready
        if not ready or not self._looks.is_due:
            return
        known = {topic for topic, _ in self._seen}
        mine = [
            topic
            for topic in {*topics, self._positions} - self._apart
            if topic in known or self._looks.is_mine(topic, owned)
        ]
        self._looks.look(mine, lambda ends: self._found(mine, ends))

    def _found(self, mine: Collection[str], ends: Mapping[Place, tuple[str, int]]) -> None:
        there = {topic: topic_id for (topic, _), (topic_id, _) in ends.items()}
        another = {topic for (topic, _), seen in self._seen.items() if there.get(topic, seen.id) != seen.id}
        for topic in {*mine} - there.keys() | another:
            self._doubt(topic)
        # It may have fewer partitions than the former one.
        for place in [place for place in self._seen if place[0] in another and place not in ends]:
            del self._seen[place]
            self._doubted.pop(place, None)
        for place, (topic_id, end) in ends.items():
            seen = self._seen.get(place)
            if seen is not None and seen.id == topic_id and end < seen.end:
                if place not in self._doubted:
                    self._doubted[place] = end
                    self._looks.due = self._looks.looked + SURE_SECONDS
                    continue
                self._tell(place, seen)
            self._doubted.pop(place, None)
            self._seen[place] = Seen(topic_id, end, self._background.wall())

    def _tell(self, place: Place, seen: Seen) -> None:
        topic, number = place
        self._told[topic].append(
            f"partition {number} ends at offset {self._doubted[place]}, and had records up to {seen.end} at "
            f"{instant(seen.wall)}"
        )
        why = (
            f"{', '.join(self._told[topic])}: its brokers have elected a leader without them "
            "(unclean.leader.election.enable), or lost a disk"
        )
        if topic == self._positions:
            self._background.task(LOST_POSITIONS, f"topic {topic}").is_now(why)
            return
        if topic == self._descriptions:
            self._doubt(topic)
            advice = "Tables of which it has no description are described in it again, as they are now"
        else:
            advice = (
                "They do not come again by themselves; while the tables' logs have them: stop the connector, "
                f"`scylla-cdc offsets reset --to` {earlier('the last record that is left was written')}, start it. "
                "What came since then comes twice, and no change is missing; rows of a snapshot come with another one "
                "(`scylla-cdc snapshot start`)"
            )
        self._background.task(LOST, f"topic {topic}").is_now(f"{why}. {advice}")
