"""What is handed to Kafka: data records, and entries of the offsets topic.

Offsets keys are ``["<connector>", {…}]`` in compact JSON, so that several connectors can share one topic; what stands
in the second member and in the value belongs to ``connector.topology``.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeGuard

from connector.offsets_entry import OffsetsEntry

log = logging.getLogger(__name__)

#: The first member of a key, if it can be read without parsing it.
_OTHER = re.compile(rb'\["[^"\\\x00-\x1f]*",')
#: What no key of ours has unless a name of a table holds it: another way to spell the same.
_ODD = re.compile(rb"[\s\\]")
#: Made once: `json.dumps` makes one for each call.
_compact = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_BEGAN = re.compile(r"\w+@(\d+) ")
#: So many other connectors of a shared topic are told by their first bytes alone.
_REMEMBERED = 100

#: The header that names the transaction of an offsets entry, at the last entry of each slot in it.
COMMIT_HEADER = "commit"

#: The header of a record that was there before, and is repeated for its commit to be told once more.
REPEATED_HEADER = "scylla.cdc.repeated"

#: The header of an entry that somebody else has written once more, by another clock: when it was written first.
WRITTEN_HEADER = "written"

#: The header of a slot's last entry as long as somebody's transactions may be open where nobody could look.
LEFT_HEADER = "left"

Headers = Sequence[tuple[str, bytes]] | Sequence[tuple[str, bytes | None]]


class KafkaRecord(Protocol):
    """What can be delivered, whoever made it. ``partition`` None leaves the choice to the key's bytes."""

    @property
    def topic(self) -> str: ...

    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...

    @property
    def headers(self) -> Headers: ...

    @property
    def partition(self) -> int | None: ...


class StoredMessage(Protocol):
    """A record that was read: confluent-kafka's ``Message``."""

    def topic(self) -> str | None: ...

    def partition(self) -> int | None: ...

    def offset(self) -> int | None: ...

    def key(self) -> bytes | None: ...


class Taken(Protocol):
    """What became of a block that was handed over: ``count`` records, from the first on, were taken; ``code`` is the
    client's error of the next one, or 0; ``broken``: some behind it were taken all the same."""

    @property
    def count(self) -> int: ...

    @property
    def code(self) -> int: ...

    @property
    def broken(self) -> bool: ...


class Failure(Protocol):
    """The first record that was not delivered."""

    @property
    def topic(self) -> str: ...

    @property
    def key(self) -> bytes | None: ...

    @property
    def code(self) -> int: ...


class KafkaBlock(Protocol):
    """Records of one topic, whose size is known without looking at each of them."""

    @property
    def topic(self) -> str: ...

    @property
    def size(self) -> int: ...

    def __len__(self) -> int: ...

    def __getitem__(self, at: int, /) -> KafkaRecord: ...


class BlockProducer(Protocol):
    """What takes blocks past the binding of one client, and hears what became of each of its records."""

    def takes(self, records: object) -> TypeGuard[KafkaBlock]: ...

    def produce(self, block: Any, begin: int) -> Taken: ...

    def settled(self) -> None: ...

    @property
    def failure(self) -> Failure | None: ...

    def forget_failure(self) -> None: ...


class BlockClient(Protocol):
    """``plugin`` has to be among the ``plugin.library.paths`` of a client that is made within ``making``."""

    @property
    def plugin(self) -> str: ...

    def making(self) -> AbstractContextManager[Callable[[], BlockProducer | None]]: ...


class Sieve(Protocol):
    """What reads assigned partitions past the binding of their consumer, and keeps what is of use (`Sought`)."""

    @property
    def ends(self) -> Sequence[int]:
        """Of each partition the offset behind what has come; 0 if nothing has."""

    def read(self, seconds: float, waits: bool) -> int:
        """Read for so long, or until there is enough; ``waits``: also while nothing is there. How many have come."""

    def drain(self) -> list[Any]:
        """The messages that are kept, in order, and ends and errors of partitions; then they are kept no more."""

    def close(self) -> None:
        """Before its consumer is closed."""


class BulkClient(Protocol):
    """``plugin`` has to be among the ``plugin.library.paths`` of a consumer that is made within ``making``, which gives
    what `sieve` wants, and that before the partitions are assigned."""

    @property
    def plugin(self) -> str: ...

    def making(self) -> AbstractContextManager[Callable[[], Any]]: ...

    def sieve(self, client: Any, topic: str, usual: bytes, partitions: Collection[int], *, values: bool) -> Sieve: ...


@dataclass(frozen=True, slots=True)
class OutgoingRecord:
    """A record that is made in this room."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None


def record_size(record: KafkaRecord) -> int:
    """Bytes it takes in a record batch, rounded up; compared with limits before it is sent."""
    key, value, headers = record.key, record.value, record.headers
    size = 70 + (len(key) if key else 0) + (len(value) if value else 0)
    if headers:
        size += sum(len(name) + len(text or b"") + 10 for name, text in headers)
    return size


def commit_name(headers: Headers | None) -> str | None:
    """The transaction that an entry of the offsets topic says it belongs to."""
    for name, value in headers or ():
        if name == COMMIT_HEADER and value is not None:
            return value.decode(errors="replace")
    return None


def written_at(headers: Headers | None, timestamp: int) -> int:
    """When an entry was written, by its owner's clock; ``timestamp`` is when it was written last."""
    return next((int(value) for name, value in headers or () if name == WRITTEN_HEADER and value), timestamp)


class Left(NamedTuple):
    """``owner`` is gone, and may have left a transaction open in ``topic``, younger than his ``newest`` word."""

    topic: str
    owner: str
    newest: int


def left_header(left: Sequence[Left]) -> tuple[tuple[str, bytes], ...]:
    return ((LEFT_HEADER, compact_json(left)),) if left else ()


def left_behind(headers: Headers | None) -> list[Left]:
    """What the owner of a slot had not settled yet when it wrote this entry."""
    for name, value in headers or ():
        if name == LEFT_HEADER and value is not None:
            return [Left(str(topic), str(owner), int(newest)) for topic, owner, newest in parse_json(value)]
    return []


def name_of_commit(owner: str, began_ms: int) -> str:
    """A new one. Of the owner's transactional id, the time at which it began, and what no other transaction has."""
    return f"{secrets.token_hex(16)}@{began_ms} {owner}"


def owner_of(commit: str) -> str:
    return commit.partition(" ")[2]


def begin_of(commit: str) -> int | None:
    """When the transaction began, in ms; versions that did not say so named theirs as well."""
    found = _BEGAN.match(commit)
    return None if found is None else int(found[1])


def compact_json(value: object) -> bytes:
    return _compact(value).encode()


def encode_offsets_key(connector: str, key: Mapping[str, Any]) -> bytes:
    return compact_json([connector, dict(key)])


def parse_json(raw: bytes) -> Any:
    """JSON that can be written again; ``ValueError`` for all else, such as lone surrogates or nesting without end."""
    text = raw.decode()
    try:
        found = json.loads(text)
        if "\\u" in text:
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return found


class OwnKeys:
    """Which keys of the offsets topic are one connector's, told by their bytes, before anything is parsed."""

    def __init__(self, connector: str) -> None:
        self._connector = connector
        #: How every key begins that a version of this connector wrote.
        self.usual = encode_offsets_key(connector, {})[:-2]
        self._others: tuple[bytes, ...] = ()

    def own(self, message: StoredMessage) -> bytes | None:
        """The key as this connector writes it; None for other connectors', and for foreign ones, which are named."""
        raw = message.key() or b""
        if raw.startswith(self._others):
            return None
        if raw.startswith(self.usual) and not _ODD.search(raw):
            return raw
        other = _OTHER.match(raw)
        if other is not None and not self.usual.startswith(other[0]):
            self._others = (*self._others[-_REMEMBERED:], other[0])
            return None
        key = decode_offsets_key(
            self._connector, message.partition() or 0, raw, message.topic() or "", message.offset() or 0
        )
        return None if key is None else encode_offsets_key(self._connector, key)


def decode_offsets_key(connector: str, slot: int, key: bytes | None, topic: str, offset: int) -> dict[str, Any] | None:
    """The key's members, or None for keys of other connectors and, named once, for what nobody of us wrote."""
    try:
        decoded = parse_json(key or b"null")
        known = isinstance(decoded, list) and len(decoded) == 2 and isinstance(decoded[0], str)
        if known and decoded[0] != connector:
            return None
        # Keys of ours, and of Kafka Connect's, which may share the topic, are flat.
        if not known or not _is_flat(decoded[1]):
            raise ValueError('its key is not ["<connector>", {…}]')
    except ValueError as error:
        _pass_over(topic, slot, offset, str(error))
        return None
    members: dict[str, Any] = decoded[1]
    return members


def decode_offsets_entry(
    connector: str, slot: int, key: bytes | None, value: bytes | None, topic: str = "", offset: int = -1
) -> OffsetsEntry | None:
    """The entry, or None where `decode_offsets_key` says so.

    A value under our own name that cannot be read becomes one without members: who needs it refuses it by its place.
    """
    members = decode_offsets_key(connector, slot, key, topic, offset)
    if members is None:
        return None
    if value is None:
        return OffsetsEntry(slot, members, None, topic, offset)
    try:
        body = parse_json(value)
    except ValueError:
        body = None
    return OffsetsEntry(slot, members, body if isinstance(body, dict) else {}, topic, offset)


def _is_flat(members: Any) -> bool:
    return isinstance(members, dict) and not any(isinstance(member, dict | list) for member in members.values())


@lru_cache(maxsize=1_000)
def _pass_over(topic: str, partition: int, offset: int, why: str) -> None:
    # Remembered, since a topic is read more than once, by restoring and by following it.
    log.warning("topic %s, partition %d, offset %d: a foreign record is passed over: %s", topic, partition, offset, why)
