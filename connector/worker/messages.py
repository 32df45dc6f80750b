"""What a worker process tells its supervisor: one JSON object a line on its stdout, told apart by ``event``.

In and out: messages, and the lines that hold them. Both ends are of one version: a line that is none of these is junk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from connector.worker.status_document import WorkerStatus, scrubbed_text


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True)


class GroupOfStreams(BaseModel):
    """Streams that are read together: all of a range of the ring that ends at ``range_end``. ``first``: one of them."""

    model_config = ConfigDict(frozen=True)

    #: The range begins behind this token; None: it is of a set that is not the newest any more.
    range_start: int | None
    range_end: int
    slot: int
    state: Literal["reading", "silent", "waiting", "failed", "ended"]
    streams: int
    first: str
    read_to: int


class StatusMessage(_Message):
    """Every second: how the worker is."""

    event: Literal["status"] = "status"
    status: WorkerStatus


class WaitingMessage(_Message):
    """While it gets ready: what it does, and why that has to be tried again."""

    event: Literal["waiting"] = "waiting"
    doing: str
    error: str


class BlockedMessage(_Message):
    """Its thread sits in a call that does not come back."""

    event: Literal["blocked"] = "blocked"
    seconds: float
    cause: str


class SlotsMessage(_Message):
    """How many slots the connector has, which takes long to find out."""

    event: Literal["slots"] = "slots"
    connector: str
    slots: int


class StreamsMessage(_Message):
    """The groups of streams of a table, because somebody looks at them."""

    event: Literal["streams"] = "streams"
    table: str
    groups: tuple[GroupOfStreams, ...]
    #: There are so many; not all of them need be in here.
    count: int


class RefusedMessage(_Message):
    """Every other second while a server refuses what it logs in with, whatever else it does or waits for."""

    event: Literal["refused"] = "refused"
    cause: str
    #: What that is: `login_digest` of what its files held as it began.
    login: str


class EndMessage(_Message):
    """Its last words."""

    event: Literal["end"] = "end"
    cause: str

    @classmethod
    def of(cls, error: Exception) -> EndMessage:
        return cls(cause=f"{type(error).__name__}: {error}")


Message = StatusMessage | WaitingMessage | BlockedMessage | SlotsMessage | StreamsMessage | RefusedMessage | EndMessage
Report = Callable[[Message], None]

_MESSAGES: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="event")])


def to_line(message: Message) -> str:
    """Without the secrets that are known."""
    members = scrubbed_text(message).removeprefix("{")
    return f'{{"event":"{message.event}",{members}\n'


def from_line(line: bytes) -> Message:
    """Raises ``ValueError`` for what is no message."""
    return _MESSAGES.validate_json(line)
