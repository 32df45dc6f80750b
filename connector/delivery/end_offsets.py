"""The offsets behind everything that partitions have, asked of their leaders.

In: partitions. Out: their high watermarks, or last stable offsets; while a leader changes it is asked again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from connector.delivery.clients import CALL_SECONDS, READ_COMMITTED, READ_UNCOMMITTED, KafkaClients
from connector.delivery.failures import LEADER_CHANGES, is_transient

# A partition has no leader, or one that does not know it yet, or one that has ended without a word: for a few seconds,
# a broker's session of nine for the last one.
LEADERLESS_SECONDS = 15.0
PAUSE_SECONDS = 0.1
# For an answer, before another client asks, who may be told of another leader.
ANSWER_SECONDS = 4.0

_SETTLES = LEADER_CHANGES | {KafkaError.UNKNOWN_TOPIC_OR_PART}


def high_watermarks(
    clients: KafkaClients, topic: str, partitions: Iterable[int], leaderless: float = 0.0
) -> dict[int, int]:
    """The offsets behind everything that was written, committed or not. ``leaderless``: as of `end_offsets`; a leader
    that does not answer is looked for again as well."""
    places = [(topic, partition) for partition in partitions]
    deadline = time.monotonic() + leaderless
    while True:
        left = deadline - time.monotonic()
        # The client must outlive its futures, or they never complete.
        admin = clients.admin()
        try:
            found = end_offsets(
                admin, places, seconds=ANSWER_SECONDS if left > 0 else CALL_SECONDS, leaderless=max(0.0, left)
            )
            return {partition: offset for (_, partition), offset in found.items()}
        except TimeoutError:
            if left <= 0:
                raise
        except KafkaException as caught:
            if left <= 0 or not is_transient(caught.args[0]):
                raise


def end_offsets(
    admin: AdminClient,
    places: Iterable[tuple[str, int]],
    isolation: str = READ_UNCOMMITTED,
    seconds: float = CALL_SECONDS,
    leaderless: float = 0.0,
) -> dict[tuple[str, int], int]:
    """High watermarks, or (read_committed) last stable offsets, by topic and partition.

    Asked through the admin client: a read_committed consumer answers both questions with the last stable offset. A
    partition whose leader changes, or has not heard of it yet, is asked about again for so many ``leaderless`` seconds
    after it has said so first: for those who ask once and end with an error, as `status` does.
    """
    wanted = {TopicPartition(topic, partition): OffsetSpec.latest() for topic, partition in places}
    level = IsolationLevel.READ_COMMITTED if isolation == READ_COMMITTED else IsolationLevel.READ_UNCOMMITTED
    found: dict[tuple[str, int], int] = {}
    deadline: float | None = None
    while wanted:
        futures = admin.list_offsets(wanted, isolation_level=level, request_timeout=seconds)
        for where, future in futures.items():
            try:
                found[where.topic, where.partition] = int(future.result(timeout=seconds).offset)
            except KafkaException as caught:
                now = time.monotonic()
                # A slow first answer must not be the only one.
                deadline = now + leaderless if deadline is None else deadline
                if caught.args[0].code() not in _SETTLES or now >= deadline:
                    raise
            else:
                del wanted[where]
        if wanted:
            time.sleep(PAUSE_SECONDS)
    return found
