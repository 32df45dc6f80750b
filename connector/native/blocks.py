"""Blocks of records: what the kernel made of complete batches, in one buffer.

In: batches that nobody has cut. Out: a ``RecordBlock``, or None where the first batch is for the plain way. A block is
a sequence of records for whoever wants them one by one, and bytes with their places for whoever does not.
"""

from __future__ import annotations

import logging
import time
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from struct import Struct
from typing import Any, Final, overload

from connector.changes import LogLayout, UncutBatches, WriteTimes
from connector.errors import CdcError, PoisonRow
from connector.formats import Encoder, Record
from connector.native.library import FULL, RECORD_WORDS, Kernel, LoadedPlan, Output, Told
from connector.native.plan import KernelPlan, kernel_plan
from connector.native.program import Unsupported

log = logging.getLogger(__name__)

#: Batches, and records, that are made at once: enough for a call to cost nothing, few enough to look at the time often.
AT_ONCE: Final = 2000
#: A batch whose records need more is made the plain way.
_LARGEST: Final = 256 << 20
_USUAL: Final = 4 << 20
#: Plans of a table's older layouts are of no use any more, except while a changed table's pages still mix.
_MOST_PLANS: Final = 4096
_TOMBSTONE: Final = -1
_HEADER: Final = Struct("<ii")


class RecordBlock(Sequence[Record]):
    """Records of one topic, in order.

    ``ends``: how many there are after each batch; ``times``: when the batches were written; ``rows``: how many of them
    have so many rows. The bytes are the kernel's: they hold until the next block is made, or ``output``, which they
    are in, is given back by whoever it was lent to. Nothing here takes time for each record: there are hundreds of
    thousands in a second.
    """

    def __init__(self, plan: KernelPlan, batches: UncutBatches, output: Output, told: Told) -> None:
        self.topic = plan.topic
        self.headers = plan.version
        #: What the names of records' own headers stand in; None where no record has headers.
        self.names: bytes | None = plan.text if plan.headers else None
        self.ends: Sequence[int] = array("i", bytes(memoryview(output.ends)[: told.made]))
        each = array("q", bytes(memoryview(output.times)[: told.made]))
        self.times = WriteTimes(told.earliest, told.latest, told.total, each)
        self.size = told.size
        self._batches = batches[: told.made]
        self.output = output
        self.places: Any = output.records
        self.bytes: Any = output.bytes

    @property
    def rows(self) -> Mapping[float, int]:
        firsts, begin, end = self._batches.rows.firsts, self._batches.begin, self._batches.end
        if firsts[end] - firsts[begin] == len(self._batches):
            return {1: len(self._batches)}
        return Counter(end - first for first, end in pairwise(firsts[begin : end + 1]))

    def __len__(self) -> int:
        return self.ends[-1]

    @overload
    def __getitem__(self, at: int) -> Record: ...

    @overload
    def __getitem__(self, at: slice) -> list[Record]: ...

    def __getitem__(self, at: int | slice) -> Record | list[Record]:
        numbers = range(len(self))[at]
        return self._record(numbers) if isinstance(numbers, int) else [self._record(number) for number in numbers]

    def _record(self, number: int) -> Record:
        first = RECORD_WORDS * number
        key, key_size, value, value_size, begin, size = self.places[first : first + RECORD_WORDS]
        key_bytes = bytes(self.bytes[key : key + key_size]) if key_size >= 0 else None
        headers = self._own_headers(bytes(self.bytes[begin : begin + size]))
        if value_size == _TOMBSTONE:
            return Record(self.topic, key_bytes, None, headers, "tombstone")
        value_bytes = bytes(self.bytes[value : value + value_size]) if value_size >= 0 else None
        return Record(self.topic, key_bytes, value_bytes, [*headers, *self.headers])

    def _own_headers(self, raw: bytes) -> list[tuple[str, bytes | None]]:
        """As `put_headers` in ``kernel/headers.h`` writes them."""
        found: list[tuple[str, bytes | None]] = []
        at = 0
        while at < len(raw):
            name, size = _HEADER.unpack_from(raw, at)
            at += _HEADER.size
            found.append((self._name(name), raw[at : at + size] if size >= 0 else None))
            at += max(size, 0)
        return found

    def _name(self, begin: int) -> str:
        names = self.names or b""
        return names[begin : names.index(b"\0", begin)].decode()


class BlockEncoder:
    """One per worker, beside its ``Encoder``, which knows the tables and is right where the two differ."""

    def __init__(
        self, kernel: Kernel, encoder: Encoder, clock: Callable[[], int] = time.time_ns, level: int = logging.INFO
    ) -> None:
        """``level``: at which it is logged that a table's records are made the plain way."""
        self._level = level
        self._kernel = kernel
        self._encoder = encoder
        self._clock = clock
        self._plans: dict[LogLayout, LoadedPlan | None] = {}
        self._outputs = [Output(AT_ONCE)]

    def plan(self, layout: LogLayout) -> KernelPlan | None:
        """How the kernel makes the records of a table; None where only the plain way can. A Schema Registry may be
        asked: its errors are ``CdcError``s."""
        loaded = self._loaded(layout)
        return None if loaded is None else loaded.plan

    def takes(self, layout: LogLayout) -> bool:
        """Whether the kernel may be asked for records of this layout, as far as is known."""
        return self._plans.get(layout, True) is not None

    def encode(self, batches: UncutBatches, limit: int, room: int) -> RecordBlock | None:
        """The first batches, at least one, until ``room`` bytes are filled; no record is larger than ``limit``."""
        loaded = self._loaded(batches.layout)
        if loaded is None or not batches:
            return None
        output = self._unused()
        begin, end = batches.begin, min(batches.end, batches.begin + AT_ONCE)
        while True:
            told = self._kernel.encode(
                loaded,
                batches.rows,
                begin,
                end,
                self._clock(),
                limit,
                room,
                AT_ONCE,
                output,
            )
            if told.made or told.verdict != FULL or not output.grow(_LARGEST):
                break
        return RecordBlock(loaded.plan, batches, output, told) if told.made else None

    def _unused(self) -> Output:
        for output in self._outputs:
            if not output.lent:
                return output
        # As large as most blocks need; not as the largest record did once, in each of them.
        self._outputs.append(Output(AT_ONCE, min(self._outputs[-1].size, _USUAL)))
        return self._outputs[-1]

    def _loaded(self, layout: LogLayout) -> LoadedPlan | None:
        if layout in self._plans:
            return self._plans[layout]
        if len(self._plans) >= _MOST_PLANS:
            self._plans.clear()
        loaded = None
        try:
            outline = self._encoder.outline(layout)
            if outline is not None:
                loaded = self._kernel.load(kernel_plan(outline))
        except (Unsupported, PoisonRow) as why:
            log.log(self._level, "%s: its records are made the plain way: %s", layout.description.full_name, why)
        except CdcError:
            raise
        except Exception as error:
            log.warning("%s: its records are made the plain way", layout.description.full_name, exc_info=error)
        self._plans[layout] = loaded
        return loaded
