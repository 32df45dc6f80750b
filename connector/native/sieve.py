"""Records of the offsets topic in bulk: what is passed over is never an object of Python's.

In: a consumer of the binding's, and partitions that it is to be assigned. Out: of one connector's records the newest of
each key, and whatever is not plainly another's, as the binding's messages. The kernel sees every record that librdkafka
has fetched; errors of partitions and their ends are among what it hands over.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import logging
from collections.abc import Callable, Collection, Iterator
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_void_p
from struct import Struct
from typing import Any, Final

from confluent_kafka import KafkaError, Message

from connector.native.library import Kernel, NoKernel
from connector.native.librdkafka import MAKING, hand_over

log = logging.getLogger(__name__)

#: So much is kept before it is handed over: as many as are worth a call, few enough to take no memory to speak of.
MOST: Final = 20_000
MOST_BYTES: Final = 4 << 20
#: The kernel's ``head``: offset, time, partition, error, stamp, and sizes of key, value and headers.
_HEAD: Final = Struct("<qq6i")
#: Sizes of a header's name and value.
_HEADER: Final = Struct("<ii")


class Sieve:
    """Of the partitions of one topic. It is read by one thread."""

    def __init__(
        self,
        kernel: Kernel,
        topic: str,
        usual: bytes,
        partitions: Collection[int],
        *,
        values: bool = True,
        most: int = MOST,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """``usual``: how all keys begin. Without ``values`` keys alone are of interest."""
        functions = _Functions(kernel)
        self._functions = functions
        self._topic = topic
        count = max(partitions, default=-1) + 1
        #: Of each partition the offset behind what has come, whether it was kept or not.
        self.ends: Any = (c_int64 * count)()
        self._state = functions.open(usual, len(usual), values, self.ends, count, most, most_bytes)
        if not self._state:
            raise MemoryError

    def offer(
        self,
        partition: int,
        offset: int,
        key: bytes | None,
        value: bytes | None,
        headers: list[tuple[str, bytes | None]] | None = None,
        timestamp: tuple[int, int] = (0, 0),
        error: int = 0,
    ) -> None:
        """As if it had come from a broker."""
        packed = b"".join(
            _HEADER.pack(len(name.encode()), -1 if each is None else len(each)) + name.encode() + (each or b"")
            for name, each in headers or ()
        )
        kept = self._functions.offer(
            self._state, partition, offset, key, -1 if key is None else len(key), value,
            -1 if value is None else len(value), packed, len(packed), timestamp[1], timestamp[0], error,
        )  # fmt: skip
        if not kept:
            raise MemoryError

    def drain(self) -> list[Message]:
        """What is kept of what has come since the last call, in order."""
        size = self._functions.kept_size(self._state)
        if not size:
            return []
        room = bytearray(size)
        self._functions.drain(self._state, (ctypes.c_char * size).from_buffer(room))
        raw = bytes(room)
        found: list[Message] = []
        at = 0
        while at < size:
            offset, time, partition, error, stamp, key_size, value_size, headers_size = _HEAD.unpack_from(raw, at)
            begin = at + _HEAD.size
            key_end = begin + max(0, key_size)
            value_end = key_end + max(0, value_size)
            at = value_end + headers_size
            value = None if value_size < 0 else raw[key_end:value_end]
            if error:
                reason = KafkaError(error, (value or b"").decode(errors="replace") or None)
                found.append(Message(self._topic, partition, offset, error=reason))
                continue
            key = None if key_size < 0 else raw[begin:key_end]
            headers = _headers(raw[value_end:at]) if headers_size else None
            found.append(Message(self._topic, partition, offset, key, value, headers, None, (stamp, time)))
        return found

    def close(self) -> None:
        state, self._state = self._state, None
        if state:
            self._functions.close(state)


class QueueSieve(Sieve):
    """Of partitions that are about to be assigned to a consumer."""

    def __init__(self, kernel: Kernel, client: Any, topic: str, usual: bytes, partitions: Collection[int], **how: bool):
        super().__init__(kernel, topic, usual, partitions, **how)
        numbers = (c_int32 * len(partitions))(*partitions)
        self._queue = self._functions.open_queue(client, topic.encode(), numbers, len(partitions))

    def read(self, seconds: float, waits: bool) -> int:
        """Read for so long, or until there is enough to be looked at; ``waits``: also while nothing comes. Returns how
        many records have come. Any thread but the one that closes may go on meanwhile."""
        count: int = self._functions.read(self._state, self._queue, int(seconds * 1000), waits)
        if count < 0:
            raise MemoryError
        return count

    def close(self) -> None:
        """Before the consumer is closed."""
        queue, self._queue = self._queue, None
        if queue:
            self._functions.close_queue(queue)
        super().close()


class BulkClient:
    """Who makes sieves."""

    def __init__(self, kernel: Kernel) -> None:
        """Raises ``NoKernel`` where librdkafka is not known well enough, or the kernel is wrong."""
        self.plugin = hand_over(kernel)
        self._kernel = kernel
        self._take_newest = kernel.function("take_newest_consumer", c_void_p)
        if _sample(kernel) != _EXPECTED:
            raise NoKernel("it sifts records otherwise than the plain way, please report this")

    @contextlib.contextmanager
    def making(self) -> Iterator[Callable[[], Any]]:
        """Around the making of a consumer that has ``plugin`` among its ``plugin.library.paths``; then the callable
        gives what `sieve` wants, or None if librdkafka did not call."""
        with MAKING:
            self._take_newest()
            yield self._take_newest

    def sieve(self, client: Any, topic: str, usual: bytes, partitions: Collection[int], *, values: bool) -> QueueSieve:
        return QueueSieve(self._kernel, client, topic, usual, partitions, values=values)


class _Functions:
    """Of ``sieve.c``."""

    def __init__(self, kernel: Kernel) -> None:
        declared = kernel.function
        self.open = declared(
            "open_sieve", c_void_p, c_char_p, c_int32, c_int32, POINTER(c_int64), c_int32, c_int32, c_int64
        )
        self.close = declared("close_sieve", None, c_void_p)
        self.offer = declared(
            "offer", c_int32,
            c_void_p, c_int32, c_int64, c_char_p, c_int32, c_char_p, c_int32, c_char_p, c_int32, c_int64, c_int32,
            c_int32,
        )  # fmt: skip
        self.kept_size = declared("kept_size", c_int64, c_void_p)
        self.drain = declared("drain", None, c_void_p, c_char_p)
        self.open_queue = declared("open_queue", c_void_p, c_void_p, c_char_p, POINTER(c_int32), c_int32)
        self.close_queue = declared("close_queue", None, c_void_p)
        self.read = declared("read_queue", c_int64, c_void_p, c_void_p, c_int32, c_int32)


def _headers(raw: bytes) -> list[tuple[str, bytes | None]]:
    found: list[tuple[str, bytes | None]] = []
    at = 0
    while at < len(raw):
        name_size, value_size = _HEADER.unpack_from(raw, at)
        at += _HEADER.size + name_size
        name = raw[at - name_size : at].decode(errors="replace")
        found.append((name, None if value_size < 0 else raw[at : at + value_size]))
        at += max(0, value_size)
    return found


@functools.cache
def bulk_client() -> BulkClient | None:
    """The process's, made when it is asked for; None where records can only be read one by one."""
    try:
        return BulkClient(Kernel())
    except NoKernel as error:
        log.debug("the offsets topic is read record by record: %s", error)
        return None


#: What the kernel is held against: whose key it is, and what is to come of it.
_OWN: Final = b'["m",{'
_SAMPLE: Final = (
    (0, b'["m",{"x":1}]', b"old"),
    (1, b'["other",{"x":1}]', b"foreign"),
    (0, b'["m",{"x":2}]', b"kept"),
    (0, b'["m", {"x":1}]', b"odd"),
    (1, None, b"nobody's"),
    (1, b'["m",{"x":1}]', b"of another partition"),
    (0, b'["m",{"x":1}]', b"new"),
    (0, b'["m",{"x":3}]', None),
)
_EXPECTED: Final = [2, 3, 4, 5, 6, 7]


def _sample(kernel: Kernel) -> list[int]:
    sieve = Sieve(kernel, "", _OWN, range(2))
    for offset, (partition, key, value) in enumerate(_SAMPLE):
        sieve.offer(partition, offset, key, value)
    found = sieve.drain()
    right = all((each.key(), each.value()) == _SAMPLE[each.offset() or 0][1:] for each in found)
    sieve.close()
    return [each.offset() or 0 for each in found] if right else []
