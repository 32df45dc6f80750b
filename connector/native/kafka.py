"""Blocks handed to the Kafka client's own library, past its Python binding.

In: a ``RecordBlock``. Out: how many of its records librdkafka took, and what became of all records since: the library
tells the kernel of each, so that none that failed goes unnoticed. The client stays the binding's: the kernel is one of
librdkafka's plugins, and meets the client while it is made.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_uint8, c_void_p
from dataclasses import dataclass
from typing import Any, TypeGuard

from connector.native.blocks import RecordBlock
from connector.native.library import Kernel, Output
from connector.native.librdkafka import MAKING, hand_over

#: Bytes of records: what is read from ScyllaDB in a fifth of a second. More than that is copied, as librdkafka does.
_MOST_LENT = 32 << 20


@dataclass(frozen=True, slots=True)
class Failure:
    """The first record that was not delivered."""

    topic: str
    key: bytes | None
    code: int


@dataclass(frozen=True, slots=True)
class Taken:
    """``count`` records, from the first on; ``code``: librdkafka's error of the next one, 0 if all were taken.
    ``broken``: some behind it were taken all the same."""

    count: int
    code: int
    broken: bool


class _Producer(ctypes.Structure):
    """The beginning of the kernel's ``producer``."""

    _fields_ = [
        ("client", c_void_p),
        ("delivered", c_int64),
        ("failed", c_int64),
        ("claimed", c_int32),
        ("told", c_int32),
        ("error", c_int32),
        ("key_size", c_int32),
        ("topic", ctypes.c_char * 256),
        ("key", c_uint8 * 1024),
    ]


class _Header(ctypes.Structure):
    """The kernel's ``header``."""

    _fields_ = [("name", c_char_p), ("value", c_char_p), ("size", c_int64)]


class BlockProducer:
    """Beside one client of the binding, and of no use once that was closed."""

    def __init__(self, client: BlockClient, state: Any) -> None:
        self._client = client
        self._state = state
        self._room = ctypes.create_string_buffer(0)
        self._lent: dict[Output, int] = {}

    def takes(self, records: object) -> TypeGuard[RecordBlock]:
        """Blocks, if they are not empty."""
        return isinstance(records, RecordBlock) and len(records) > 0

    def produce(self, block: RecordBlock, begin: int) -> Taken:
        """The block's records from ``begin`` on; never waits. Their values are not copied while there is room for
        others: then the block's ``output`` is lent until `settled`."""
        lends = self._lends(block)
        if lends and block.output not in self._lent:
            self._lent[block.output] = block.size
            block.output.lend()
        if block.names is not None:
            return self._produce_with_headers(block, begin, block.names, lends)
        needed = self._client.room_of(len(block))
        if len(self._room) < needed:
            # Never between the calls of one block, which finds there what it has sorted.
            self._room = ctypes.create_string_buffer(needed)
        error, broken = c_int32(), c_int32()
        count = self._client.produce(
            self._state, block.topic.encode(), block.bytes, block.places, begin, len(block), self._room,
            not lends, byref(error), byref(broken),
        )  # fmt: skip
        return Taken(count, error.value, bool(broken.value))

    def _lends(self, block: RecordBlock) -> bool:
        """What somebody else was lent he may give back while we still need it."""
        if block.output.lent:
            return block.output in self._lent
        return sum(self._lent.values()) + block.size <= _MOST_LENT

    def settled(self) -> None:
        """None of the client's records is under way: what was lent is not read any more."""
        for output in self._lent:
            output.give_back()
        self._lent.clear()

    def _produce_with_headers(self, block: RecordBlock, begin: int, names: bytes, lends: bool) -> Taken:
        several = [_Header(name.encode(), value, -1 if value is None else len(value)) for name, value in block.headers]
        headers = (_Header * len(several))(*several)
        error = c_int32()
        count = self._client.produce_with_headers(
            self._state, block.topic.encode(), block.bytes, block.places, begin, len(block), names, headers,
            len(headers), not lends, byref(error),
        )  # fmt: skip
        return Taken(count, error.value, False)

    @property
    def delivered(self) -> int:
        """Of all records of the client, not of its blocks alone; as the next."""
        return int(self._state.contents.delivered)

    @property
    def failure(self) -> Failure | None:
        state = self._state.contents
        if not state.told:
            return None
        key = None if state.key_size < 0 else bytes(state.key[: state.key_size])
        return Failure(state.topic.decode(errors="replace"), key, state.error)

    def forget_failure(self) -> None:
        """A new transaction begins."""
        self._client.forget_failure(self._state)


class BlockClient:
    """librdkafka, as the binding has loaded it."""

    def __init__(self, kernel: Kernel) -> None:
        """Raises ``NoKernel`` where it is not known well enough."""
        self.plugin = hand_over(kernel)
        declared = kernel.function
        self._take_newest = declared("take_newest", POINTER(_Producer))
        self.room_of: Callable[[int], int] = declared("room_of", c_int64, c_int64)
        self.forget_failure: Callable[[Any], None] = declared("forget_failure", None, POINTER(_Producer))
        self.produce: Callable[..., int] = declared(
            "produce", c_int32,
            POINTER(_Producer), c_char_p, POINTER(c_uint8), POINTER(c_int32), c_int32, c_int32, c_char_p,
            c_int32, POINTER(c_int32), POINTER(c_int32),
        )  # fmt: skip

        self.produce_with_headers: Callable[..., int] = declared(
            "produce_with_headers", c_int32,
            POINTER(_Producer), c_char_p, POINTER(c_uint8), POINTER(c_int32), c_int32, c_int32, c_char_p,
            POINTER(_Header), c_int32, c_int32, POINTER(c_int32),
        )  # fmt: skip

    @contextlib.contextmanager
    def making(self) -> Iterator[Callable[[], BlockProducer | None]]:
        """Around the making of a client that has ``plugin`` among its ``plugin.library.paths``; then the callable gives
        what stands beside it, or None if librdkafka did not call."""
        with MAKING:
            self._take_newest()
            yield self._newest

    def _newest(self) -> BlockProducer | None:
        state = self._take_newest()
        return BlockProducer(self, state) if state else None
