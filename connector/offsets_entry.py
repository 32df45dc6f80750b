"""A record of the offsets topic, as the planner makes it and the Kafka side writes and reads it.

Members of the key and the value belong to `connector.topology`; the connector's name in front of the key, and the JSON
text, to `connector.delivery`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

#: Names of our processes have some dozen letters, and Kafka's transactional ids at most 32,767 bytes.
_LONGEST_OWNER = 1_000


@dataclass(frozen=True, slots=True)
class OffsetsEntry:
    """``slot`` is its partition, ``value`` None a tombstone; ``topic`` and ``offset`` say where it was read."""

    slot: int
    key: Mapping[str, Any]
    value: Mapping[str, Any] | None
    topic: str = field(default="", compare=False)
    offset: int = field(default=-1, compare=False)

    @property
    def place(self) -> str:
        """Where it was read, for messages."""
        return f"topic {self.topic}, partition {self.slot}, offset {self.offset}" if self.topic else "the offsets topic"

    @property
    def owner(self) -> str | None:
        """The process that claimed the slot: marks name it, positions do not."""
        owner = self.value.get("owner") if self.value else None
        return owner if is_owner(owner) else None


def is_owner(name: object) -> TypeGuard[str]:
    """Whether it can be the name of a process: brokers are asked for the transactions under it."""
    return isinstance(name, str) and 0 < len(name) <= _LONGEST_OWNER and name.isprintable()
