"""Blocks for a broker, and what became of them there."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Message

from connector.native import BlockEncoder, Kernel, RecordBlock
from tests.delivery.conftest import World
from tests.formats.rows import TIME, Log
from tests.native.both_ways import PLENTY, uncut


def block_of_rows(
    kernel: Kernel, encoder: BlockEncoder, log: Log, topic: str, rows: Iterable[Mapping[str, Any]]
) -> RecordBlock:
    """Of rows that were inserted one after the other, a record each."""
    logged = [log.row(2, 0, True, uuid.UUID(int=TIME.int + (at << 64)), **row) for at, row in enumerate(rows)]
    block = encoder.encode(uncut(kernel, log.layout, logged), PLENTY, PLENTY)
    assert block is not None and len(block) == len(logged)
    block.topic = topic
    return block


def committed(world: World, topic: str, records: int) -> list[Message]:
    """Everything committed in a topic, which is to become so many records: a commit is answered when it is decided, and
    its markers come to one partition after the other."""
    return world.messages(topic, least=records)
